"""Which runs of a table share a time: what lies between two days may change the machine as well as the knob.

Where all runs of a series have a start, a long pause ends a session. Where none is known, the order shows it: a series
without blocks has several parts if no value was measured in more than one of them, although values were measured
repeatedly. Default runs on one side of a part only need not have been measured together with it. `detect` compares
within sessions only, so that values without a default run in their session have no answer.
"""

from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_low

#: The session of all runs where nothing separates them; other names start with it.
SESSION = "imported"
#: A pause between two starts ends a session if it is longer than this, and so many times as long as usual.
_PAUSE = timedelta(hours=6)
_TIMES_LONGER = 3


def name_sessions(values: Sequence[Hashable | None], starts: Sequence[str | None], is_block: bool) -> list[str]:
    """Return the session of each run of a series, in the order of its runs.

    `values` are the settings, None for the default configuration; `starts` are times in ISO format.
    """
    known_starts = [start for start in starts if start is not None]
    if len(known_starts) == len(values):
        begins = _find_pauses([datetime.fromisoformat(start) for start in known_starts])
        names = [f"{SESSION}, from {starts[begin]} on" for begin in begins]
    elif is_block:
        begins, names = [0], [SESSION]
    else:
        begins = _find_parts(values)
        names = [f"{SESSION}, from run {begin + 1} on" for begin in begins]
    if len(begins) == 1:
        names = [SESSION]
    ends = [*begins[1:], len(values)]
    return [name for name, begin, end in zip(names, begins, ends, strict=True) for _ in range(begin, end)]


def _find_pauses(starts: Sequence[datetime]) -> list[int]:
    """Return where sessions begin."""
    pauses = [after - before for before, after in pairwise(starts)]
    if not pauses:
        return [0]
    longest = max(_PAUSE, _TIMES_LONGER * median_low(pauses))
    return [0, *(index for index, pause in enumerate(pauses, 1) if pause >= longest)]


def _find_parts(values: Sequence[Hashable | None]) -> list[int]:
    """Return where parts begin; default runs are a part of their own where there are none on the other side."""
    spans = _repeated_spans(values)
    if not spans:
        return [0]
    begins = [0, *((end + 1 + begin) // 2 for (_, end), (begin, _) in pairwise(spans))]
    apart = []
    for number, (first, last) in enumerate(spans):
        after = spans[number + 1][0] if number + 1 < len(spans) else len(values)
        before = spans[number - 1][1] + 1 if number else 0
        is_before, is_within, is_after = (
            None in values[begin:end] for begin, end in ((before, first), (first, last), (last + 1, after))
        )
        if not is_within and not (is_before and is_after):
            apart += [first, last + 1]
    return sorted({*begins, *apart} - {len(values)})


def _repeated_spans(values: Sequence[Hashable | None]) -> list[tuple[int, int]]:
    """Return first and last run of values that were measured repeatedly, joined where they overlap.

    Runs of one value directly after each other are one measurement.
    """
    spans: dict[Hashable, tuple[int, int]] = {}
    repeated = set()
    for index, value in enumerate(values):
        if value is None or (index and values[index - 1] == value):
            continue
        if value in spans:
            repeated.add(value)
        spans[value] = (spans.get(value, (index, index))[0], index)
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans[value] for value in repeated):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined
