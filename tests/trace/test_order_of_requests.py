"""Streams and strides of a whole trace at once, against the kernel side's way, one request after another."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from knobscope.trace import order
from knobscope.trace.order import AGE, find_strides, follow_streams

GOLDEN = 0x9E3779B97F4A7C15


def follow_one_by_one(starts: list[int], ends: list[int], bits: int) -> list[int]:
    """`follow_stream` of probes/block.bpf.c."""
    table: dict[int, list[int]] = {}
    turns = []
    for now, (start, end) in enumerate(zip(starts, ends, strict=True)):
        old = table.get((start * GOLDEN & 2**64 - 1) >> (64 - bits), [0, 0, 0])
        length = 1
        if old[2] and old[0] == start and now - old[1] <= AGE:
            length = old[2] + 1 if old[2] < 3 else 4
            old[2] = 0
        table[(end * GOLDEN & 2**64 - 1) >> (64 - bits)] = [end, now, length]
        turns.append(3 if length == 3 else int(length > 3))
    return turns


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
    monkeypatch.setattr(order, "_WINDOW", 777)


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("range_", [60, 5_000, 10**9])
def test_streams_are_those_of_the_kernel_side(share: float, range_: int) -> None:
    starts, lengths = mixed_streams(7, 4000, range_, share)
    ends = [start + length for start, length in zip(starts, lengths, strict=True)]
    first, last = (np.array(places, np.uint64) for places in (starts, ends))
    for by_slot, bits in ((True, 10), (False, 48)):
        expected = follow_one_by_one(starts, ends, bits)
        assert follow_streams(first, last, by_slot=by_slot).tolist() == expected
    assert sum(expected) > 0 or share < 0.5


def test_a_stream_grows_too_old() -> None:
    away = [10**6 * (n + 1) for n in range(AGE)]
    for between, expected in ((AGE - 1, 3), (AGE, 0)):
        starts = np.array([0, 8, *away[:between], 16], np.uint64)
        assert follow_streams(starts, starts + np.uint64(8), by_slot=False).sum() == expected


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
    places = np.array(starts, np.uint64)
    assert int(follow_streams(places, places + np.uint64(8), by_slot=True).sum()) == expected


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


@pytest.mark.parametrize(("pattern", "place"), PATTERNS, ids=[name for name, _ in PATTERNS])
def test_label_of_a_file(describe: object, write_csv: object, pattern: str, place: Callable[[int], int]) -> None:
    """Two files in turns, so that the order on the device is not that in the files."""
    requests = [{"lba": (f * 10**9) + place(n), "file": f"f{f}"} for n in range(100) for f in range(2)]
    profile = describe(write_csv(requests))  # type: ignore[operator]
    assert [(row["file"], row["pattern"]) for row in profile["files"]] == [("f0", pattern), ("f1", pattern)]
