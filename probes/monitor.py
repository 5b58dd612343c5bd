"""The one privileged program of knobscope: counts the block requests of a device and tells whose they are.

Run as ``/usr/bin/python3 -I monitor.py --device MAJ:MIN --unit BYTES``, by root or through ``sudo -n``; needs the
standard library and bcc, nothing else. Commands are lines on stdin, answers are lines of JSON on stdout. It ends with
its caller (end of stdin), moves only processes of the user who called it, and writes no file that the caller names:
what is compiled is kept in a folder of root's (kept.py).

    follow PID [PID...]  a new run, of these processes with all their descendants, present and future, in a cgroup of
                         the monitor's own
    borrow PID [PID...]  the same, and should the monitor be killed with -9, another process gives them back
    watch PID [PID...]   the same processes where they are
    watch /CGROUP        a new run, of all processes of this cgroup and those below, where they are
    begin                zero all counters
    end                  read all counters; the run's processes go back to where they were
    release              they go back, and nothing is read: a run that failed

With `--trace` lines {"event": "records", "bytes": N, ...} come unasked between `begin` and the answer to `end`, each
followed by N bytes: records as the program event_trace.bpf.h lays them out, each behind the ring's own eight bytes.

Exit code 0 after the end of stdin, 3 when it cannot observe the device (any more), 128 + signal after a signal.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# -I leaves the program's own directory out. It comes last, so that nothing in it can stand in for another module.
sys.path.append(str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True  # no files of root's in somebody's checkout

from block_profile import summarise_run  # noqa: E402
from cgroup import RunCgroup, find_hierarchy  # noqa: E402
from counters import Counters  # noqa: E402
from disk import Disk, find_disk  # noqa: E402
from event_trace import EventTrace, read_traced_kernel  # noqa: E402
from followed import Group  # noqa: E402
from in_place import HeldCgroup, HeldProcesses  # noqa: E402
from kept import list_refusals  # noqa: E402
from kernel import UnavailableError, read_kernel  # noqa: E402
from light import LIGHT_NEEDS, LIMIT, LightCounters, LightReading, summarise_light  # noqa: E402
from needs import BLOCK_NEEDS, describe_cost, list_limits  # noqa: E402
from probe import Probe, Selection  # noqa: E402

_MAX_LINE = 65536
_UNAVAILABLE = 3
#: What `--with` adds to the block counters -> module and class of the probe, loaded only when asked for.
_PROBES: dict[str, tuple[str, str]] = {
    "syscalls": ("syscalls", "SyscallProbe"),
    "faults": ("faults", "FaultProbe"),
    "waits": ("waits", "WaitProbe"),
}


class CommandError(Exception):
    """A command that cannot be carried out; the monitor goes on."""


class Monitor:
    """One device, many runs, one after another."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._scope: str = options.scope
        self._interval_s: float = options.interval_ms / 1000
        self._uid = _find_caller()
        self._hierarchy = find_hierarchy()
        self._disk: Disk = find_disk(options.device)
        self._limits, self._counters = _load_counters(options, self._disk)
        devices = self._disk.list_devices() if options.files == "device" else ()
        self._probes, self._missing = _load_probes(options.probes, Selection(devices, tuple(options.calls)))
        self._trace = EventTrace(self._counters) if isinstance(self._counters, Counters) and options.trace else None
        self._began_ns = 0
        self._cgroup: RunCgroup | HeldCgroup | HeldProcesses | None = None
        self._cpu_before_us = 0
        self._snapshots: list[Any] = []
        self._is_counting = False

    def serve(self) -> None:
        """Answer commands until stdin ends; UnavailableError when the device goes away."""
        _emit(
            "ready",
            monitor="bpf",
            kernel=os.uname().release,
            device=self._disk.device,
            name=self._disk.directory.name,
            queues=self._disk.queues,
            scope=self._scope,
            probes=list(self._probes),
            missing_probes=self._missing,
            limits=[
                *self._limits,
                *list_refusals(),
                *(limit for probe in self._probes.values() for limit in probe.limits),
            ],
        )
        pending = b""
        tick = time.monotonic() + self._interval_s
        while True:
            ready, _, _ = select.select([0], [], [], max(tick - time.monotonic(), 0))
            if time.monotonic() >= tick:
                self._tick()
                tick += self._interval_s
                tick = max(tick, time.monotonic())
            if not ready:
                continue
            received = os.read(0, _MAX_LINE)
            if not received:
                return
            *lines, pending = (pending + received).split(b"\n")
            for line in lines:
                self._answer(line.decode(errors="replace"))
            if len(pending) > _MAX_LINE:
                pending = b""
                _emit("error", reason=f"a command is longer than {_MAX_LINE} bytes")

    def close(self) -> None:
        """Give the processes back and detach from the kernel."""
        try:
            self._release()
        finally:
            if self._trace:
                self._trace.close()
            for probe in self._probes.values():
                probe.close()
            self._counters.close()

    def _tick(self) -> None:
        if not self._disk.is_present():
            raise UnavailableError(
                f"device {self._disk.device} ({self._disk.directory.name}) is gone or has another medium"
            )
        if self._is_counting:
            self._snapshots.append(self._counters.sample())
            if self._trace:
                self._send(*self._trace.take(), time.monotonic_ns())
            for probe in self._probes.values():
                probe.sample()

    def _answer(self, line: str) -> None:
        command, *arguments = line.split() or [""]
        try:
            if command in ("follow", "borrow"):
                self._follow(_parse_pids(command, arguments), is_guarded=command == "borrow")
            elif command == "watch":
                self._watch(line.strip().partition(" ")[2].lstrip())
            elif command == "begin" and not arguments:
                self._begin()
            elif command == "end" and not arguments:
                self._end()
            elif command == "release" and not arguments:
                self._is_counting = False
                self._release()
                _emit("released")
            else:
                raise CommandError(
                    f"expected `follow PID [PID...]`, `watch`, `begin`, `end` or `release`, found {line[:100]!r}"
                )
        except (CommandError, OSError) as problem:
            if isinstance(problem, BrokenPipeError):
                raise
            _emit("error", reason=str(problem))

    def _follow(self, pids: list[int], *, is_guarded: bool) -> None:
        self._is_counting = False  # of a run that its caller gave up
        self._release()
        group = self._cgroup = RunCgroup(self._hierarchy, self._announce, is_guarded=is_guarded)
        try:
            followed, refused = group.add_trees(pids, self._uid)
        except OSError:
            self._release()
            raise
        _emit("following", pids=followed, refused=refused)

    def _watch(self, where: str) -> None:
        self._is_counting = False
        self._release()
        if where.startswith("/"):
            self._cgroup = HeldCgroup(self._hierarchy, where, self._uid, self._announce)
        else:
            pids = _parse_pids("watch", where.split())
            self._cgroup = HeldProcesses(self._hierarchy, pids, self._uid, self._announce)
        _emit("watching", where=where)

    def _announce(self, groups: Sequence[Group]) -> None:
        """Tell the kernel side of cgroups before processes are put there, so that it knows these when they leave."""
        self._counters.follow(groups)
        for probe in self._probes.values():
            probe.follow(groups)

    def _begin(self) -> None:
        if self._is_counting:
            raise CommandError("begin: a run is being counted, `end` it first")
        if self._cgroup is None and self._scope == "process":
            raise CommandError("begin: scope `process` needs processes, `follow` them first")
        with _before_others():
            self._cpu_before_us = self._cgroup.read_cpu_us() if self._cgroup else 0
            groups = self._cgroup.directories if self._cgroup else []
            for probe in self._probes.values():
                probe.start(groups)
            if self._trace:
                self._trace.start()
            self._began_ns = self._counters.start(groups)
            self._is_counting = True
            self._snapshots = [self._counters.sample()]
            _emit("begun")

    def _end(self) -> None:
        if not self._is_counting:
            raise CommandError("end: no run is being counted, `begin` one first")
        with _before_others():
            self._snapshots.append(self._counters.sample())
            for probe in self._probes.values():
                probe.pause()
            reading = self._counters.stop()
            self._is_counting = False
        if self._trace:
            self._send(*self._trace.take_rest(), reading.end_ns)
        if isinstance(self._cgroup, HeldCgroup):
            self._cgroup.check_owners()
        cpu_s = self._measure_cpu_s()
        if isinstance(reading, LightReading):
            profile = summarise_light(reading, self._snapshots)
        else:
            profile = summarise_run(reading, self._snapshots, self._scope)
        for probe in self._probes.values():
            profile |= probe.stop()
        if self._uid is not None and self._scope == "device":
            _hide_names(profile["files"])
        with contextlib.suppress(OSError):  # processes that fork faster than they can be moved: tried again later
            self._release()
        _emit("profile", **profile, cpu_s=cpu_s)

    def _measure_cpu_s(self) -> float | None:
        """Return the CPU time since the run began; None without processes, or if these have left no account."""
        if self._cgroup is None:
            return None
        try:
            cpu_us = self._cgroup.read_cpu_us() - self._cpu_before_us
        except FileNotFoundError:  # the cgroup went with them
            return None
        return cpu_us / 1e6 if cpu_us >= 0 else None

    def _send(self, records: bytes, lost: int, now_ns: int) -> None:
        """Hand records of single requests to the caller, as they are, after the line that announces them."""
        times = {"began_ns": self._began_ns, "now_ns": now_ns}
        _emit("records", kind="block", bytes=len(records), lost=lost, **times)
        sys.stdout.buffer.write(records)
        sys.stdout.buffer.flush()

    def _release(self) -> None:
        if self._cgroup:
            self._cgroup.release()
            self._cgroup = None


