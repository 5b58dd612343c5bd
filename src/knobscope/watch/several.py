"""Watches several devices as one: that of the data, and those that parts of the data lie on."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from knobscope.watch.event_operations import Operation
from knobscope.watch.files import FileTree
from knobscope.watch.interface import Place, Profile, Watch


class SeveralWatch(Watch):
    """The watch of the data's device, whose profile has those of the others under `elsewhere`, by device.

    Processes are followed on the first device only: a process can be in one control group at a time. The others have to
    be watched in the scope `device`, where all that happens counts.
    """

    def __init__(self, first: Watch, other_watches: Mapping[str, Watch]) -> None:
        self._first, self._others = first, other_watches
        self.monitor = first.monitor
        self.reason = next((watch.reason for watch in (first, *other_watches.values()) if watch.reason), None)
        self.missing_probes, self.limits = first.missing_probes, first.limits

    def follow(self, pids: Sequence[int]) -> None:
        """Begin a new run with these processes."""
        self._first.follow(pids)

    def attach(self, place: Place) -> None:
        """Begin a new run with processes that run already."""
        self._first.attach(place)

    def begin(self) -> None:
        """Set all counters of all devices to zero."""
        for watch in (self._first, *self._others.values()):
            watch.begin()

    def end(self) -> Profile:
        """Return what happened on the first device, and under `elsewhere` on the others."""
        profile = self._first.end()
        elsewhere = {name: watch.end() for name, watch in self._others.items()}
        lost = [count for one in (profile, *elsewhere.values()) if (count := one.get("lost_events")) is not None]
        profile["lost_events"] = sum(lost) if lost else None
        return {**profile, "elsewhere": elsewhere}

    def abandon(self) -> None:
        """Let the processes go."""
        for watch in (self._first, *self._others.values()):
            watch.abandon()

    def write_trace(
        self, directory: Path, trees: Sequence[FileTree], operations: Sequence[Operation] = ()
    ) -> tuple[int, int] | None:
        """Write the requests of the last run to the first device."""
        return self._first.write_trace(directory, trees, operations)

    def close(self) -> None:
        """Stop watching."""
        for watch in (self._first, *self._others.values()):
            watch.close()
