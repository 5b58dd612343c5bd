"""Locality of block accesses: reuse distance, working set, and what a larger cache would save, from a bounded sample.

A block is sampled when a hash of its address is below a limit, so every access to it is (SHARDS: Waldspurger et al.,
FAST 2015). Distances among sampled blocks, divided by the sampling rate, are those among all. The limit falls until the
sample is small enough, so memory is bounded whatever the trace is; a trace with fewer blocks is counted exactly. Where
requests touch so many blocks that to look at each would take too long, one block of each extent is looked at, chosen by
a hash: a sample, too. Larger blocks would not do: a request that fills one in part would read what it does not, and two
that share one would read it twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knobscope.statistics.arrays import Bools, Ints

Hashes = NDArray[np.uint64]

_BLOCK = 4096  # bytes
_MOST_TOUCHED = 1 << 25  # extents: of a block each, or of more until requests touch no more of them
_CHUNK = 1 << 20
#: Blocks of a sample, and accesses to them; accesses may be more when they go to fewer blocks than the last number.
_MOST_BLOCKS, _MOST_ACCESSES, _LEAST_BLOCKS = 1 << 15, 1 << 21, 1 << 8
#: Sampled blocks that the smallest cache of a curve holds: fewer would be a matter of chance.
_LEAST_CACHED = 64
_WINDOWS, _LEAST_IN_WINDOW = 20, 30
_MOST_FILES, _MOST_RANGES = 12, 128
_HOT = 0.8  # of the requests go to what is called hot
_USEFUL = 0.9  # of what any cache would save
_LEAST_SAVED = 0.01  # of the bytes read: for less no cache is worth its memory


@dataclass(frozen=True)
class Access:
    """Reads and writes in order of issue, an array each: ns, bytes; `files` are codes from 0, or -1 for an unknown one.

    `starts` are addresses on the device, which identify a block together with the file; `places` are what ranges of a
    file are counted by: offsets in the file, or addresses again.
    """

    times: Ints
    starts: Ints
    lengths: Ints
    is_read: Bools
    files: Ints
    places: Ints


@dataclass(frozen=True)
class CachePoint:
    """What an LRU cache of this size, which keeps what is read and written, leaves of the bytes read."""

    cache_bytes: int
    miss_share: float


@dataclass(frozen=True)
class Window:
    """A part of the time, up to `end_s` from its start; shares are of the bytes read, None: too few in the sample."""

    end_s: float
    read_bytes: int
    working_set_bytes: int
    first_share: float | None
    miss_share: float | None  # with the useful cache


@dataclass(frozen=True)
class Range:
    """Requests that start in a range of a file."""

    start: int
    reads: int
    writes: int


@dataclass(frozen=True)
class FileHeat:
    """How requests spread over a file (None: no file is known); `hot_share` of its ranges gets four fifths of them.

    Ranges without a request are left out; `hot_share` is of those between the first and the last.
    """

    file: int | None
    range_bytes: int
    hot_share: float
    saved_share: float | None  # of the bytes read from it, by the useful cache
    ranges: list[Range]


@dataclass(frozen=True)
class Locality:
    """`rate`: share of blocks in the sample. `first_share`: bytes read that nothing before had read or written.

    `useful_cache_bytes` is the smallest size of the curve with nine tenths of what any size saves; None: none
    saves a hundredth of the bytes read.
    """

    block_bytes: int
    rate: float
    read_bytes: int
    working_set_bytes: int
    first_share: float
    useful_cache_bytes: int | None
    curve: list[CachePoint]
    windows: list[Window]
    files: list[FileHeat]

    def miss_share(self, cache_bytes: int | None) -> float:
        """Return the share of the bytes read that a cache of a size of the curve leaves; None: 1."""
        return next((point.miss_share for point in self.curve if point.cache_bytes == cache_bytes), 1.0)


@dataclass(frozen=True)
class _Sample:
    """Accesses to sampled blocks: whose request it is, and how many other sampled blocks came since the last time."""

    rate: float
    requests: Ints
    blocks: Ints
    distances: Ints  # -1: the first time


def measure_locality(access: Access) -> Locality | None:
    """Return the locality of reads; None where nothing was read, or none of it is in the sample."""
    if not access.is_read.any():
        return None
    counts = _count(access, _BLOCK)
    sample = _take_sample(access)
    reads = access.is_read[sample.requests]
    if not reads.any():
        return None
    expected = float(counts[access.is_read].sum()) * sample.rate
    curve = _draw_curve(sample.distances[reads], expected, sample)
    first = min(1.0, float((sample.distances[reads] < 0).sum()) / expected)
    useful = _find_useful(curve, first)
    held = (useful or 0) / _BLOCK * sample.rate
    is_missed = reads & ((sample.distances < 0) | (sample.distances >= held))
    return Locality(
        block_bytes=_BLOCK,
        rate=sample.rate,
        read_bytes=int(access.lengths[access.is_read].sum()),
        working_set_bytes=round(len(np.unique(sample.blocks)) / sample.rate) * _BLOCK,
        first_share=first,
        useful_cache_bytes=useful,
        curve=curve,
        windows=_list_windows(access, counts, sample, is_missed),
        files=_list_files(access, counts, sample, is_missed),
    )


def _count(access: Access, size: int) -> Ints:
    """Return how many pieces of the address space, of so many bytes each, every request touches."""
    lasts: Ints = np.maximum(access.starts + access.lengths - 1, access.starts) // size
    return lasts - access.starts // size + 1


def _choose_extent(access: Access) -> int:
    """Return how many blocks an extent has, of each of which one is looked at."""
    extent = 1
    while int(_count(access, extent * _BLOCK).sum()) > max(_MOST_TOUCHED, 2 * len(access.starts)):
        extent *= 2
    return extent


def _take_sample(access: Access) -> _Sample:
    extent = _choose_extent(access)
    limit, most = np.uint64(2**63), 2**63  # hashes are below
    distinct: Hashes = np.zeros(0, np.uint64)
    kept: list[tuple[Hashes, Ints]] = []
    for hashes, requests in _expand(access, extent):
        is_below = hashes < limit
        kept.append((hashes[is_below], requests[is_below]))
        distinct = np.union1d(distinct, kept[-1][0])
        while (blocks := len(distinct)) > _MOST_BLOCKS or (
            blocks > _LEAST_BLOCKS and sum(len(part) for part, _ in kept) > _MOST_ACCESSES
        ):
            limit = distinct[_MOST_BLOCKS if blocks > _MOST_BLOCKS else blocks // 2]
            distinct = distinct[distinct < limit]
            kept = [(part[part < limit], owners[part < limit]) for part, owners in kept]
    hashes = np.concatenate([part for part, _ in kept])
    numbers = np.searchsorted(distinct, hashes).astype(np.int64)
    owners = np.concatenate([owners for _, owners in kept])
    return _Sample(float(limit) / most / extent, owners, numbers, stack_distances(numbers))


def _expand(access: Access, extent: int) -> Iterator[tuple[Hashes, Ints]]:
    """Yield blocks of all requests, one of each extent, as hashes of file and address; and the request of each."""
    counts = _count(access, extent * _BLOCK)
    ends, firsts, lasts = np.cumsum(counts), access.starts // _BLOCK, access.starts // _BLOCK + _count(access, _BLOCK)
    for first in range(0, int(ends[-1]), _CHUNK):
        positions = np.arange(first, min(first + _CHUNK, int(ends[-1])))
        requests = np.searchsorted(ends, positions, side="right").astype(np.int64)
        extents = firsts[requests] // extent + positions - (ends[requests] - counts[requests])
        seeds = _mix((access.files[requests] + 1).astype(np.uint64))
        inside = _mix(_mix(extents.astype(np.uint64)) + seeds) % np.uint64(extent)
        blocks = extents * extent + inside.astype(np.int64)
        is_touched = (blocks >= firsts[requests]) & (blocks < lasts[requests])
        hashes = _mix(blocks.astype(np.uint64) + seeds) >> np.uint64(1)
        yield hashes[is_touched], requests[is_touched]


def _mix(numbers: Hashes) -> Hashes:
    """Return numbers with all bits mixed (splitmix64)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def stack_distances(blocks: Ints) -> Ints:
    """Return how many other blocks were accessed since the last access to the same one; -1 for the first."""
    order = np.argsort(blocks, kind="stable")
    is_again = np.append(False, np.diff(blocks[order]) == 0)
    previous = np.full(len(blocks), -1)
    previous[order[is_again]] = order[:-1][is_again[1:]]
    # Between i and its previous access p(i), a block counts once: where its own previous access is not after p(i). All
    # accesses up to p(i) satisfy that too, and are taken off.
    return np.where(previous < 0, -1, _count_not_larger_before(previous) - previous - 1)


