"""Reuse distance, miss curves and hot ranges against an LRU cache that is simulated access by access."""

import tracemalloc
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from knobscope.statistics import locality
from knobscope.statistics.arrays import Bools, Ints
from knobscope.statistics.locality import Access, measure_locality, stack_distances

_N = 20_000


def accesses(blocks: Ints, is_read: Bools | None = None, file: int = 0, size: int = 4096) -> Access:
    """Return a request of one block, or of `size` bytes, per microsecond."""
    count = len(blocks)
    reads = np.ones(count, bool) if is_read is None else is_read
    starts = blocks * size
    return Access(np.arange(count) * 1000, starts, np.full(count, size), reads, np.full(count, file), starts)


def misses(blocks: Sequence[int], is_read: Sequence[bool], size: int) -> float:
    """Return the share of the reads that miss an LRU cache of so many blocks, which writes fill too."""
    cache: OrderedDict[int, None] = OrderedDict()
    missed = 0
    for block, read in zip(blocks, is_read, strict=True):
        missed += read and block not in cache
        cache[block] = None
        cache.move_to_end(block)
        if len(cache) > size:
            cache.popitem(last=False)
    return missed / sum(is_read)


def zipf(count: int = _N, blocks: int = 6000) -> Ints:
    rng = np.random.default_rng(7)
    weights = 1 / np.arange(1, blocks + 1) ** 0.9
    return rng.permutation(blocks)[rng.choice(blocks, count, p=weights / weights.sum())].astype(np.int64)


def test_distances_are_those_of_an_lru_stack() -> None:
    blocks = zipf(2000, 300)
    stack: list[int] = []
    expected = []
    for block in blocks.tolist():
        expected.append(stack.index(block) if block in stack else -1)
        if block in stack:
            stack.remove(block)
        stack.insert(0, block)
    assert stack_distances(blocks).tolist() == expected


@pytest.mark.parametrize("most_blocks", [1 << 15, 1500], ids=["all blocks", "a sample"])
@pytest.mark.parametrize("kind", ["zipf", "scan", "loop"])
def test_the_miss_curve_is_that_of_a_cache(monkeypatch: pytest.MonkeyPatch, kind: str, most_blocks: int) -> None:
    monkeypatch.setattr(locality, "_MOST_BLOCKS", most_blocks)
    blocks = {"zipf": zipf(), "scan": np.arange(_N), "loop": np.arange(_N) % 3000}[kind]
    is_read = np.random.default_rng(3).random(_N) < 0.7
    measured = measure_locality(accesses(blocks, is_read))
    assert measured is not None
    assert (measured.rate == 1) == (most_blocks > len(np.unique(blocks)))
    assert measured.working_set_bytes == pytest.approx(4096 * len(np.unique(blocks)), rel=0.05)
    for point in measured.curve:
        cached = point.cache_bytes // 4096
        if kind == "loop" and measured.rate < 1 and 0.9 < cached / 3000 < 1.1:
            continue  # on the edge of a cliff a sample may fall on either side
        exact = misses(blocks.tolist(), is_read.tolist(), cached)
        assert point.miss_share == pytest.approx(exact, abs=1e-9 if measured.rate == 1 else 0.04)


def test_a_scan_has_no_useful_cache_and_a_loop_needs_all_of_it() -> None:
    scan, loop = measure_locality(accesses(np.arange(_N))), measure_locality(accesses(np.arange(_N) % 3000))
    assert scan is not None
    assert (scan.first_share, scan.useful_cache_bytes) == (1, None)
    assert loop is not None
    assert (loop.first_share, loop.useful_cache_bytes) == (pytest.approx(0.15), 4096 * 4096)
    assert loop.miss_share(2048 * 4096) == 1


