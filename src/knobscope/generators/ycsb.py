"""YCSB: loads records, runs a workload, asks connections what is in force."""

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from knobscope.generators.clients import java_command
from knobscope.generators.consistency import require_consistent
from knobscope.generators.events import Client, Supervise
from knobscope.generators.failure import GeneratorError
from knobscope.generators.results import SESSIONS, LoadResult, parse_result, parse_sessions
from knobscope.generators.session import Session
from knobscope.processes import read_foreign

#: Limits for loading, for checking the data of a run (sums over all of it), and for looking for rows that a kill lost.
LOAD_S = 3600
_CHECK_S = 600
_LOOK_S = 300
#: Times of the client are whole milliseconds.
_CLOCK_S = 0.001


@dataclass(frozen=True)
class Connected:
    """What the client's connections answered when asked for the values of knobs.

    `effective` holds the values of the first connection; a knob of which the DBMS knows no value is missing.
    `disagree` has what connections answer differently, knobs and others, with the values: {"synchronous": ["0", "2"]}.
    """

    effective: dict[str, str]
    disagree: Mapping[str, Sequence[str]]


def load_records(session: Session, schema: Sequence[str], supervise: Supervise = subprocess.Popen) -> int:
    """Create the table with the statements `schema`, load `recordcount` records, count them and return the count.

    Raises GeneratorError when that takes longer than an hour or a record is missing.
    """
    with _start(session, "-load", {}, schema, supervise) as client:
        return int(client.wait_for("loaded", LOAD_S)["records"])


def read_back(session: Session, supervise: Supervise = subprocess.Popen, *, timeout: float = 60) -> Connected:
    """Connect, run the init statements, read knobs back, and end without any operation on the data."""
    with _start(session, "-t", {"knobscope.measure.s": "0"}, (), supervise) as client:
        return _connected(client.wait_for("connected", timeout))


class Witness(AbstractContextManager["Witness"]):
    """A client that writes rows until the server is killed, waits for it, and counts what it lost. For `with`."""

    def __init__(self, session: Session, supervise: Supervise = subprocess.Popen) -> None:
        self._client = _start(session, "-t", {"knobscope.witness": "testify"}, (), supervise)

    def wait_writing(self, timeout: float) -> None:
        """Wait until the first row was acknowledged."""
        self._client.wait_for("witnessing", timeout)

    def testify(self, killed_after: float, timeout: float) -> tuple[int, float]:
        """Wait until the server is back and was asked; return lost rows, and seconds from the first of them on.

        A row is lost when the server had acknowledged it and does not have it any more. Raises GeneratorError also
        when rows were refused before a time (seconds since 1970) at which the server still lived.
        """
        event = self._client.wait_for("witnessed", timeout)
        if event["end_ms"] / 1000 < killed_after - _CLOCK_S:
            raise GeneratorError("failed", "a row was refused before the server was killed", self._client.log_tail())
        return int(event["lost"]), event["lost_ns"] / 1e9

    def __exit__(self, *_: object) -> None:
        """End the client, whatever happened."""
        self._client.stop()


class RowWriter(AbstractContextManager["RowWriter"]):
    """A client that writes rows, one after the other, until it is stopped, and says when each was acknowledged."""

    def __init__(self, session: Session, supervise: Supervise = subprocess.Popen) -> None:
        self._client = _start(session, "-t", {"knobscope.witness": "write"}, (), supervise)
        self._first_ns = 0

    def wait_writing(self, timeout: float) -> None:
        """Wait until the first row was acknowledged."""
        self._first_ns = int(self._client.wait_for("acknowledged", timeout)["at_ns"])

    def stop(self, before_ns: int) -> int:
        """End the client; returns how many rows were acknowledged before a time (nanoseconds since 1970)."""
        self._client.stop()
        times = [int(event["at_ns"]) for event in self._client.take_rest() if event["event"] == "acknowledged"]
        return sum(at_ns < before_ns for at_ns in (self._first_ns, *times))

    def __exit__(self, *_: object) -> None:
        """End the client, whatever happened."""
        self._client.stop()


