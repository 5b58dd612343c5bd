"""The client of `probes/monitor.py`, the one program that needs root."""

import contextlib
import filecmp
import io
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from knobscope.devices import BlockDevice
from knobscope.processes import find_sent_signal, read_tail
from knobscope.shipped import SHIPPED
from knobscope.tables import IoProfileRow, check_document, empty_row
from knobscope.watch.event_operations import Operation
from knobscope.watch.files import FileTree
from knobscope.watch.interface import FileScope, Place, ProbeName, Profile, Scope, Watch, WatchFailedError
from knobscope.watch.levels import LevelMeter
from knobscope.watch.processors import ProcessorMeter
from knobscope.watch.profile import CountedFile
from knobscope.watch.recording import Announced, Recording

_PROBES = SHIPPED / "probes"
_INSTALLED = Path("/usr/local/lib/knobscope/probes")  # root's alone: what sudo may run for others
_PYTHON = "/usr/bin/python3"  # the system's: bcc comes with the distribution, not from a package index
_READY_TIMEOUT_S = 300.0  # compiling takes a second here, a minute and more on an emulated processor
_ANSWER_TIMEOUT_S = 30.0
_CLOSE_TIMEOUT_S = 10.0
_READ_BYTES = 1 << 20
_EXPECTED = "an answer of the monitor of this version"

#: A line of the monitor: `event` says which keys it has.
_Message = dict[str, object]


class _Ready(TypedDict):
    missing_probes: dict[str, str]
    limits: list[str]


class MonitorUnavailableError(Exception):
    """The monitor cannot observe this device on this machine; the message says why."""


