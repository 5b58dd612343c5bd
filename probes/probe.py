"""What every probe other than the block counters offers the monitor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from followed import Group
from program import Program


@dataclass(frozen=True)
class Selection:
    """What a probe counts of the followed processes; nothing named: everything."""

    devices: tuple[str, ...] = ()  # MAJ:MIN; only files on these
    calls: tuple[str, ...] = ()  # only these system calls


class Probe(ABC):
    """One loaded BPF program with its maps; `start`, any number of `sample`s, `pause`, `stop`, and again.

    `limits`: sentences on what this kernel does not show.
    """

    limits: list[str]
    _program: Program

    @abstractmethod
    def __init__(self, selection: Selection) -> None:
        """Load and attach; UnavailableError when this kernel cannot."""

    def follow(self, groups: Sequence[Group]) -> None:
        """Let the processes of these cgroups (directories), and below, be the followed ones, before they are there."""
        self._program.follow(groups)

    @abstractmethod
    def start(self, groups: Sequence[Group]) -> None:
        """Clear all counters and count for the processes of these cgroups from now on."""

    def sample(self) -> None:
        """Drain buffers, take a point of a series, once per interval of a run; nothing where the kernel counts."""
        return

    @abstractmethod
    def pause(self) -> None:
        """Count nothing any more: what counts requests is read next, which takes a while."""

    @abstractmethod
    def stop(self) -> dict[str, Any]:
        """Return keys for the profile of the run that was paused, plain data ready for JSON."""

    def close(self) -> None:
        """Detach from the kernel."""
        self._program.close()