def count_lost(session: Session, rows: int, supervise: Supervise = subprocess.Popen) -> int:
    """Return how many of the rows that a RowWriter had acknowledged are gone; GeneratorError: it cannot ask."""
    own = {"knobscope.witness": "look", "knobscope.witness.rows": str(rows)}
    with _start(session, "-t", own, (), supervise) as client:
        return int(client.wait_for("witnessed", _LOOK_S)["lost"])


class YcsbRun(AbstractContextManager["YcsbRun"]):
    """A run of a workload: warm-up, then the measured window, then the client ends. Use it in a `with` statement.

    `measure_operations` end the window before `measure_s` have passed, after four intervals at least.
    `session_thread` asks a connection which thread serves it (empty: the client's own), for `LoadResult.sessions`.
    Each wait has a limit in seconds and raises GeneratorError as soon as the client cannot get there any more.
    """

    def __init__(
        self,
        session: Session,
        *,
        warmup_s: float,
        measure_s: float,
        measure_operations: int | None = None,
        interval_ms: int = 1000,
        session_thread: str | None = None,
        supervise: Supervise = subprocess.Popen,
    ) -> None:
        own = {
            "knobscope.warmup.s": f"{warmup_s:g}",
            "knobscope.measure.s": f"{measure_s:g}",
            "knobscope.interval.ms": str(interval_ms),
        }
        if measure_operations is not None:
            own["knobscope.measure.operations"] = str(measure_operations)
        if session_thread is not None:
            own["knobscope.session.thread"] = session_thread
        self._session, self._supervise, self._logs_sessions = session, supervise, session_thread is not None
        self._client = self._open(own)

    @property
    def pid(self) -> int:
        """Process id of the JVM (not of the keeper around it); waits for its first word, at most 30 s."""
        return int(self._wait_for("started", 30)["pid"])

    @property
    def root_pid(self) -> int:
        """Root of the client's process tree: what it used can be read until `stop`, ended or not."""
        return self._client.pid

    def wait_connected(self, timeout: float) -> Connected:
        """Wait until all connections are up and asked; the warm-up begins at this moment."""
        return _connected(self._wait_for("connected", timeout))

    def wait_measuring(self, timeout: float) -> int:
        """Wait for the end of the warm-up; returns its time in nanoseconds since 1970."""
        return int(self._wait_for("measuring", timeout)["at_ns"])

    def wait_measured(self, timeout: float) -> int:
        """Wait for the end of the measured window; returns its time in nanoseconds since 1970."""
        return int(self._wait_for("measured", timeout)["at_ns"])

    def result(self) -> LoadResult:
        """Return the figures, once `wait_measured` has returned, and wait until the data was checked, if it is."""
        checked = self._wait_for("checked", _CHECK_S)
        try:
            result = parse_result(self._read, checked, self._session.threads)
            require_consistent(result)
            if self._logs_sessions:
                result = replace(result, sessions=parse_sessions(self._read(SESSIONS)))
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
            message = f"the result of the load client cannot be used: {error}"
            raise GeneratorError("unreadable", message, self._client.log_tail()) from error
        return result

    def _open(self, own: Mapping[str, str]) -> Client:
        """Start the client with knobscope's own properties."""
        return _start(self._session, "-t", own, (), self._supervise)

    def _wait_for(self, name: str, timeout: float) -> dict[str, Any]:
        """Return an event of the client."""
        return self._client.wait_for(name, timeout)

    def _read(self, name: str) -> str:
        """Return a file that the client left."""
        return read_foreign(self._session.out / name)

    def log_tail(self) -> str:
        """Return the client's last lines on standard error."""
        return self._client.log_tail()

    def stop(self) -> None:
        """End the client; one that has finished is gone already."""
        self._client.stop()

    def __exit__(self, *_: object) -> None:
        """End the client, whatever happened."""
        self.stop()


def _start(session: Session, phase: str, own: Mapping[str, str], schema: Sequence[str], supervise: Supervise) -> Client:
    # first: it may have to say that nothing is built
    java = java_command(session.out, session.jvm, session.library, session.driver)
    properties = session.write_files(own, schema)
    command = [*java, "site.ycsb.Client", phase, "-P", str(properties)]
    return Client(command, session.directory.absolute() / "client.log", session.out, supervise, session.environment)


def _connected(event: Mapping[str, Any]) -> Connected:
    disagree = {entry["knob"]: entry["values"] for entry in event["disagree"]}
    return Connected(dict(event["effective"]), disagree)
