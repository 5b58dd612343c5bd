"""A run of a load generator that its spec describes: warm-up, then the measured call, read by a named parser."""

import math
import os
import select
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from knobscope.generators.events import end_process
from knobscope.generators.failure import GeneratorError
from knobscope.generators.output import Output
from knobscope.generators.parsers import read_output
from knobscope.generators.results import LoadResult
from knobscope.generators.ycsb import LOAD_S, Connected
from knobscope.processes import MOST_BYTES, find_complaint, hand_over
from knobscope.servers import Configuration, Instance, fill_program
from knobscope.specs import Generator, Moment, Value, Workload, find_paths

_STOP_S = 5
_TAIL_LINES = 30
_LONGEST = 300
#: What Python needs for a line in addition to its text.
_LINE_BYTES = 150
#: Calls at most that find out how fast a generator is which is bound by a number of requests.
_SPEED_CALLS = 3
#: Durations are printed with two decimals: 0.00 s is not 0.
_SHORTEST_S = 0.005


@dataclass(frozen=True)
class GeneratorCall:
    """A generator, what it drives, and with which settings."""

    generator: Generator
    instance: Instance
    workload: Workload
    configuration: Configuration

    @property
    def out(self) -> Path:
        """Private directory of the generator."""
        return self.instance.runtime / "generator"

    @property
    def paths(self) -> SimpleNamespace:
        """What the placeholders {path.NAME} of the generator stand for."""
        return find_paths(self.generator.paths)

    def fill(self, command: Sequence[str], moment: Moment, *, seconds: float = 1, requests: int = 1) -> list[str]:
        """Return a command of the spec ready to run."""
        placeholders = self._placeholders(seconds, requests)
        filled = [fill_program(self.generator.programs[command[0]])]
        for part in command[1:]:
            if part == "{knobs}":
                filled += self.instance.knob_arguments(self.configuration, moment)
            elif part == "{connection}":
                arguments = self.instance.dbms.generators[self.generator.name]
                filled += [self.instance.fill(argument) for argument in arguments]
            else:
                filled.append(part.format(**placeholders))
        return filled

    def environment(self, moment: Moment) -> dict[str, str]:
        """Return the environment of its commands; that of a DBMS inside the generator has the knobs, too."""
        is_inside = self.instance.dbms.lifecycle is None
        return self.instance.environment_with(self.configuration if is_inside else {}, moment)

    def write_files(self, seconds: float = 1, requests: int = 1) -> None:
        """Make the private directory anew, with the files of the spec; from then on it is the generator's."""
        if self.out.exists():
            shutil.rmtree(self.out)
        self.out.mkdir(mode=0o700)
        placeholders = self._placeholders(seconds, requests)
        for name, lines in self.generator.files.items():
            (self.out / name).write_text(
                "".join(line.format(**placeholders) + "\n" for line in lines), encoding="utf-8"
            )
        hand_over(self.out, self.instance.user)

    def _placeholders(self, seconds: float, requests: int) -> dict[str, object]:
        parameters = {**self.generator.parameters, **self.workload.parameters}
        return {
            **self.instance.placeholders,
            "path": self.paths,
            "out": self.out,
            "records": self.workload.records,
            "records_per": SimpleNamespace(
                **{
                    name: max(1, self.workload.records // int(value))
                    for name, value in parameters.items()
                    if _counts(value)
                }
            ),
            "threads": self.workload.threads,
            "seconds": max(1, math.ceil(seconds)),
            "requests": max(1, requests),
            "parameter": SimpleNamespace(**{name: _plain(value) for name, value in parameters.items()}),
        }


def _counts(value: Value) -> bool:
    return type(value) is int and value >= 1


def _plain(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def load_data(call: GeneratorCall) -> None:
    """Make the data with the generator's own commands; raises GeneratorError with its words when one fails."""
    call.write_files()
    for command in call.generator.load:
        process = _Process(call.fill(command, "init"), "init", call, call.instance.start)
        try:
            process.finish(LOAD_S)
        finally:
            process.stop()


class CommandRun(AbstractContextManager["CommandRun"]):
    """A run of a generator: the same steps and the same result as a YCSB run. Use it in a `with` statement.

    `ask` returns what is in force, when the DBMS is not asked through the load client. The warm-up is a call of its
    own: its figures are thrown away, but for the speed, which sets the length of a run that is bound by a number.
    """

    def __init__(
        self,
        call: GeneratorCall,
        *,
        warmup_s: float,
        measure_s: float,
        interval_ms: int,
        ask: Callable[[], Mapping[str, str]],
        supervise: "Callable[..., subprocess.Popen[bytes]] | None" = None,
    ) -> None:
        self._call, self._supervise, self._ask = call, supervise or call.instance.start, ask
        self._warmup_s, self._measure_s, self._interval_s = warmup_s, measure_s, interval_ms / 1000
        self._requests = 0
        self._process: _Process | None = None
        self._measuring = False

    @property
    def root_pid(self) -> int:
        """Root of the measured call's process tree; starts it: a DBMS inside it is watched from its start."""
        return self._measured_call().pid

    def _measured_call(self) -> "_Process":
        if not self._measuring:
            self._measuring = True
            self._start(self._measure_s, self._requests)
        assert self._process is not None  # noqa: S101
        return self._process

    def wait_connected(self, timeout: float) -> Connected:
        """Run the warm-up and ask what is in force; a DBMS inside the generator can only tell when it was opened."""
        if self._call.generator.bound == "requests":
            self._find_speed(timeout)
        elif self._warmup_s > 0 or self._call.instance.dbms.lifecycle is None:
            self._finish(self._start(self._warmup_s, 0), self._warmup_s + timeout)
        return Connected(dict(self._ask()), {})

    def _find_speed(self, timeout: float) -> None:
        """Warm up with few requests, then with as many as fit the rest of the time; set the number for the run."""
        spent, requests = 0.0, self._call.generator.warmup_requests
        for _ in range(_SPEED_CALLS):
            result = self._finish(self._start(0, requests), self._warmup_s + timeout)
            spent += result.window_s
            speed = result.operations["ALL"]["ok"] / max(result.window_s, _SHORTEST_S)
            if spent >= self._warmup_s / 2:
                break
            requests = math.ceil(speed * (self._warmup_s - spent))
        self._requests = math.ceil(speed * self._measure_s)

    def wait_measuring(self, timeout: float) -> int:
        """Start the measured call, unless it has; returns when that was, in nanoseconds since 1970."""
        return self._measured_call().begin_ns

    def wait_measured(self, timeout: float) -> int:
        """Wait for the end of the measured call; returns its time in nanoseconds since 1970."""
        self._result = self._finish(self._measured_call(), timeout)
        return time.time_ns()

    def result(self) -> LoadResult:
        """Return the figures, once `wait_measured` has returned."""
        return self._result

    def log_tail(self) -> str:
        """Return the generator's last lines."""
        return self._process.tail() if self._process else ""

    def stop(self) -> None:
        """End the generator; one that has finished is gone already."""
        if self._process is not None:
            self._process.stop()

    def _start(self, seconds: float, requests: int) -> "_Process":
        self.stop()
        self._call.write_files(seconds, requests)  # anew: what an earlier call has left is not output of this one
        generator = self._call.generator
        command = self._call.fill(generator.run, "start", seconds=seconds, requests=requests)
        self._process = _Process(command, "start", self._call, self._supervise)
        return self._process

    def _finish(self, process: "_Process", timeout: float) -> LoadResult:
        output = process.finish(timeout)
        generator = self._call.generator
        try:
            return read_output(generator.parser, output, self._interval_s)
        except ValueError as error:
            message = f"the output of {generator.name} cannot be used: {error}"
            raise GeneratorError("unreadable", message, process.tail()) from error

    def __exit__(self, *_: object) -> None:
        """End the generator, whatever happened."""
        self.stop()


class _Process:
    """A command whose lines are kept, each with the time at which it came."""

    def __init__(
        self,
        command: list[str],
        moment: Moment,
        call: GeneratorCall,
        supervise: "Callable[..., subprocess.Popen[bytes]]",
    ) -> None:
        program, generator = Path(command[0]).name, call.generator.name
        self._name, self._call = program if program == generator else f"{generator} ({program})", call
        self._begin, self.begin_ns = time.monotonic(), time.time_ns()
        self._lines: list[tuple[float, str]] = []
        self._bytes = 0
        self._process = supervise(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=call.out,
            env=call.environment(moment),
            reach=[Path(path) for path in vars(call.paths).values()],
        )
        self._listener = threading.Thread(target=self._listen, name="generator-output", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _listen(self) -> None:
        """Keep lines; a carriage return ends one too, since progress is shown that way."""
        assert self._process.stdout is not None  # noqa: S101
        partial = b""
        with self._process.stdout as stdout:
            while chunk := stdout.read1(65536):  # type: ignore[attr-defined]
                self._bytes += len(chunk) + _LINE_BYTES * (chunk.count(b"\n") + chunk.count(b"\r"))
                if self._bytes > MOST_BYTES:  # it goes on, and `finish` says so
                    continue
                at = time.monotonic() - self._begin
                *lines, partial = (partial + chunk).replace(b"\r", b"\n").split(b"\n")
                self._lines += [(at, line.decode(errors="replace")) for line in lines]
        self._lines.append((time.monotonic() - self._begin, partial.decode(errors="replace")))

    def finish(self, timeout: float) -> Output:
        """Wait for the end; raises GeneratorError when it does not come in time or the exit code is not 0.

        The process is not reaped: what it used can be read until `stop`.
        """
        descriptor = os.pidfd_open(self._process.pid)
        try:
            ended, _, _ = select.select([descriptor], [], [], timeout)
        finally:
            os.close(descriptor)
        if not ended:
            raise GeneratorError("timeout", f"{self._name} did not end within {timeout:g} s", self.tail())
        duration = time.monotonic() - self._begin
        outcome = cast("os.waitid_result", os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT))
        # A signal comes as a negative number, as `subprocess` tells it.
        code = outcome.si_status if outcome.si_code == os.CLD_EXITED else -outcome.si_status
        self._listener.join(_STOP_S)
        if code != 0:
            raise GeneratorError("failed", f"{self._name} ended with exit code {code}{self._end()}", self.tail(), code)
        if self._bytes > MOST_BYTES:
            message = f"{self._name} printed more than {MOST_BYTES >> 20} MiB, the limit of what is kept of its output"
            raise GeneratorError("unreadable", message, self.tail())
        call = self._call
        return Output(self._lines, duration, call.out, call.instance.data, call.workload.threads)

    def tail(self) -> str:
        """Return its last lines."""
        return "\n".join(line for _, line in self._lines if line.strip())[-_TAIL_LINES * 120 :]

    def _end(self) -> str:
        """Return its last line, for a program that says why it ends in words that no complaint is known by."""
        tail = self.tail()
        return f"; its last line: {tail.splitlines()[-1][:_LONGEST]}" if tail and find_complaint(tail) is None else ""

    def stop(self) -> None:
        """End it, by force if need be."""
        end_process(self._process, self._listener)
