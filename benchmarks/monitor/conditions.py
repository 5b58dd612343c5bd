"""The conditions that are compared: nothing, knobscope's monitor, and other tools that watch the same requests."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from costs import list_programs
from load import BLOCK, Running, Target

from knobscope.watch import Watch, open_watch

_HERE = Path(__file__).resolve().parent
_READY_S, _STOP_S = 30.0, 20.0
SETTLED_S = 0.5  # without another program, a tool counts as loaded
_MOUNT_AND_RUN = """
import os, subprocess, sys
for kind, folder in (("debugfs", "debug"), ("tracefs", "tracing")):
    subprocess.run(["mount", "-t", kind, "none", f"/sys/kernel/{folder}"], check=False)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class UnavailableError(Exception):
    """The tool is missing or does not load on this machine; the message says why."""


@dataclass(frozen=True)
class Condition:
    """Something that watches; `open` starts it on a target and ends it."""

    name: str
    start: Callable[[Target], Iterator[Running]]

    def open(self, target: Target) -> AbstractContextManager[Running]:
        """Start it; UnavailableError when this machine cannot."""
        return contextmanager(self.start)(target)


class _Nothing:
    def begin(self, pid: int) -> None:
        """Nothing watches."""

    def end(self) -> None:
        """Nothing was counted."""


class _Watching:
    """knobscope's monitor: a run per load. Of a trace, the requests that were recorded count."""

    def __init__(self, watch: Watch, op: str, is_shared: bool) -> None:
        self._watch = watch
        self._op = op
        self._is_shared = is_shared

    def begin(self, pid: int) -> None:
        """Follow fio."""
        self._watch.follow([pid])
        self._watch.begin()

    def end(self) -> int | None:
        """Return fio's own requests; a merged one counts as what it was merged from. Light mode knows no owners."""
        profile = self._watch.end()
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            traced = self._watch.write_trace(Path(directory, "trace"), [])
        row = next(row for row in profile["io_profile"] if row["op"] == self._op)
        if profile["monitor"] == "light":
            return None if self._is_shared else int(row["bytes"]) // BLOCK - int(profile["lost_events"])
        return int(row["own_bytes"]) // BLOCK - int(profile["lost_events"]) - (traced[1] if traced else 0)


class _PerEvent:
    """One of the small programs of this folder, which tells its number of requests on demand."""

    def __init__(self, process: subprocess.Popen[str], counts: bool) -> None:
        self._process = process
        self._counts = counts

    def begin(self, pid: int) -> None:
        """Count from zero."""
        self._ask()

    def end(self) -> int | None:
        """Return the requests whose beginning and end both arrived, where all are fio's and any are told."""
        count = self._ask()
        return count if self._counts else None

    def _ask(self) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("read\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline())["requests"])


def _start_nothing(_: Target) -> Iterator[Running]:
    yield _Nothing()


def _make_watch(*probes: str, is_traced: bool = False, is_light: bool = False) -> Callable[[Target], Iterator[Running]]:
    def start(target: Target) -> Iterator[Running]:
        with (
            tempfile.TemporaryDirectory(dir="/dev/shm") as spool,
            open_watch(
                target.block,
                BLOCK,
                target.scope,
                probes=probes,  # type: ignore[arg-type]
                trace=Path(spool) if is_traced else None,
                light=is_light,
            ) as watch,
        ):
            missing = watch.reason or "; ".join(watch.missing_probes.values())
            if missing:
                raise UnavailableError(missing)
            yield _Watching(watch, target.pattern.removeprefix("rand"), target.scope == "process")

    return start


def _make_per_event(way: str) -> Callable[[Target], Iterator[Running]]:
    def start(target: Target) -> Iterator[Running]:
        number = f"{target.block.major}:{target.block.minor}"
        command = ["/usr/bin/python3", "-I", str(_HERE / "per_event.py"), way, number]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, text=True, **pipes) as process:
            assert process.stdout
            assert process.stderr
            if process.stdout.readline() != "ready\n":
                raise UnavailableError(process.stderr.read().strip().splitlines()[-1])
            yield _PerEvent(process, way != "empty" and target.scope == "device")
            process.stdin.close()  # type: ignore[union-attr] - its end

    return start


def _make_tool(package: str, command: Sequence[str]) -> Callable[[Target], Iterator[Running]]:
    def start(target: Target) -> Iterator[Running]:
        arguments = [
            word.format(disk=target.block.name, device=target.block.major << 20 | target.block.minor)
            for word in command
        ]
        if shutil.which(arguments[0]) is None:
            raise UnavailableError(f"not installed: `apt-get install {package}`")
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(_with_tracefs(arguments), stdout=output, stderr=output)
            try:
                _wait_for_programs(process, output)
                yield _Nothing()
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    return start


def _wait_for_programs(process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
    """Wait until the tool has loaded all its programs."""
    deadline, loaded, since = time.monotonic() + _READY_S, 0, time.monotonic()
    while not loaded or time.monotonic() < since + SETTLED_S:
        if process.poll() is not None or time.monotonic() > deadline:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines() or ["it said nothing"]
            raise UnavailableError(f"does not load here: {_pick(lines)}")
        now = len(list_programs([process.pid]))
        if now != loaded:
            loaded, since = now, time.monotonic()
        time.sleep(0.005)


def _pick(lines: list[str]) -> str:
    """Return the line that says most: the first that tells of a failure, else the last."""
    phrases = ("error:", "not permitted", "permission", "unable", "failed", "no such file")
    telling = [line for line in lines if any(phrase in line.lower() for phrase in phrases)]
    return (telling or lines[-1:])[0].strip()


def _with_tracefs(command: list[str]) -> list[str]:
    """Return a command that finds tracefs, in a mount namespace of its own where it is not mounted."""
    if Path("/sys/kernel/tracing/events").exists():
        return command
    return ["unshare", "--mount", sys.executable, "-c", _MOUNT_AND_RUN, *command]


CONDITIONS = [
    Condition("nothing", _start_nothing),
    Condition("nothing, again", _start_nothing),
    Condition("two empty programs", _make_per_event("empty")),
    Condition("knobscope", _make_watch()),
    Condition("knobscope --light", _make_watch(is_light=True)),
    Condition("knobscope --with syscalls", _make_watch("syscalls")),
    Condition("knobscope --with faults", _make_watch("faults")),
    Condition("knobscope --with waits", _make_watch("waits")),
    Condition("knobscope --trace", _make_watch(is_traced=True)),
    Condition(
        "bpftrace, sizes and latency", _make_tool("bpftrace", ["bpftrace", str(_HERE / "counts.bt"), "{device}"])
    ),
    Condition("biolatency (libbpf)", _make_tool("libbpf-tools", ["/usr/sbin/biolatency", "-d", "{disk}"])),
    Condition("bitesize (libbpf)", _make_tool("libbpf-tools", ["/usr/sbin/bitesize", "-d", "{disk}"])),
    Condition("biolatency (bcc)", _make_tool("bpfcc-tools", ["/usr/sbin/biolatency-bpfcc"])),
    Condition("bitesize (bcc)", _make_tool("bpfcc-tools", ["/usr/sbin/bitesize-bpfcc"])),
    Condition("blktrace", _make_tool("blktrace", ["blktrace", "-d", "/dev/{disk}", "-o", "-"])),
    Condition("ring buffer, an event per issue and completion", _make_per_event("ring")),
    Condition("perf buffer, an event per issue and completion", _make_per_event("perf")),
]
