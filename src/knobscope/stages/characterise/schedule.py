"""How much is measured of a device, and for how long."""

from dataclasses import dataclass

from knobscope.stages.characterise.curves import KIB, PAGE, Pattern, Point


@dataclass(frozen=True)
class Schedule:
    """What is measured. Windows become longer, and fewer, where a device answers so seldom that few requests fit in."""

    mode: str
    read_depths: tuple[int, ...]  # random; sequential at every other one
    write_depths: tuple[int, ...]
    write_sizes: tuple[int, ...]  # bytes, four at a time
    sweep: bool  # whether the write unit is looked for with all sizes to 128 KiB
    file_bytes: int
    window_ms: int
    repeats: int
    requests: int  # fewest of a window, so that the median means something
    read_requests: int  # fewest random reads at a depth where a slow device gets one window: rates are compared there
    replay_ms: int  # longest time for the list of durable writes
    finer_depths: int  # depths that are measured between two others, to find the one that saturates

    def reads(self) -> list[Point]:
        """Return the points of the read curves."""
        return [
            *(_depth("randread", depth) for depth in self.read_depths),
            *(_depth("read", depth) for depth in self.read_depths[::2]),
        ]

    def writes(self) -> list[Point]:
        """Return the points of the write curves."""
        return [
            *(Point("write_size", "randwrite", size, 4) for size in self.write_sizes),
            *(_depth(pattern, depth) for depth in self.write_depths for pattern in ("write", "randwrite")),
        ]


def _depth(pattern: Pattern, depth: int) -> Point:
    return Point("queue_depth", pattern, PAGE, depth)


#: Less than a minute.
QUICK = Schedule(
    "quick",
    read_depths=(1, 4, 16, 32, 64),
    write_depths=(1, 16),
    write_sizes=tuple(size * KIB for size in (4, 16, 64, 128, 256, 1024, 4096)),
    sweep=False,
    file_bytes=256 << 20,
    window_ms=200,
    repeats=2,
    requests=60,
    read_requests=60,
    replay_ms=4000,
    finer_depths=2,
)

#: Somewhat more than a minute, a disk two or three.
FULL = Schedule(
    "full",
    read_depths=(1, 2, 4, 8, 16, 32, 64, 128),
    write_depths=(1, 8, 32),
    write_sizes=tuple(size * KIB for size in (4, 16, 32, 64, 128, 256, 1024, 4096)),
    sweep=True,
    file_bytes=1 << 30,
    window_ms=200,
    repeats=3,
    requests=200,
    read_requests=1000,
    replay_ms=10_000,
    finer_depths=4,
)
