"""What reached each level of a stack of storage, by the kernel's own sums: without BPF, and at no cost per request."""

from pathlib import Path

from knobscope.devices import BlockDevice
from knobscope.devices.stacks import describe_level, list_levels
from knobscope.watch.profile import LevelRow

_SECTORS = {"read": 2, "write": 6}  # columns of a device's `stat`, in 512 bytes
#: Operation -> bytes.
_Sums = dict[str, int]


class LevelMeter:
    """Measures from its making on: a device, and what it lies on."""

    def __init__(self, block: BlockDevice) -> None:
        self._levels = list_levels(block)
        self._before = [_sum_level(level) for level in self._levels]

    def list_rows(self) -> list[LevelRow]:
        """Return a row per level, from the device down; none where it is stacked on nothing."""
        if len(self._levels) == 1:
            return []
        rows: list[LevelRow] = []
        for level, before in zip(self._levels, self._before, strict=True):
            now = _sum_level(level)
            added = {op: now[op] - before[op] for op in _SECTORS}
            rows.append(
                {
                    "level": len(rows),
                    "devices": [describe_level(block) for block in level],
                    "read_bytes": added["read"],
                    "write_bytes": added["write"],
                    "read_amplification": _divide(added["read"], rows[-1]["read_bytes"]) if rows else None,
                    "write_amplification": _divide(added["write"], rows[-1]["write_bytes"]) if rows else None,
                }
            )
        return rows


def _divide(lower_bytes: int, upper_bytes: int) -> float | None:
    return lower_bytes / upper_bytes if upper_bytes else None


def _sum_level(level: list[BlockDevice]) -> _Sums:
    sums = [Path(f"/sys/dev/block/{block.major}:{block.minor}/stat").read_text().split() for block in level]
    return {op: sum(int(numbers[column]) for numbers in sums) * 512 for op, column in _SECTORS.items()}