class MonitorWatch(Watch):
    """Counts block requests in the kernel; one privileged process serves all runs and ends with this one.

    With `is_light` it counts completions of the whole device alone.
    """

    def __init__(
        self,
        block: BlockDevice,
        unit: int,
        scope: Scope,
        probes: Sequence[ProbeName] = (),
        files: FileScope = "all",
        calls: Sequence[str] = (),
        trace: Path | None = None,
        *,
        is_light: bool = False,
    ) -> None:
        self.monitor = "light" if is_light else "bpf"
        self._recording = Recording(trace) if trace else None
        self._files: list[CountedFile] = []
        self._block = block
        self._processors, self._levels = ProcessorMeter(), LevelMeter(block)
        self._answers: queue.SimpleQueue[_Message | None] = queue.SimpleQueue()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process that writes to it
        options = ["--device", f"{block.major}:{block.minor}", "--unit", str(unit), "--scope", scope]
        options += [*(f"--with={probe}" for probe in probes), f"--files={files}", *(f"--call={call}" for call in calls)]
        options += ["--trace"] if trace else ["--light"] if is_light else []
        self._process = _start([_PYTHON, "-I", str(_find_program()), *options], self._errors)
        self._reader = threading.Thread(target=self._read, name="monitor", daemon=True)
        self._reader.start()
        try:
            answer = self._receive(_READY_TIMEOUT_S)
        except WatchFailedError as failure:
            is_killed = find_sent_signal(self._process.poll()) is not None
            self.close()
            if is_killed:
                raise  # that says nothing of what this machine permits
            raise MonitorUnavailableError(str(failure)) from failure
        if answer["event"] != "ready":
            self.close()
            raise MonitorUnavailableError(answer.get("reason"))
        ready = check_document(_Ready, answer, _EXPECTED)
        self.missing_probes = ready["missing_probes"]
        self.limits = list(dict.fromkeys(ready["limits"]))  # of several probes, which may say the same

    def follow(self, pids: Sequence[int]) -> None:
        """Put the processes into a control group of their own; their children are born into it."""
        self._ask("follow " + " ".join(str(pid) for pid in pids), "following")

    def attach(self, place: Place) -> None:
        """Watch processes where they are, or in a control group of their own, from which they go back in any case."""
        pids = " ".join(map(str, place.pids))
        if place.is_moved:
            self._ask(f"borrow {pids}", "following")
        else:
            self._ask(f"watch {place.cgroup or pids}", "watching")

    def begin(self) -> None:
        """Set all counters in the kernel to zero."""
        if self._recording:
            self._recording.start()
        self._processors, self._levels = ProcessorMeter(), LevelMeter(self._block)
        self._ask("begin", "begun")

    def end(self) -> Profile:
        """Return the counters since `begin`; the processes go back to the control group that they came from."""
        machine_cpu_share = self._processors.busy_share()
        answer = self._ask("end", "profile")
        levels = self._levels.list_rows()
        del answer["event"]
        profile = check_document(Profile, answer, _EXPECTED)
        self._files = profile["files"]
        if profile["monitor"] == "light":
            profile["io_profile"] = [{**empty_row(IoProfileRow), **row} for row in profile["io_profile"]]
        limits = [*self.limits, *profile.get("limits", ())]
        profile |= {"machine_cpu_share": machine_cpu_share, "levels": levels, "limits": limits}
        return profile

    def abandon(self) -> None:
        """Let the processes of a run go that failed; one that has ended has been waited for already."""
        if self._process.poll() is None:  # else its warden, or who comes next, puts them back
            self._ask("release", "released")

    def write_trace(
        self, directory: Path, trees: Sequence[FileTree], operations: Sequence[Operation] = ()
    ) -> tuple[int, int] | None:
        """Write the requests of the last run."""
        return self._recording.write(directory, trees, self._files, operations) if self._recording else None

    def close(self) -> None:
        """End the monitor; what it made in the system, it removes."""
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()  # the end of its input is the end of the monitor
        try:
            self._process.wait(_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(PermissionError):  # root's, through sudo: it ends when it has put all back
                self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout:
            self._process.stdout.close()
        self._errors.close()
        if self._recording:
            self._recording.close()

    def _ask(self, command: str, expected: str) -> "_Message":
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        with contextlib.suppress(BrokenPipeError):  # it has ended: what it said last tells why
            self._process.stdin.write(f"{command}\n".encode())
        answer = self._receive(_ANSWER_TIMEOUT_S)
        if answer["event"] != expected:
            raise WatchFailedError(f"the monitor answers `{command}` with: {answer.get('reason', answer['event'])}")
        return answer

    def _receive(self, timeout_s: float) -> "_Message":
        """Return the next answer of the monitor; raises WatchFailedError when none comes in time."""
        try:
            answer = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            raise WatchFailedError(
                f"the monitor has not answered for {timeout_s:g} s; its process is still there"
            ) from None
        if answer is None:
            self._answers.put(None)  # it stays ended
            raise WatchFailedError(self._describe_end())
        return answer

    def _read(self) -> None:
        """Sort what the monitor says, in a thread of its own: records come unasked and must not have to wait."""
        assert isinstance(self._process.stdout, io.RawIOBase)  # noqa: S101 - for the type checker
        stream = io.BufferedReader(self._process.stdout, _READ_BYTES)
        for line in stream:
            if not line.endswith(b"\n"):
                break  # the monitor was killed
            message: _Message = json.loads(line)
            if message["event"] != "records":
                self._answers.put(message)
                continue
            announced = check_document(Announced, message, _EXPECTED)
            records = stream.read(announced["bytes"])
            if self._recording:
                self._recording.add(announced, records)
        self._answers.put(None)

    def _describe_end(self) -> str:
        try:
            code = str(self._process.wait(_CLOSE_TIMEOUT_S))
        except subprocess.TimeoutExpired:
            code = "unknown, it still runs"
        output = read_tail(Path(f"/proc/self/fd/{self._errors.fileno()}"), 5).strip()
        return f"the monitor ended (exit code {code}): " + (" / ".join(output.splitlines()) or "it said nothing")


def _find_program() -> Path:
    """Return the monitor: ours for root, for everybody else the installed one, which has to be the same."""
    if os.geteuid() == 0:
        return _PROBES / "monitor.py"
    remedy = "let root call setup/install-helper.sh, and allow it in sudoers (docs/reference/security.md)"
    if not (_INSTALLED / "monitor.py").is_file():
        raise MonitorUnavailableError(f"BPF needs root, and no monitor is installed in {_INSTALLED}; {remedy}")
    ours = [path.name for pattern in ("*.py", "*.h", "*.c") for path in _PROBES.glob(pattern)]
    equal_files, _, _ = filecmp.cmpfiles(_PROBES, _INSTALLED, ours, shallow=False)
    if len(equal_files) < len(ours):
        raise MonitorUnavailableError(f"the monitor in {_INSTALLED} is of another version than this checkout; {remedy}")
    return _INSTALLED / "monitor.py"


def _start(command: list[str], errors: Any) -> "subprocess.Popen[bytes]":
    """Start the monitor as root or through sudo, out of reach of the terminal's Ctrl-C."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    if os.geteuid() != 0:
        command = ["sudo", "-n", *command]
    try:
        return subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,  # who called sudo on *us* says nothing about whose processes root may follow
            process_group=0,
        )
    except OSError as failure:
        raise MonitorUnavailableError(f"the monitor needs root; {command[0]}: {failure.strerror}") from failure
