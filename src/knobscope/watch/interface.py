"""What every way of watching offers, and the shape of what it tells."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from knobscope.errors import UserError
from knobscope.watch.event_operations import Operation
from knobscope.watch.files import FileTree
from knobscope.watch.profile import Profile

#: Whether everything on the device counts, or only what the followed processes caused.
Scope = Literal["device", "process"]

#: What can be watched in addition to the block layer.
ProbeName = Literal["syscalls", "faults", "waits"]

#: Whose files system calls and faults are counted on: of all devices, or of the watched one.
FileScope = Literal["all", "device"]

#: Rows of `io_profile`, in this order.
OPERATIONS = ("read", "write", "discard", "flush")


@dataclass(frozen=True)
class Place:
    """Where processes that run already are watched.

    `cgroup`: all of it, as /proc/PID/cgroup names it; None: these processes, where they are, or with `is_moved` in a
    cgroup of their own until the run ends.
    """

    pids: Sequence[int]
    cgroup: str | None = None
    is_moved: bool = False


class WatchFailedError(UserError):
    """The monitor refused a command or ended before its time."""


class Watch(AbstractContextManager["Watch"]):
    """Watches one device through any number of runs: follow, begin, end, and again."""

    #: bpf | light | procfs
    monitor: str
    #: Why procfs had to replace BPF; None when it did not.
    reason: str | None = None
    #: Probe that was asked for and cannot work on this machine -> why.
    missing_probes: Mapping[str, str] = MappingProxyType({})
    #: What the kernel of this machine does not show, or shows at a higher cost, in sentences.
    limits: Sequence[str] = ()

    def describe_fallback(self) -> str:
        """Return the reason as a message for a person."""
        return f"knobscope: block-level facts are not available ({self.reason}); recording totals from procfs"

    @abstractmethod
    def follow(self, pids: Sequence[int]) -> None:
        """Begin a new run with these processes and all their descendants, present and future."""

    @abstractmethod
    def attach(self, place: Place) -> None:
        """Begin a new run with processes that run already; their children count, too."""

    @abstractmethod
    def begin(self) -> None:
        """Set all counters to zero: what is watched begins here."""

    @abstractmethod
    def end(self) -> Profile:
        """Return what happened since `begin`, and let the processes go."""

    def abandon(self) -> None:
        """Let the processes of a run go whose end nobody waited for; nothing happens where it was."""
        return

    def write_trace(
        self, directory: Path, trees: Sequence[FileTree], operations: Sequence[Operation] = ()
    ) -> tuple[int, int] | None:
        """Write every request of the last run into a directory; return how many, and how many were lost.

        `trees` are the files of the run, in the order in which they were read; `operations`, what threads of the server
        were at. None: no requests were recorded.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Stop watching; nothing is left behind."""

    def __exit__(self, *_: object) -> None:
        """Stop watching, however the block ends."""
        self.close()