@contextlib.contextmanager
def _before_others() -> Iterator[None]:
    """Run before all that waits for a processor: in its turn, on a busy machine, a window begins a second late."""
    # A container may forbid it; then the caller sees how late it is.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _parse_pids(command: str, arguments: list[str]) -> list[int]:
    if not arguments or not all(re.fullmatch(r"[1-9]\d{0,9}", argument) for argument in arguments):
        raise CommandError(f"{command}: expected process numbers, found {' '.join(arguments)[:100]!r}")
    return [int(argument) for argument in arguments]


def _load_counters(options: argparse.Namespace, disk: Disk) -> tuple[list[str], Counters | LightCounters]:
    """Return the counters of requests, and sentences on what they do not show."""
    if options.light:
        light = LightCounters(read_kernel(LIGHT_NEEDS), disk, options.unit)
        return [LIMIT, *describe_cost(light.untyped)], light
    kernel = read_traced_kernel(BLOCK_NEEDS) if options.trace else read_kernel(BLOCK_NEEDS)
    counters = Counters(kernel, disk, options.unit, options.scope)
    return list_limits(kernel, counters.untyped), counters


def _load_probes(names: Sequence[str], selection: Selection) -> tuple[dict[str, Probe], dict[str, str]]:
    """Return the probes that load here, and why the others do not."""
    loaded: dict[str, Probe] = {}
    missing: dict[str, str] = {}
    for name in names:
        module, probe = _PROBES[name]
        try:
            loaded[name] = getattr(importlib.import_module(module), probe)(selection)
        except UnavailableError as reason:
            missing[name] = str(reason)
    return loaded, missing


