"""Measures the points of one device: rounds, windows that suit its speed, and where its write unit shows."""

from collections.abc import Callable, Sequence

from knobscope.devices.extents import MAPPED_FILESYSTEMS, inspect_file, read_partition_start
from knobscope.devices.scratch import OpenDevice
from knobscope.stages.characterise.curves import (
    PAGE,
    Measured,
    Point,
    find_saturation,
    measure_sustained,
    measure_window,
    merge,
    next_depth,
)
from knobscope.stages.characterise.fio import FioFile
from knobscope.stages.characterise.others import Others, watch_pause
from knobscope.stages.characterise.progress import Countdown
from knobscope.stages.characterise.schedule import Schedule
from knobscope.stages.characterise.unit import TimedWrite, plan_writes

#: No window takes longer than this, however slow the device.
_LONGEST_MS = 2500
#: Nor does one of random reads at a depth, of which a slow device gets only one.
_LONGEST_READS_MS = 10_000
_ALONE = Point("queue_depth", "randread", PAGE, 1)
#: Writes of the list: many for a fast device, which has done them before the time is over; few that fill no cache.
_DURABLE_REPEATS, _PLAIN_REPEATS = 120, 10
_MIB = 1 << 20


class Session:
    """A file on a device, and what was measured on it: windows by point, writes of known address."""

    def __init__(self, opened: OpenDevice, file: FioFile, schedule: Schedule) -> None:
        self.windows: dict[Point, list[Measured]] = {}
        self.durable: list[TimedWrite] = []
        self.plain: list[TimedWrite] = []
        self.window_ms, self.repeats = schedule.window_ms, schedule.repeats
        self._reads_ms = schedule.window_ms
        #: By curve, and of the writes that show a unit: what others did in pauses before the windows.
        self.others: dict[str, list[Others]] = {}
        self._file, self._schedule, self._block = file, schedule, opened.block
        points = len(schedule.reads()) + schedule.finer_depths + 2 + len(schedule.writes()) + 1
        self._countdown = Countdown(f"characterise {opened.name}", points * schedule.repeats + 2)
        self._spot = _find_spot(opened, file)

    @property
    def knows_addresses(self) -> bool:
        """Whether the file system tells where on the device the file lies."""
        return self._spot is not None

    def run(self) -> None:
        """Measure everything: reads first, and the writes that fill a cache last, so that nothing waits for it."""
        self._set_pace()
        self._measure(self._schedule.reads(), self._window)
        self._look_closer()
        self._measure([Point("commit", "randwrite", PAGE, 1), Point("flush", "randwrite", PAGE, 1)], self._window)
        self._write_units()
        self._measure_writes()
        self._measure([Point("beside", "randread", PAGE, 1)], self._window)

    def merged(self) -> dict[Point, Measured]:
        """Return the best window of each point."""
        return {point: merge(windows) for point, windows in self.windows.items()}

    def _window(self, point: Point) -> Measured:
        is_random = point.curve == "queue_depth" and point.pattern == "randread"
        return measure_window(point, self._file, self._reads_ms if is_random else self.window_ms)

    def _set_pace(self) -> None:
        """Choose how long windows are, and how many: the same time in all, in fewer windows on a slow device."""
        first = measure_window(_ALONE, self._file, self._schedule.window_ms)
        wanted = 1000 * self._schedule.requests / first.iops
        self.window_ms = self._reads_ms = round(min(max(self._schedule.window_ms, wanted), _LONGEST_MS))
        if self.window_ms > 2 * self._schedule.window_ms:
            self.repeats = 1
            enough = 1000 * self._schedule.read_requests / first.iops
            self._reads_ms = round(min(max(self.window_ms, enough), _LONGEST_READS_MS))

    def _measure(self, points: Sequence[Point], measure: Callable[[Point], Measured]) -> None:
        """Measure points round by round, every other round backwards: drift of the machine then meets all alike."""
        for number in range(self.repeats):
            for point in points[:: -1 if number % 2 else 1]:
                self._countdown.show(str(point))
                self._pause(point.curve)
                self.windows.setdefault(point, []).append(measure(point))

    def _pause(self, curve: str) -> None:
        self.others.setdefault(curve, []).append(watch_pause(self._block))

    def _random_reads(self) -> dict[int, float]:
        return {
            point.queue_depth: max(window.iops for window in windows)
            for point, windows in self.windows.items()
            if point.curve == "queue_depth" and point.pattern == "randread"
        }

    def _look_closer(self) -> None:
        """Measure random reads at depths around the one that saturates, until that one is known well enough."""
        for _ in range(self._schedule.finer_depths):
            reads = self._random_reads()
            depth = next_depth(reads)
            if depth is None or find_saturation(reads) is None:
                return
            self._measure([Point("queue_depth", "randread", PAGE, depth)], self._window)

    def _measure_writes(self) -> None:
        """Measure sustained writes. How many fit into a window is guessed: from the same point, or a smaller size."""
        reads = self._random_reads()
        guesses: dict[Point | str, float] = {"pages": PAGE * reads[max(reads)]}

        def measure(point: Point) -> Measured:
            is_size = point.curve == "write_size"
            guess = guesses.get(point) or (guesses.get("sizes") if is_size else None) or guesses["pages"]
            measured = measure_sustained(point, self._file, self.window_ms, guess)
            guesses[point] = measured.bytes_per_s
            if is_size:
                guesses["pages" if point.block_bytes == PAGE else "sizes"] = measured.bytes_per_s
            return measured

        self._measure(self._schedule.writes(), measure)

    def _write_units(self) -> None:
        """Carry out the writes that show a unit: durable ones, then ones that nobody waits for."""
        base, begin, end = self._spot or (0, 0, self._file.bytes)
        for durable, repeats in ((True, _DURABLE_REPEATS), (False, _PLAIN_REPEATS)):
            self._countdown.show("durable writes of all sizes" if durable else "writes of all sizes")
            self._pause("unit")
            planned = plan_writes(base + begin, base + end, repeats, sweep=self._schedule.sweep)
            writes = [(address - base, size) for address, size in planned]
            timings = self._file.replay(writes, durable=durable, longest_ms=self._schedule.replay_ms)
            timed_writes = [TimedWrite(base + offset, size, ns) for offset, size, ns in timings]
            if durable:
                self.durable = timed_writes
            else:
                self.plain = timed_writes


def _find_spot(opened: OpenDevice, file: FioFile) -> tuple[int, int, int] | None:
    """Return the largest part of the file that lies in one piece: address of the file's byte 0, first and last offset.

    None where the file system does not tell addresses, or has cut the file into small pieces.
    """
    if opened.filesystem not in MAPPED_FILESYSTEMS:
        return None
    largest = max(inspect_file(file.path).extents, key=lambda extent: extent.length, default=None)
    if largest is None or largest.length < 8 * _MIB:
        return None
    start = read_partition_start(opened.block) + largest.address - largest.offset
    return start, largest.offset, min(largest.offset + largest.length, file.bytes)
