"""What a study may take of the disk: its budget, and what is free."""

import shutil
from contextlib import suppress
from pathlib import Path

from knobscope.devices import require_free
from knobscope.errors import UserError

__all__ = ["DiskRoom"]


class DiskRoom:
    """Room for a study's data on a device, and its results; loaded data that is not in use makes way.

    The device belongs to the process that has this. `study` is what to name when the budget is too small.
    """

    def __init__(self, study: str, budget_gb: float, scratch: Path, results: Path) -> None:
        self.study, self.budget = study, budget_gb * 1e9
        self.scratch, self.results = scratch, results
        self._in_use: set[Path] = set()

    def keep(self, snapshot: Path) -> None:
        """Note that a snapshot is in use until the end of this process."""
        self._in_use.add(snapshot)
        (snapshot / "snapshot.json").touch()

    def require(self, needed: int, purpose: str) -> None:
        """Make room for so many bytes; raises UserError with what to do when there is none."""
        excess = _size(self.scratch) + _size(self.results) + needed - self.budget
        for snapshot in self._idle_snapshots():
            if excess <= 0:
                break
            excess -= _size(snapshot)
            shutil.rmtree(snapshot)
        if excess > 0:
            raise UserError(
                f"study {self.study}: {purpose} needs {needed / 1e9:.3g} GB, which is {excess / 1e9:.3g} GB more than "
                f"its budget of {self.budget / 1e9:.3g} GB leaves; raise `budget.disk_gb`, or remove what you do not "
                f"need any more of {self.results} (traces) and {self.scratch}"
            )
        require_free(self.scratch, needed, purpose)

    def largest_copy(self) -> int:
        """Return the size of the largest snapshot, of which a run gets a copy."""
        return max(map(_size, self._snapshots()), default=0)

    def _idle_snapshots(self) -> list[Path]:
        """Snapshots that nobody uses now, the one that was used longest ago first."""
        idle = [path for path in self._snapshots() if path not in self._in_use]
        return sorted(idle, key=lambda path: (path / "snapshot.json").stat().st_mtime)

    def _snapshots(self) -> list[Path]:
        return [path.parent for path in self.scratch.glob("snapshots/*/snapshot.json")]


def _size(directory: Path) -> int:
    """Return the bytes that a directory takes on the disk; 0 when there is none."""
    total = 0
    for path in directory.rglob("*"):
        with suppress(FileNotFoundError):  # results of another case come and go meanwhile
            total += path.lstat().st_blocks * 512
    return total
