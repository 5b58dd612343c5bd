"""Streams and strides of a whole trace at once, against the kernel side's way, one request after another."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from knobscope.commands.trace import streams
from knobscope.commands.trace.streams import AGE, MAX_AGE, find_appends, find_strides, follow_streams

GOLDEN = 0x9E3779B97F4A7C15


def follow_one_by_one(starts: list[int], ends: list[int], bits: int) -> list[int]:
    """`follow_stream` of probes/stream.bpf.h, with `lengthen` of probes/pattern.bpf.h."""
    table: dict[int, dict[str, int]] = {}
    turns = []
    for now, (start, end) in enumerate(zip(starts, ends, strict=True)):
        old = table.get((start * GOLDEN & 2**64 - 1) >> (64 - bits))
        new = {"end": end, "at": now, "length": 1, "is_far": 0, "is_known": 0}
        turn = 0
        if old and old["end"] == start:
            if now - old["at"] <= MAX_AGE:
                new["is_known"] = old["is_known"]
                new["is_far"] = old["is_far"] | (now - old["at"] > AGE)
                new["length"] = old["length"] + 1
                turn = new["is_known"]
                if not new["is_known"] and new["length"] >= (8 if new["is_far"] else 3):
                    turn, new["is_known"] = new["length"], 1
            old["end"] = -1
        table[(end * GOLDEN & 2**64 - 1) >> (64 - bits)] = new
        turns.append(turn)
    return turns


def append_one_by_one(starts: list[int], lengths: list[int]) -> int:
    """`follow_end` of probes/pattern.bpf.h, for one file."""
    last = highest = waiting = appended = 0
    for now, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        end, found, grows = start + length, False, False
        for written in (last, highest):
            here = now > 0 and start <= written <= min(start + 8192, 2**63) and end >= written
            found, grows = found or here, grows or (here and end > written)
        last, highest = end, max(highest, end)
        if found and not appended and not grows:
            waiting += 1
        elif found:
            appended += 1 + waiting
            waiting = 0
    return appended


def stride_one_by_one(starts: list[int], lengths: list[int], groups: list[int]) -> list[int]:
    """`follow_stride` of probes/pattern.bpf.h."""
    before: dict[int, tuple[int, int, int, int]] = {}
    turns = []
    for start, length, group in zip(starts, lengths, groups, strict=True):
        run = distance = 0
        if group in before:
            old_start, old_length, old_distance, old_run = before[group]
            distance = start - old_start
            is_step = distance not in (0, old_length)
            run = 0 if not is_step else old_run + 1 if distance == old_distance else 1
        before[group] = (start, length, distance, run)
        turns.append(3 if run == 3 else int(run > 3))
    return turns


def mixed_streams(seed: int, count: int, range_: int, share: float) -> tuple[list[int], list[int]]:
    """Requests of four streams that go on with the given probability and else begin anew somewhere."""
    rng = np.random.default_rng(seed)
    ends, starts, lengths = [0] * 4, [], []
    for _ in range(count):
        stream = int(rng.integers(4))
        starts.append(ends[stream] if rng.random() < share else int(rng.integers(range_)))
        lengths.append(int(rng.integers(1, 4)))
        ends[stream] = starts[-1] + lengths[-1]
    return starts, lengths


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_WINDOW", 777)


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("range_", [60, 5_000, 10**9])
def test_streams_are_those_of_the_kernel_side(share: float, range_: int) -> None:
    starts, lengths = mixed_streams(7, 4000, range_, share)
    ends = [start + length for start, length in zip(starts, lengths, strict=True)]
    first, last = (np.array(addresses, np.uint64) for addresses in (starts, ends))
    for by_slot, bits in ((True, 13), (False, 48)):
        expected = follow_one_by_one(starts, ends, bits)
        assert follow_streams(first, last, by_slot=by_slot).tolist() == expected
    assert sum(expected) > 0 or share < 0.5


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("streams", [120, 400])
def test_many_shuffled_streams(streams: int) -> None:
    """Requests of one stream are far apart: some hundred others come in between."""
    rng = np.random.default_rng(5)
    order = rng.permutation(np.repeat(np.arange(streams), 40))
    seen = np.zeros(streams, np.int64)
    starts = []
    for stream in order:
        starts.append(int(stream) * 10**6 + 8 * int(seen[stream]))
        seen[stream] += 1
    ends = [start + 8 for start in starts]
    for by_slot, bits in ((True, 13), (False, 48)):
        turns = follow_streams(np.array(starts, np.uint64), np.array(ends, np.uint64), by_slot=by_slot)
        assert turns.tolist() == follow_one_by_one(starts, ends, bits)
    if streams == 120:
        assert turns.sum() / len(starts) >= 0.99


def test_a_stream_grows_too_old() -> None:
    away = [10**6 * (n + 1) for n in range(MAX_AGE)]
    for between, expected in ((AGE - 1, 3), (AGE, 0)):
        starts = np.array([0, 8, *away[:between], 16], np.uint64)
        assert follow_streams(starts, starts + np.uint64(8), by_slot=False).sum() == expected
    for between, expected in ((MAX_AGE - 1, 8), (MAX_AGE, 7)):  # eight in a row of a far one, or seven of a near one
        starts = np.array([0, *away[:between], *(8 * n for n in range(1, 8))], np.uint64)
        assert follow_streams(starts, starts + np.uint64(8), by_slot=False).sum() == expected


@pytest.mark.parametrize(
    ("starts", "lengths", "appended"),
    [
        ([0, 4096, 8192, 12288], [4096] * 4, 3),
        ([0, 0, 0, 4096, 4096, 8192], [4096] * 6, 5),  # the last block again and again, and the next
        ([0, 0, 0, 0], [8192] * 4, 0),  # one block that never grows
        ([0, 8192, 8192, 16384], [16384, 8192, 16384, 8192], 3),  # pages of 8 KiB, the last one again
        ([0, 10**6, 4096, 5 * 10**6, 8192], [4096] * 5, 0),
        ([10**6, 0, 10**6 + 4096, 4096], [4096] * 4, 1),  # the highest end
        ([20480, 16384, 12288, 8192], [4096] * 4, 0),  # backwards
    ],
    ids=["in a row", "last block", "no growth", "large pages", "random", "highest end", "backwards"],
)
def test_appends(starts: list[int], lengths: list[int], appended: int) -> None:
    assert append_one_by_one(starts, lengths) == appended
    groups = np.full(len(starts), 2)
    none = np.zeros(len(starts), np.int64)
    found = find_appends(np.array(starts), np.array(lengths), groups, none, 4)
    assert found.all.tolist() == found.alone.tolist() == [0, 0, appended, 0]


def test_appends_are_those_of_the_kernel_side() -> None:
    starts, lengths = mixed_streams(11, 3000, 500, 0.6)
    first, sizes = np.array(starts) * 2048, np.array(lengths) * 2048
    groups = np.sort(np.random.default_rng(2).integers(0, 9, 3000))
    found = find_appends(first, sizes, groups, np.zeros(3000, np.int64), 9).all
    for group in range(9):
        mine = groups == group
        assert found[group] == append_one_by_one(first[mine].tolist(), sizes[mine].tolist())
    assert found.sum() > 500


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ([0, 8, 16, 24, 32], 5),
        ([0, 8], 0),
        ([16, 8, 0], 0),
        ([0, 1000, 8, 1008, 16, 1016], 6),
        ([0, 8, 16, 8, 24], 4),  # the one that is there twice goes on only once
        ([], 0),
    ],
    ids=["five", "pair", "backwards", "two streams", "twice", "none"],
)
def test_sequential_is_three_in_a_row_of_a_stream(starts: list[int], expected: int) -> None:
    addresses = np.array(starts, np.uint64)
    assert int(follow_streams(addresses, addresses + np.uint64(8), by_slot=True).sum()) == expected


def test_strides_are_those_of_the_kernel_side() -> None:
    rng = np.random.default_rng(3)
    groups = np.sort(rng.integers(0, 20, 3000))
    lengths = rng.integers(1, 4, 3000)
    starts = np.cumsum(rng.choice([0, 1, 2, 7, 7, 7, 7, 7, 7], 3000))
    expected = stride_one_by_one(starts.tolist(), lengths.tolist(), groups.tolist())
    assert find_strides(starts, lengths, groups).tolist() == expected
    assert sum(expected) > 100


PATTERNS: list[tuple[str, Callable[[int], int]]] = [
    ("sequential", lambda n: 8 * n),
    ("strided", lambda n: 64 * n),
    ("random", lambda n: Random(n).randrange(10**7) * 8),
    ("mixed", lambda n: 8 * n if n < 50 else Random(n).randrange(10**7) * 8),
]


@pytest.mark.parametrize(("pattern", "address"), PATTERNS, ids=[name for name, _ in PATTERNS])
def test_label_of_a_file(describe: object, write_csv: object, pattern: str, address: Callable[[int], int]) -> None:
    """Two files in turns, so that the order on the device is not that in the files."""
    requests = [{"lba": (f * 10**9) + address(n), "file": f"f{f}"} for n in range(100) for f in range(2)]
    profile = describe(write_csv(requests))  # type: ignore[operator]
    assert [(row["file"], row["pattern"]) for row in profile["files"]] == [("f0", pattern), ("f1", pattern)]
