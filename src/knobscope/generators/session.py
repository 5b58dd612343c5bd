"""A client's call in files: properties, statements, questions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

__all__ = ["Session", "write_properties", "write_statements"]

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
    java_options: tuple[str, ...] = field(default=())
    library: str | None = None  # folder of jars that the binding needs beside the usual ones
    environment: Mapping[str, str] | None = None  # of the client; ours when absent

    def with_connection(self, more: Mapping[str, str]) -> "Session":
        """Return the same session with further properties of the binding."""
        return replace(self, connection={**self.connection, **more})

    def write_files(self, own: Mapping[str, str], schema: Sequence[str] = ()) -> Path:
        """Write everything the client reads into `directory`; `own` are knobscope's properties of this call.

        Returns the properties file, which only its owner can read: it may hold a password.
        """
        directory = self.directory.absolute()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = {
            "knobscope.init": write_statements(directory / "init.sql", self.init),
            "knobscope.schema": write_statements(directory / "schema.sql", schema),
            "knobscope.out": directory,
        }
        if self.readback is not None:
            files["knobscope.readback"] = directory / "readback.json"
            files["knobscope.readback"].write_text(json.dumps(dict(self.readback)))
        properties = {
            **self._workload_properties(),
            **self.connection,
            "db": "knobscope.TimedDB",
            "knobscope.db": self.binding,
            "threadcount": str(self.threads),
            **{key: str(path) for key, path in files.items()},
            **own,
        }
        return write_properties(directory / "client.properties", properties)

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


def write_statements(path: Path, statements: Sequence[str]) -> Path:
    """Write one SQL statement per line; line breaks inside a statement become blanks (so no ``--`` comments)."""
    path.write_text("".join(" ".join(statement.splitlines()).strip() + "\n" for statement in statements))
    return path


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Write a Java properties file with mode 0600; any text survives as key and value."""
    lines = [f"{_escape(key)}={_escape(value)}\n" for key, value in properties.items()]
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text("".join(lines), encoding="ascii")
    return path


def _escape(text: str) -> str:
    """Letters, digits and harmless signs as they are, the rest as UTF-16 code units."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "._-/?&;,()'") else _as_utf16(char) for char in text
    )


def _as_utf16(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
