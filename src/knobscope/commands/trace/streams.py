"""What the order of requests tells: streams and strides, judged for a whole trace at once.

The rules are those of the kernel side (`probes/stream.bpf.h`, `probes/pattern.bpf.h`), and so are the numbers, request
by request, although nothing here looks at one request after another. That works because the rules are local: a request
goes on with a stream that ended at its first byte at most `MAX_AGE` requests before, so that sorting a window of
requests by where they begin and end finds all that go on; and whether it is the third, eighth or a later one in a row
can be seen from the eight before it.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

#: Requests in the same direction within which three in a row make a stream; where the first are further apart, eight.
AGE = 256
#: Requests after which a stream no longer goes on.
MAX_AGE = 1024
_NEAR, _FAR = 3, 8  # requests that make a stream
#: What a log writes once more when it goes on: its last block, bytes.
_TAIL = 8192
#: 2**64 divided by the golden ratio: the kernel side hashes by multiplication with it.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STREAM_BITS = 13  # open streams of a device per direction, of which a new one may push out another
_WINDOW = 1 << 14  # requests that are looked at together: so few that they stay in the cache
_TIME_BITS = np.uint64(16)  # 2 * (_WINDOW + MAX_AGE) moments

Integers = NDArray[np.int64]
Addresses = NDArray[np.uint64]
#: Per request: how many turned out to be sequential, or strided, by it: 3 at the third in a row, then 1 each.
Turns = NDArray[np.int64]


def follow_streams(starts: Addresses, ends: Addresses, *, by_slot: bool) -> Turns:
    """Return by how many the sequential requests grow at each request; `starts` and `ends` in order of issue.

    `by_slot`: as for a device, where 8192 open streams are remembered by a hash and push each other out. Else every
    open stream is remembered (of files the kernel side does so but for rare collisions).
    """
    before = np.full(len(starts), -1, np.int32)
    for first in range(0, len(starts), _WINDOW):
        begin, end = max(first - MAX_AGE, 0), min(first + _WINDOW, len(starts))
        earlier, later = _link(starts[begin:end], ends[begin:end], _STREAM_BITS if by_slot else 48)
        is_new = later >= first - begin
        before[begin + later[is_new]] = begin + earlier[is_new]
    return _judge_lengths(before)


def _judge_lengths(before: NDArray[np.int32]) -> Turns:
    """Return the turns of requests whose predecessors in their streams are given, -1 where there is none."""
    gap_is_far = (np.arange(len(before)) - before > AGE) & (before >= 0)
    length = np.ones(len(before), np.int64)
    second, third = (np.zeros(len(before), bool) for _ in range(2))  # whether that one of the stream came late
    current, index = before, np.arange(len(before), dtype=np.int32)
    for _ in range(_FAR):
        has_more = current >= 0
        length += has_more
        third = np.where(has_more, second, third)
        second = np.where(has_more, gap_is_far[index], second)
        index = np.where(has_more, current, index)
        current = _step(current, before)
    needed = np.where(second | ((length >= _NEAR) & third), _FAR, _NEAR)
    return np.where(length > needed, 1, np.where(length == needed, needed, 0))


def _step(indexes: NDArray[np.int32], before: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the predecessor of each index, -1 where there is none."""
    return np.where(indexes >= 0, before[indexes], np.int32(-1)) if len(before) else indexes


def _link(starts: Addresses, ends: Addresses, bits: int) -> tuple[Integers, Integers]:
    """Return pairs (request, the one that goes on with the stream it ends) of a window.

    Sorted by slot, then time: a request is first looked up at its start (even times), then remembered at its end (odd).
    """
    keys = np.empty(2 * len(starts), np.uint64)
    for odd, addresses in enumerate((starts, ends)):
        slots = (addresses * _GOLDEN) >> np.uint64(64 - bits)
        keys[odd::2] = (slots << _TIME_BITS) | np.arange(odd, 2 * len(starts), 2, dtype=np.uint64)
    keys.sort()
    times = (keys & ((np.uint64(1) << _TIME_BITS) - np.uint64(1))).astype(np.int64)
    slots = keys >> _TIME_BITS
    is_end = (times & 1).astype(bool)
    latest = np.maximum.accumulate(np.where(is_end, np.arange(len(keys)), -1))
    looked_up = np.flatnonzero(~is_end & (latest >= 0))
    remembered = latest[looked_up]
    earlier, later = times[remembered] >> 1, times[looked_up] >> 1
    goes_on = (slots[remembered] == slots[looked_up]) & (ends[earlier] == starts[later]) & (later - earlier <= MAX_AGE)
    earlier, later = earlier[goes_on], later[goes_on]
    is_first = np.diff(earlier, prepend=-1) != 0  # only one goes on with a stream; others at the same address are next
    return earlier[is_first], later[is_first]


def find_strides(starts: Integers, lengths: Integers, groups: Integers) -> Turns:
    """Return by how many the strided requests grow at each; groups (files) one after another, each in order of issue.

    A step is a distance from the start of the request before, neither 0 nor that request's length.
    """
    turns = np.zeros(len(starts), np.int64)
    if len(starts) < 4:
        return turns
    distance = np.diff(starts)
    same_group = groups[1:] == groups[:-1]
    is_step = same_group & (distance != 0) & (distance != lengths[:-1])
    repeats = is_step[1:] & is_step[:-1] & (distance[1:] == distance[:-1])  # of request n + 2
    third = repeats[1:] & repeats[:-1]  # of request n + 3
    fourth = np.concatenate(([False], third[1:] & repeats[:-2]))
    turns[3:] = np.where(fourth, 1, np.where(third, 3, 0))
    return turns


@dataclass(frozen=True)
class Appends:
    """Per group (file): writes that go on at the end of what was written; `alone`: those that are not sequential."""

    all: Integers
    alone: Integers


def find_appends(starts: Integers, lengths: Integers, groups: Integers, sequential: Turns, count: int) -> Appends:
    """Return the appends of `count` groups (files), which come one after another, each in order of issue; all in bytes.

    An append begins at the end of the file's last write or at its highest end, or in the last 8 KiB before, and reaches
    it. What only writes its last block anew counts if the file grows in this way at all.
    """
    totals, alone = (np.zeros(count, np.int64) for _ in range(2))
    bounds = np.flatnonzero(np.diff(groups, prepend=-1, append=-1))
    for first, last in pairwise(bounds.tolist()):
        begin, end = starts[first:last], starts[first:last] + lengths[first:last]
        goes_on, grows = np.zeros(last - first, bool), np.zeros(last - first, bool)
        for written in (end[:-1], np.maximum.accumulate(end)[:-1]):
            is_append = (begin[1:] <= written) & (begin[1:] + _TAIL >= written) & (end[1:] >= written)
            goes_on[1:] |= is_append
            grows[1:] |= is_append & (end[1:] > written)
        if not grows.any():
            continue
        turns, start = goes_on.astype(np.int64), int(np.argmax(grows))
        turns[start] = goes_on[: start + 1].sum()
        turns[:start] = 0
        totals[groups[first]] = turns.sum()
        alone[groups[first]] = turns[sequential[first:last] == 0].sum()
    return Appends(totals, alone)


def count_followers(starts: Integers, ends: Integers, groups: Integers | None = None) -> int:
    """Return how many requests begin where the one before them (in their group) ends."""
    follows = starts[1:] == ends[:-1]
    if groups is not None:
        follows &= groups[1:] == groups[:-1]
    return int(np.count_nonzero(follows))