def _hide_names(files: list[dict[str, Any]]) -> None:
    """Name no files to a caller who may not enter their directories: he can look up the inodes of his own."""
    for file in files:
        if file["inode"]:
            file["name"] = f"inode {file['inode']}"


def _find_caller() -> int | None:
    """Return the user whose processes may be followed; None: anybody's, for root itself."""
    if os.geteuid() != 0:
        raise UnavailableError("BPF and cgroups need root; run the monitor as root or through `sudo -n`")
    uid = os.environ.get("SUDO_UID", "0")
    if not re.fullmatch(r"0|[1-9][0-9]{0,9}", uid):
        raise UnavailableError(f"SUDO_UID: found {uid!r:.80}; expected the number of a user, as sudo sets it")
    return int(uid) or None


def _emit(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True, help="MAJ:MIN of a disk, partition or loop device")
    parser.add_argument(
        "--unit", type=int, required=True, help="preferred write size in bytes, what `aligned` refers to"
    )
    scopes = "count everything on the device, or only what the followed processes caused"
    parser.add_argument("--scope", choices=("device", "process"), default="device", help=scopes)
    parser.add_argument("--interval-ms", type=int, default=100, help="of the series")
    parser.add_argument(
        "--with",
        dest="probes",
        action="append",
        default=[],
        choices=sorted(_PROBES),
        help="watch this too, in the followed processes (repeatable)",
    )
    files_help = "with syscalls or faults: all files, or only those on the device"
    parser.add_argument("--files", choices=("all", "device"), default="all", help=files_help)
    calls = "with syscalls: only this one (repeatable)"
    parser.add_argument("--call", dest="calls", action="append", default=[], metavar="NAME", help=calls)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--trace", action="store_true", help="send a record of every counted request too")
    kinds.add_argument("--light", action="store_true", help="count at completions alone: cheaper, with fewer answers")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"\d{1,4}:\d{1,7}", options.device):
        parser.error(f"--device: expected MAJ:MIN, found {options.device!r}")
    if not 512 <= options.unit <= 1 << 30:
        parser.error(f"--unit: expected 512 to {1 << 30}, found {options.unit}")
    if not 10 <= options.interval_ms <= 60_000:
        parser.error(f"--interval-ms: expected 10 to 60000, found {options.interval_ms}")
    return options


def _stop(number: int, _: object) -> None:
    sys.exit(128 + number)


def _handle_stops(handler: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, handler)


def main() -> int:
    """Watch until stdin ends; return the exit code."""
    options = _parse(sys.argv[1:])
    _handle_stops(_stop)
    os.chdir("/")  # a caller who fills /tmp and /var/tmp would have temporary files made in a directory of their own
    event = "unavailable"
    try:
        monitor = Monitor(options)
        event = "error"
        try:
            monitor.serve()
        finally:
            _handle_stops(signal.SIG_IGN)  # a second one must not keep processes from being put back
            monitor.close()
    except UnavailableError as reason:
        _emit(event, reason=str(reason))
        return _UNAVAILABLE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads any more: let Python's last flush succeed
    return 0


if __name__ == "__main__":
    sys.exit(main())
