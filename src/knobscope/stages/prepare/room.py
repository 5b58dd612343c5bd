"""What a study may take of the disk: its budget, and what is free.

Before anything is loaded the space is estimated from the records; once data of a kind has been loaded, its size counts.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from knobscope.devices import require_free
from knobscope.durable_files import DamagedFileError, read_sealed
from knobscope.errors import UserError
from knobscope.generators import record_bytes
from knobscope.specs import Generator, Workload

#: Data, indexes, logs and a copy for the run in hand, per byte of records: at most, before anything is known.
_SPACE_FACTOR = 8
#: Per byte of data that was loaded before: data, a copy, and as much again where another setting takes more.
_MEASURED_FACTOR = 3


def estimate_space(workload: Workload, generator: Generator | None) -> int:
    """Return the bytes that loading a workload's records and a copy of them take at most, by an estimate."""
    return workload.records * (generator.record_bytes if generator else record_bytes(workload)) * _SPACE_FACTOR


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
            if excess <= 0 and shutil.disk_usage(self.scratch).free >= needed:
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

    def space_for(self, kind: str, estimate: int) -> int:
        """Return the bytes to load data of a kind and to copy it: by what such data took before, else the estimate.

        `kind` is what snapshots of the same data have in common, whatever their load-time knobs.
        """
        sizes = [_size(path) for path in self._snapshots() if _read_kind(path) == kind]
        return _MEASURED_FACTOR * max(sizes) if sizes else estimate

    def largest_copy(self) -> int:
        """Return the size of the largest snapshot, of which a run gets a copy."""
        return max(map(_size, self._snapshots()), default=0)

    def _idle_snapshots(self) -> list[Path]:
        """Snapshots that nobody uses now, the one that was used longest ago first."""
        idle = [path for path in self._snapshots() if path not in self._in_use]
        return sorted(idle, key=lambda path: (path / "snapshot.json").stat().st_mtime)

    def _snapshots(self) -> list[Path]:
        return [path.parent for path in self.scratch.glob("snapshots/*/snapshot.json")]


def _read_kind(snapshot: Path) -> str | None:
    """Return the kind of data that a snapshot says it has, None where it does not say."""
    try:
        kind: str | None = read_sealed(snapshot / "snapshot.json").get("kind")
    except (DamagedFileError, FileNotFoundError):  # it is loaded anew when it is needed
        return None
    return kind


def _size(directory: Path) -> int:
    """Return the bytes that a directory takes on the disk; 0 when there is none."""
    total = 0
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            with suppress(FileNotFoundError):  # results of another case come and go meanwhile
                total += Path(folder, name).lstat().st_blocks * 512
    return total
