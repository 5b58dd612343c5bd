"""A trace of single requests: records as the monitor sends them, kept in a file, then written as tables."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypedDict

from knobscope.errors import UserError
from knobscope.tables import TRACE_TABLES, describe_refusal
from knobscope.watch.event_files import EventNamer, to_categories
from knobscope.watch.event_operations import Operation, OperationNamer
from knobscope.watch.files import FileTree
from knobscope.watch.interface import OPERATIONS
from knobscope.watch.profile import CountedFile

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

#: Events of one run that are kept; those beyond are counted as lost. They take 96 bytes each until the run has ended.
MAX_EVENTS = 4_000_000
#: As struct note_t of probes/counters.bpf.h, behind the eight bytes that the kernel's ring puts before it.
_RECORD = [
    ("header", "u8"),
    *((name, "u8") for name in ("issued_at", "wait", "sector", "inode", "offset", "latency")),
    *((name, "u4") for name in ("bytes", "device", "pid", "thread")),
    ("comm", "u8", 2),
    *((name, "u2") for name in ("queue", "file")),
    *((name, "u1") for name in ("flags", "op", "owner", "failed")),
]
_OWNERS = ("unseen", "own", "inode", "journal", "flush", "foreign", "unknown")
_FLAGS = {"fua": 1, "preflush": 2, "sync": 4, "meta": 8}
_LOCATED = 16  # the kernel knew file and offset
_PART = 1 << 18  # records that are turned into rows together
_INSERT = """
    INSERT INTO events BY NAME
    SELECT
        * EXCLUDE is_located REPLACE (
            CASE WHEN is_located THEN "offset" END AS "offset", nullif(pid, 0) AS pid,
            nullif(thread, 0) AS thread, operation::VARCHAR AS operation,
            nullif(lat_ns, -1) AS lat_ns, CASE WHEN pid <> 0 THEN comm::VARCHAR END AS comm,
            nullif(file::VARCHAR, '') AS file, nullif(device::VARCHAR, '') AS device, nullif(inode, 0) AS inode
        )
    FROM rows
    """


def require_replaceable(directory: Path) -> None:
    """Raise UserError unless a trace can have this name: nobody has it, or an earlier trace."""
    expected = "expected a new directory, or that of an earlier trace"
    if directory.name in ("", ".."):
        raise UserError(f"--trace: found {directory}; {expected}")
    for place in (directory, _name_part(directory)):
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            raise UserError(f"--trace: {place} is no directory; {expected}")
        others = {entry.name for entry in place.glob("*")} - {f"{table}.parquet" for table in TRACE_TABLES}
        if others:
            raise UserError(f"--trace: {place} holds {min(others)}; {expected}")


def _name_part(directory: Path) -> Path:
    """Return where a trace is written before it appears."""
    return directory.with_name(directory.name + ".part")


@contextmanager
def _telling_of_refusal(directory: Path) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:  # a full disk
        raise UserError(f"the trace cannot be written to {directory}: {describe_refusal(error)}") from error
    except OSError as error:
        raise UserError(f"the trace cannot be written to {directory}: {error.strerror}") from error


class Announced(TypedDict):
    """The line with which the monitor announces records."""

    bytes: int
    began_ns: int
    now_ns: int
    lost: int


class Recording:
    """The events of one run after another; `directory` is where they are kept before `write`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._spool: IO[bytes] = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - lives as long as we do
        self._lost: list[dict[str, int]] = []
        self._events = 0
        self._began_ns = 0
        self._failure: OSError | None = None

    def start(self) -> None:
        """Forget the run before."""
        self._spool.seek(0)
        self._spool.truncate()
        self._lost, self._events, self._failure = [], 0, None

    def add(self, message: Announced, records: bytes) -> None:
        """Take records and the line that announced them. When they cannot be kept, `write` fails, not the run."""
        size = _get_layout().itemsize
        recorded = max(min(len(records) // size, MAX_EVENTS - self._events), 0)
        self._events += recorded
        self._began_ns = message["began_ns"]
        lost = message["lost"] + len(records) // size - recorded
        self._lost.append({"ts_ns": message["now_ns"] - message["began_ns"], "recorded": recorded, "lost": lost})
        try:
            self._spool.write(records[: recorded * size])
        except OSError as failure:
            self._failure = failure

    def write(
        self,
        directory: Path,
        trees: Sequence[FileTree],
        named: Sequence[CountedFile],
        operations: Sequence[Operation] = (),
    ) -> tuple[int, int]:
        """Write events.parquet and lost.parquet into a directory, which appears whole; return events and lost ones.

        `trees` give names to files, in the order in which they were read; of requests whose file the kernel could not
        tell (direct I/O) they tell it by the address. `named`: files (device, inode, name) that the kernel told.
        `operations`: what threads of the server were at, and when.
        """
        import duckdb

        if self._failure:
            reason = self._failure.strerror
            raise UserError(f"the trace cannot be kept in {self._directory}: {reason}") from self._failure
        part = _name_part(directory)
        with (
            _telling_of_refusal(directory),
            tempfile.TemporaryDirectory(dir=self._directory) as spill,
            duckdb.connect() as connection,
        ):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            connection.execute("SET memory_limit = '1GB'")
            connection.execute("SET temp_directory = '" + spill.replace("'", "''") + "'")
            for table, columns in TRACE_TABLES.items():
                definition = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
                connection.execute(f"CREATE TABLE {table} ({definition})")
            for row in self._lost:
                connection.execute("INSERT INTO lost VALUES (?, ?, ?)", list(row.values()))
            self._insert_events(connection, EventNamer(trees, named), OperationNamer(operations))
            for table in TRACE_TABLES:
                connection.execute(f"COPY {table} TO ? (FORMAT parquet)", [str(part / f"{table}.parquet")])
            shutil.rmtree(directory, ignore_errors=True)
            part.rename(directory)
        return self._events, sum(row["lost"] for row in self._lost)

    def close(self) -> None:
        """Remove what was kept."""
        self._spool.close()

    def _insert_events(
        self, connection: "duckdb.DuckDBPyConnection", files: EventNamer, operations: OperationNamer
    ) -> None:
        """Fill table `events` in order of issue."""
        import numpy as np

        if not self._events:
            return
        self._spool.flush()
        records = np.memmap(self._spool, _get_layout(), "r", shape=(self._events,))
        order = np.argsort(records["issued_at"], kind="stable")
        for first in range(0, len(order), _PART):
            part = records[order[first : first + _PART]]
            rows = _make_rows(part, self._began_ns, files).assign(operation=operations.name(part))
            connection.register("rows", rows)
            connection.execute(_INSERT)
            connection.unregister("rows")


def _get_layout() -> "np.dtype[Any]":
    import numpy as np

    return np.dtype(_RECORD)


def _make_rows(records: "NDArray[Any]", began_ns: int, namer: EventNamer) -> "pd.DataFrame":
    """Return records as columns of table `events`; what has no value is marked by 0 or an empty text."""
    import pandas as pd

    flags = records["flags"]
    is_located = (flags & _LOCATED) > 0
    return pd.DataFrame(
        {
            "ts_ns": records["issued_at"].astype("i8") - began_ns,
            "lba": records["sector"].astype("i8").clip(0),  # of a flush newer kernels set all bits: it has no sector
            "bytes": records["bytes"].astype("i8"),
            "op": pd.Categorical.from_codes(records["op"].astype("i4"), OPERATIONS),
            "offset": records["offset"].astype("i8"),
            "is_located": is_located,
            "lat_ns": records["latency"].astype("i8"),  # all bits set, which is -1: no completion was seen
            "wait_ns": records["wait"].astype("i8"),
            "queue": records["queue"].astype("i4"),
            "owner": pd.Categorical.from_codes(records["owner"].astype("i4"), _OWNERS),
            "pid": records["pid"].astype("i4"),
            "thread": records["thread"].astype("i4"),
            "comm": _decode(records["comm"]),
            **{name: (flags & bit) > 0 for name, bit in _FLAGS.items()},
            "failed": records["failed"] > 0,
            **namer.name(records, is_located),
        }
    )


def _decode(words: "NDArray[np.uint64]") -> "pd.Categorical":
    """Return process names, each given as two words of eight bytes."""
    import numpy as np

    pairs, codes = np.unique(words, axis=0, return_inverse=True)
    return to_categories([pair.tobytes().split(b"\0")[0].decode(errors="replace") for pair in pairs], codes)