def _count_not_larger_before(values: Ints) -> Ints:
    """Return for each value how many before it are no larger, by merging ever longer sorted parts."""
    size = 1 << max(len(values) - 1, 0).bit_length()
    padded = np.append(values, np.full(size - len(values), len(values)))
    order, counts = np.arange(size), np.zeros(size, np.int64)
    width = 1
    while width < size:
        rows = order.reshape(-1, 2 * width)
        merged = np.argsort(padded[rows], axis=1, kind="stable")
        rows, is_right = np.take_along_axis(rows, merged, axis=1), merged >= width
        counts[rows[is_right]] += np.cumsum(~is_right, axis=1)[is_right]
        order, width = rows.ravel(), 2 * width
    return counts[: len(values)]


def _draw_curve(distances: Ints, expected: float, sample: _Sample) -> list[CachePoint]:
    """Return what caches of doubling size leave, up to one that holds all blocks.

    `expected` reads would be in a sample without hot or cold blocks by chance; to divide by them instead of those that
    are there corrects most of that (SHARDS-adj).
    """
    blocks = len(np.unique(sample.blocks)) / sample.rate
    size = 1
    while sample.rate < 1 and size * sample.rate < _LEAST_CACHED:
        size *= 2
    curve: list[CachePoint] = []
    while not curve or size < 2 * blocks:
        missed = int(((distances < 0) | (distances >= size * sample.rate)).sum())
        curve.append(CachePoint(size * _BLOCK, min(1.0, missed / expected)))
        size *= 2
    return curve


