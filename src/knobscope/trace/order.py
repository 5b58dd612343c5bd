"""What the order of requests tells: streams and strides, judged for a whole trace at once.

The rules are those of the kernel side (`probes/block.bpf.c`, `probes/pattern.bpf.h`), and so are the numbers, request
by request, although nothing here looks at one request after another. That works because both rules are local: a
request goes on with a stream that ended at its first byte at most `AGE` requests before, so that sorting a window of
requests by the places where they begin and end finds all that go on; and whether it is the third, or a later one, in a
row can be seen from the three before it.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["AGE", "count_followers", "find_strides", "follow_streams"]

#: Requests in the same direction after which a stream no longer goes on.
AGE = 256
#: 2**64 divided by the golden ratio: the kernel side hashes by multiplication with it.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STREAM_BITS = 10  # open streams of a device per direction, of which a new one may displace another
_WINDOW = 1 << 14  # requests that are looked at together: so few that they stay in the cache
_PLACE_BITS = np.uint64(16)  # 2 * (_WINDOW + AGE) moments

Integers = NDArray[np.int64]
Places = NDArray[np.uint64]
#: Per request: how many turned out to be sequential, or strided, by it: 3 at the third in a row, then 1 each.
Turns = NDArray[np.int8]


def follow_streams(starts: Places, ends: Places, *, by_slot: bool) -> Turns:
    """Return by how many the sequential requests grow at each request; `starts` and `ends` in order of issue.

    `by_slot`: as for a device, where 1024 open streams are remembered by a hash and displace each other. Else every
    open stream is remembered (of files the kernel side does so but for rare collisions).
    """
    before = np.full(len(starts), -1, np.int32)
    for first in range(0, len(starts), _WINDOW):
        begin, end = max(first - AGE, 0), min(first + _WINDOW, len(starts))
        earlier, later = _link(starts[begin:end], ends[begin:end], _STREAM_BITS if by_slot else 48)
        is_new = later >= first - begin
        before[begin + later[is_new]] = begin + earlier[is_new]
    second = _step(before, before)
    return np.where(_step(second, before) >= 0, 1, np.where(second >= 0, 3, 0)).astype(np.int8)


def _step(places: NDArray[np.int32], before: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the predecessor of each place, -1 where there is none."""
    return np.where(places >= 0, before[places], np.int32(-1)) if len(before) else places


def _link(starts: Places, ends: Places, bits: int) -> tuple[Integers, Integers]:
    """Return pairs (request, the one that goes on with the stream it ends) of a window.

    Sorted by slot, then time: a request is first looked up at its start (even times), then remembered at its end (odd).
    """
    keys = np.empty(2 * len(starts), np.uint64)
    for odd, places in enumerate((starts, ends)):
        slots = (places * _GOLDEN) >> np.uint64(64 - bits)
        keys[odd::2] = (slots << _PLACE_BITS) | np.arange(odd, 2 * len(starts), 2, dtype=np.uint64)
    keys.sort()
    times = (keys & ((np.uint64(1) << _PLACE_BITS) - np.uint64(1))).astype(np.int64)
    slots = keys >> _PLACE_BITS
    is_end = (times & 1).astype(bool)
    latest = np.maximum.accumulate(np.where(is_end, np.arange(len(keys)), -1))
    looked_up = np.flatnonzero(~is_end & (latest >= 0))
    remembered = latest[looked_up]
    earlier, later = times[remembered] >> 1, times[looked_up] >> 1
    goes_on = (slots[remembered] == slots[looked_up]) & (ends[earlier] == starts[later]) & (later - earlier <= AGE)
    earlier, later = earlier[goes_on], later[goes_on]
    is_first = np.diff(earlier, prepend=-1) != 0  # only one goes on with a stream; others at the same place are next
    return earlier[is_first], later[is_first]


def find_strides(starts: Integers, lengths: Integers, groups: Integers) -> Turns:
    """Return by how many the strided requests grow at each; groups (files) one after another, each in order of issue.

    A step is a distance from the start of the request before, neither 0 nor that request's length.
    """
    turns = np.zeros(len(starts), np.int8)
    if len(starts) < 4:
        return turns
    distance = np.diff(starts)
    same = groups[1:] == groups[:-1]
    is_step = same & (distance != 0) & (distance != lengths[:-1])
    again = is_step[1:] & is_step[:-1] & (distance[1:] == distance[:-1])  # of request n + 2
    third = again[1:] & again[:-1]  # of request n + 3
    fourth = np.concatenate(([False], third[1:] & again[:-2]))
    turns[3:] = np.where(fourth, 1, np.where(third, 3, 0))
    return turns


def count_followers(starts: Integers, ends: Integers, groups: Integers | None = None) -> int:
    """Return how many requests begin where the one before them (in their group) ends."""
    follows = starts[1:] == ends[:-1]
    if groups is not None:
        follows &= groups[1:] == groups[:-1]
    return int(np.count_nonzero(follows))
