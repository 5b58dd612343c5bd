"""Listens to a client's events while it runs, and sees at once when it is gone."""

import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, Protocol

from knobscope.generators.failure import GeneratorError
from knobscope.processes import MOST_BYTES, read_tail

_MARK = b"@knobscope "
_TAIL_LINES = 30
_STOP_S = 5


class Supervise(Protocol):
    """Starts a command; `subprocess.Popen` does, and so does the keeper of process trees."""

    def __call__(
        self,
        command: list[str],
        /,
        *,
        stdout: IO[Any] | int | None,
        stderr: IO[Any] | int | None,
        cwd: str | Path | None,
        env: dict[str, str] | None,
    ) -> "subprocess.Popen[bytes]":
        """Start `command`."""


class Client(AbstractContextManager["Client"]):
    """A running client: its events in order, its words on standard error, its end. Stopped at the end of a `with`."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        directory: Path,
        supervise: Supervise,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = log
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._seen: dict[str, dict[str, Any]] = {}
        variables = None if environment is None else dict(environment)
        with log.open("wb") as errors:
            self._process = supervise(
                list(command), stdout=subprocess.PIPE, stderr=errors, cwd=directory, env=variables
            )
        self._listener = threading.Thread(target=self._listen, name="client-events", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Process id of the client, or of the keeper around it."""
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stdout is not None  # noqa: S101
        with self._process.stdout as stdout:
            try:
                for event in _read_events(stdout):
                    self._events.put(event)
            except ValueError as problem:  # a DBMS that lives in its client can print what it likes
                reason = f"the load client printed {problem}"
                self._events.put({"event": "failed", "kind": "unreadable", "reason": reason})
        self._events.put(None)

    def wait_for(self, name: str, timeout: float) -> dict[str, Any]:
        """Return the event `name`, which may have come already; raises GeneratorError when it will not come."""
        deadline = time.monotonic() + timeout
        while name not in self._seen:
            try:
                event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                message = f"the load client did not reach '{name}' within {timeout:g} s"
                raise GeneratorError("timeout", message, self.log_tail()) from None
            if event is None:
                self._events.put(None)
                raise self._death(name)
            self._seen[event["event"]] = event
        return self._seen[name]

    def take_rest(self) -> list[dict[str, Any]]:
        """Return the events of a client that was stopped, in order, that nobody has waited for."""
        return list(iter(self._events.get, None))

    def _death(self, name: str) -> GeneratorError:
        if "failed" in self._seen:
            failure = self._seen["failed"]
            return GeneratorError(failure["kind"], failure["reason"], self.log_tail())
        code = self._process.wait()
        message = f"the load client ended with code {code} before '{name}'"
        return GeneratorError("died", message, self.log_tail(), code)

    def log_tail(self) -> str:
        """Return the last lines the client wrote on standard error."""
        return read_tail(self._log, _TAIL_LINES)

    def stop(self) -> None:
        """End the client, by force if need be; returns when it is gone. May be called again."""
        end_process(self._process, self._listener)

    def __exit__(self, *_: object) -> None:
        """End the client, whatever happened."""
        self.stop()


def _read_events(output: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the events of a client. ValueError: it prints more than is kept of any output, or what is no event."""
    remaining_bytes = MOST_BYTES
    while line := output.readline(MOST_BYTES):
        remaining_bytes -= len(line) if line.startswith(_MARK) else 0
        if len(line) == MOST_BYTES or remaining_bytes < 0:
            raise ValueError(f"a line, or events, of more than {MOST_BYTES >> 20} MiB")
        if not line.startswith(_MARK) or not line.endswith(b"\n"):  # the latter was killed in mid-sentence
            continue
        try:
            event = json.loads(line.removeprefix(_MARK))
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            raise ValueError(f"what is no event: {line[:80]!r}")
        yield event


def end_process(process: "subprocess.Popen[bytes]", listener: threading.Thread) -> None:
    """End a process, by force if need be, and the thread that reads its output."""
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    listener.join(_STOP_S)