def test_memory_stays_bounded_when_requests_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 requests of 64 MiB are 328 million blocks of 4 KiB: not each is looked at."""
    monkeypatch.setattr(locality, "_MOST_TOUCHED", 1 << 20)
    access = accesses(zipf(), size=64 << 20)
    tracemalloc.start()
    measured = measure_locality(access)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert measured is not None
    assert measured.rate < 0.01
    assert measured.working_set_bytes == pytest.approx((64 << 20) * len(np.unique(access.starts)), rel=0.05)
    assert peak < 200 << 20


def test_requests_that_are_too_many_to_look_at_all_blocks_share_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan, in requests that begin anywhere in a larger block, reads nothing twice; single blocks stay single."""
    scan = accesses(np.arange(_N), size=64 << 10)
    scan = replace(scan, starts=scan.starts + 4096)
    every_16th = accesses(np.arange(_N) * 16, file=1)
    both = Access(
        *(np.concatenate([a, b]) for a, b in zip(vars(scan).values(), vars(every_16th).values(), strict=True))
    )
    monkeypatch.setattr(locality, "_MOST_TOUCHED", 3 * _N)
    measured = measure_locality(both)
    assert measured is not None
    assert measured.rate < 1
    assert measured.first_share == pytest.approx(1, abs=0.03)
    assert measured.working_set_bytes == pytest.approx(measured.read_bytes, rel=0.03)


def test_a_sample_of_few_hot_blocks_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locality, "_MOST_ACCESSES", 5000)
    blocks = zipf(50_000, 2000)
    measured = measure_locality(accesses(blocks))
    assert measured is not None
    assert measured.rate < 0.5
    assert measured.curve[-1].miss_share == pytest.approx(len(np.unique(blocks)) / 50_000, abs=0.02)


def test_windows_show_when_the_working_set_changes() -> None:
    """First 100 blocks are read again and again, then 4,000 others once each, then again the first ones."""
    blocks = np.concatenate([np.arange(8000) % 100, np.arange(4000) + 1000, np.arange(8000) % 100])
    measured = measure_locality(accesses(blocks))
    assert measured is not None
    sizes = [window.working_set_bytes // 4096 for window in measured.windows]
    assert sizes == [100] * 8 + [1000] * 4 + [100] * 8
    shares = [window.first_share for window in measured.windows]
    assert shares == pytest.approx([0.1] + [0] * 7 + [1] * 4 + [0] * 8)
    assert sum(window.read_bytes for window in measured.windows) == measured.read_bytes


def test_hot_ranges_of_each_file() -> None:
    rng = np.random.default_rng(1)
    hot, cold = rng.integers(30_000, 33_000, 16_000), rng.integers(0, 64_000, 4000)
    spread = rng.integers(0, 64_000, 10_000)
    first, second = accesses(rng.permutation(np.concatenate([hot, cold]))), accesses(spread, file=1)
    both = Access(*(np.concatenate([a, b]) for a, b in zip(vars(first).values(), vars(second).values(), strict=True)))
    measured = measure_locality(both)
    assert measured is not None
    skewed, even = measured.files
    assert (skewed.file, even.file) == (0, 1)
    assert skewed.hot_share < 0.08
    assert even.hot_share > 0.7
    assert sum(part.reads for part in skewed.ranges) == 20_000
    assert skewed.saved_share is not None
    assert even.saved_share is not None
    assert skewed.saved_share > 0.6
    assert even.saved_share < 0.2
    busiest = max(skewed.ranges, key=lambda part: part.reads)
    assert 30_000 * 4096 - skewed.range_bytes < busiest.start < 33_000 * 4096


def test_blocks_of_one_address_in_two_files_are_two_blocks() -> None:
    starts = np.zeros(4, np.int64)
    access = Access(np.arange(4), starts, starts + 4096, starts == 0, np.array([0, 1, 0, 1]), starts)
    measured = measure_locality(access)
    assert measured is not None
    assert measured.first_share == 0.5


def test_without_reads_there_is_nothing_to_save() -> None:
    assert measure_locality(accesses(np.arange(10), np.zeros(10, bool))) is None
