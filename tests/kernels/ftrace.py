"""Block requests as the kernel's own tracer (ftrace) tells them: the truth that a profile is compared with."""

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_LINE = re.compile(r"\s(?P<time>\d+\.\d+): (?P<event>\w+): (?P<rest>.*)")
_BLOCK = re.compile(
    r"(?P<major>\d+),(?P<minor>\d+) (?P<flags>\w+) (?:(?P<bytes>\d+) )?\(.*?\) (?P<sector>\d+) \+ (?P<count>\d+)"
)
_NVME = re.compile(r"disk=(?P<disk>\w+), qid=(?P<queue>\d+), .*slba=(?P<sector>\d+)")
_BEGIN, _END = "knobscope begins", "knobscope ends"

Moves = list[tuple[float, int]]


@dataclass
class Traced:
    """What was traced of one disk between `begin` and `end`.

    sizes of issued reads and writes, and moments (s) at which depth goes up or down, those of flushes among them, which
    `flushes` counts. `queues`: of an NVMe disk, the same per hardware queue.
    """

    marker: Path
    sizes: Counter[tuple[str, int]] = field(default_factory=Counter)
    moves: Moves = field(default_factory=list)
    queues: dict[int, Moves] = field(default_factory=dict)
    flushes: int = 0
    begin_s: float = 0.0
    end_s: float = 0.0
    lost: int = 0

    def begin(self) -> None:
        """Count from now on."""
        self.marker.write_text(_BEGIN)

    def end(self) -> None:
        """Count no more."""
        self.marker.write_text(_END)

    def count(self) -> int:
        """Return how many reads and writes were issued."""
        return sum(self.sizes.values())

    def sum_bytes(self) -> int:
        """Return their bytes."""
        return sum(size * number for (_, size), number in self.sizes.items())

    def find_little_depth(self) -> float:
        """Return the sum of all requests' times by the duration; none may be in flight at the borders."""
        return -sum(step * moment for moment, step in self.moves) / (self.end_s - self.begin_s)

    def find_mean_depth(self, moves: Moves) -> float:
        """Return the mean number of requests in flight while there was any."""
        depth, before, busy, area = 0, 0.0, 0.0, 0.0
        for moment, step in [*sorted(moves), (self.end_s, 0)]:
            if depth > 0:
                busy += moment - before
                area += depth * (moment - before)
            depth, before = depth + step, moment
        return area / busy if busy else 0.0


@contextlib.contextmanager
def trace_requests(tracing: Path, disk: str, number: str) -> Iterator[Traced]:
    """Trace a disk with a directory of tracefs until the block ends; a hidden disk has "" for MAJ:MIN."""
    events = [tracing / f"events/block/block_rq_{name}" for name in ("issue", "complete")]
    events.append(tracing / "events/nvme/nvme_setup_cmd")
    events = [event for event in events if event.is_dir()]
    (tracing / "trace_clock").write_text("mono")  # the clock of BPF programs; the default one differs by processor
    (tracing / "buffer_size_kb").write_text("32768")
    (tracing / "trace").write_text("")
    for event in events:
        (event / "enable").write_text("1")
    traced = Traced(tracing / "trace_marker")
    try:
        yield traced
    finally:
        for event in events:
            (event / "enable").write_text("0")
    _read(traced, tracing / "trace", disk, number)


def _read(traced: Traced, trace: Path, disk: str, number: str) -> None:
    is_counted = False
    queues: dict[int, list[int]] = {}  # sector -> hardware queues of the requests there: it may be written twice
    with trace.open() as lines:
        for line in lines:
            traced.lost += "LOST" in line
            found = _LINE.search(line)
            if found and found["event"] == "tracing_mark_write":
                is_counted = _BEGIN in line
                traced.begin_s, traced.end_s = traced.begin_s or float(found["time"]), float(found["time"])
            elif found and is_counted and found["event"].startswith("block_rq"):
                _add_block(traced, number, queues, found)
            elif found and is_counted:
                _note_queue(queues, disk, found["rest"])


@functools.cache
def _is_of(found: str, number: str) -> bool:
    return found == number if number else not Path("/sys/dev/block", found).exists()


def _add_block(traced: Traced, number: str, queues: dict[int, list[int]], found: re.Match[str]) -> None:
    """Add an issue or completion; a request that asks for a flush ends once more, without sectors."""
    fields = _BLOCK.match(found["rest"])
    if fields is None or not _is_of(f"{fields['major']}:{fields['minor']}", number):
        return
    is_issue, sectors, sector = found["event"] == "block_rq_issue", int(fields["count"]), int(fields["sector"])
    is_flush = fields["flags"].startswith("FF")
    if not sectors and not is_flush:
        return
    if is_issue and not is_flush and "D" not in fields["flags"]:
        operation = "read" if "R" in fields["flags"] else "write"
        traced.sizes[operation, sectors * 512] += 1
    traced.flushes += is_issue and is_flush
    move = (float(found["time"]), 1 if is_issue else -1)
    traced.moves.append(move)
    if known := queues.get(sector):
        traced.queues.setdefault(known[-1] if is_issue else known.pop(0), []).append(move)


def _note_queue(queues: dict[int, list[int]], disk: str, rest: str) -> None:
    """Note the hardware queue that the NVMe driver tells right before the issue; its blocks have 512 bytes here."""
    fields = _NVME.search(rest)
    if fields and fields["disk"] == disk and fields["queue"] != "0":
        queues.setdefault(int(fields["sector"]), []).append(int(fields["queue"]) - 1)