def _find_useful(curve: list[CachePoint], first: float) -> int | None:
    least = 1 - _USEFUL * (1 - first)
    is_useful = 1 - first >= _LEAST_SAVED
    return next((point.cache_bytes for point in curve if is_useful and point.miss_share <= least), None)


def _list_windows(access: Access, counts: Ints, sample: _Sample, is_missed: Bools) -> list[Window]:
    begin = int(access.times[0])
    length = (int(access.times[-1]) - begin) // _WINDOWS + 1
    number = (access.times - begin) // length
    sampled = number[sample.requests]
    used = np.bincount(
        np.unique(sampled * (_MOST_BLOCKS + 1) + sample.blocks) // (_MOST_BLOCKS + 1), minlength=_WINDOWS
    )
    reads = np.bincount(number[access.is_read], access.lengths[access.is_read], _WINDOWS)
    read_blocks = np.bincount(number[access.is_read], counts[access.is_read], _WINDOWS) * sample.rate
    is_first = access.is_read[sample.requests] & (sample.distances < 0)
    shares = [_shares(sampled[mask], read_blocks) for mask in (is_first, is_missed)]
    return [
        Window(
            end_s=(index + 1) * length / 1e9,
            read_bytes=int(reads[index]),
            working_set_bytes=round(used[index] / sample.rate) * _BLOCK,
            first_share=shares[0][index],
            miss_share=shares[1][index],
        )
        for index in range(_WINDOWS)
    ]


def _shares(groups: Ints, expected: NDArray[Any]) -> list[float | None]:
    """Return per group the sampled accesses in it as a share of those expected; None with too few."""
    counted = np.bincount(groups, minlength=len(expected))
    return [
        min(1.0, count / whole) if whole >= _LEAST_IN_WINDOW else None
        for count, whole in zip(counted.tolist(), expected.tolist(), strict=True)
    ]


def _list_files(access: Access, counts: Ints, sample: _Sample, is_missed: Bools) -> list[FileHeat]:
    """Return the files with most requests, most first."""
    codes = access.files + 1
    requests = np.bincount(codes)
    reads = np.bincount(codes[access.is_read], counts[access.is_read], len(requests)) * sample.rate
    missed = _shares(codes[sample.requests][is_missed], reads)
    heats = []
    for code in np.argsort(-requests, kind="stable")[:_MOST_FILES].tolist():
        if requests[code]:
            left = missed[code]
            heats.append(_heat_of(access, codes == code, code - 1, None if left is None else 1 - left))
    return heats


def _heat_of(access: Access, of_file: Bools, code: int, saved: float | None) -> FileHeat:
    places, is_read = access.places[of_file], access.is_read[of_file]
    low, high = int(places.min()), int(places.max())
    length = _BLOCK
    while high // length - low // length >= _MOST_RANGES:
        length *= 2
    numbers = places // length - low // length
    whole = high // length - low // length + 1
    by_range = [np.bincount(numbers[mask], minlength=whole) for mask in (is_read, ~is_read)]
    requests = by_range[0] + by_range[1]
    reached = np.cumsum(np.sort(requests)[::-1]) >= _HOT * requests.sum()
    return FileHeat(
        file=code if code >= 0 else None,
        range_bytes=length,
        hot_share=(int(np.argmax(reached)) + 1) / whole,
        saved_share=saved,
        ranges=[
            Range((low // length + index) * length, int(by_range[0][index]), int(by_range[1][index]))
            for index in np.flatnonzero(requests).tolist()
        ],
    )
