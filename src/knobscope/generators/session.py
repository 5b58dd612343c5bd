"""A client's call in files: properties, statements, questions."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from knobscope.processes import make_own_directory, make_shared_directory, write_shared
from knobscope.specs import Jvm

#: Name of the file that leads to all others.
PROPERTIES = "client.properties"

_CORE = "site.ycsb.workloads.CoreWorkload"
_OPEN_ENDED = "knobscope.OpenEndedWorkload"
_PROPORTIONS = ("read", "update", "insert", "scan", "readmodifywrite")


@dataclass(frozen=True)
class Session:
    """Everything that a call of the load client needs to know about the DBMS and the workload."""

    properties: Mapping[str, str]  # YCSB's, recordcount among them; CoreWorkload's proportions add up to 1
    binding: str  # Java class, for instance knobscope.JdbcBinding
    connection: Mapping[str, str]  # properties of the binding, for instance jdbc.url
    init: Sequence[str]  # SQL statements for every connection
    readback: Mapping[str, object] | None  # {"query": SQL} of (name, value) rows, or {"each": {knob: SQL}}
    directory: Path  # private to this call; made if need be
    threads: int = 1
    jvm: Jvm = field(default=Jvm())
    library: str | None = None  # folder of jars that the binding needs in addition to the usual ones
    driver: str | None = None  # JDBC driver by its Maven coordinates
    environment: Mapping[str, str] | None = None  # of the client; ours when absent
    user: str | None = None  # whom the client runs as, when that is not us

    def with_connection(self, more: Mapping[str, str]) -> "Session":
        """Return the same session with further properties of the binding."""
        return replace(self, connection={**self.connection, **more})

    @property
    def out(self) -> Path:
        """Where the client writes; nobody else does, not even we."""
        return self.directory.absolute() / "out"

    def write_files(self, own: Mapping[str, str], schema: Sequence[str] = ()) -> Path:
        """Write everything the client reads into `directory`, and make its empty `out`.

        `own` are knobscope's properties of this call. Returns the properties file, which only we and the client's user
        can read: it may hold a password.
        """
        directory = self.directory.absolute()
        if not directory.exists():
            directory.parent.mkdir(parents=True, exist_ok=True)
            make_shared_directory(directory, self.user)
        if self.out.exists():
            shutil.rmtree(self.out)
        make_own_directory(self.out, self.user)
        for name, text in self.texts(directory, own, schema).items():
            write_shared(directory / name, text, self.user)
        return directory / PROPERTIES

    def texts(self, directory: PurePath, own: Mapping[str, str], schema: Sequence[str] = ()) -> dict[str, str]:
        """Return the files that the client reads, by their names in the directory where they will lie."""
        files = {"knobscope.init": "init.sql", "knobscope.schema": "schema.sql", "knobscope.out": "out"}
        texts = {"init.sql": as_statements(self.init), "schema.sql": as_statements(schema)}
        if self.readback is not None:
            files["knobscope.readback"] = "readback.json"
            texts["readback.json"] = json.dumps(dict(self.readback))
        properties = {
            **self._workload_properties(),
            **self.connection,
            "db": "knobscope.TimedDB",
            "knobscope.db": self.binding,
            "threadcount": str(self.threads),
            **{key: str(directory / name) for key, name in files.items()},
            **own,
        }
        return {**texts, PROPERTIES: as_properties(properties)}

    def _workload_properties(self) -> dict[str, str]:
        """YCSB's properties; a core workload runs as the variant that ends by time.

        YCSB's own defaults (95 % reads, 5 % updates) come back for every proportion that is not stated, even when
        others are; so all of them are stated.
        """
        stated = dict(self.properties)
        if stated.setdefault("workload", _CORE) == _CORE:
            stated["workload"] = _OPEN_ENDED
        if any(f"{part}proportion" in stated for part in _PROPORTIONS):
            stated = {f"{part}proportion": "0" for part in _PROPORTIONS} | stated
        return stated


def as_statements(statements: Sequence[str]) -> str:
    """Return one SQL statement per line; line breaks inside a statement become blanks (so no ``--`` comments)."""
    return "".join(" ".join(statement.splitlines()).strip() + "\n" for statement in statements)


def as_properties(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file; any text survives as key and value."""
    return "".join(f"{_escape(key)}={_escape(value)}\n" for key, value in properties.items())


def _escape(text: str) -> str:
    """Letters, digits and harmless signs as they are, the rest as UTF-16 code units."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "._-/?&;,()'") else _as_utf16(char) for char in text
    )


def _as_utf16(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
