"""What a table does not say of itself: columns that look measured, and numbers that look like failures."""

import shlex
from collections.abc import Mapping, Sequence
from re import split
from typing import TYPE_CHECKING

import numpy as np

from knobscope.cells import FAILURE_WORDS
from knobscope.errors import UserError
from knobscope.statistics.arrays import Floats
from knobscope.text.formats import join_words

if TYPE_CHECKING:
    import pandas as pd

#: Parts of names that measured columns have.
_MEASURED = frozenset(
    (
        *("tps", "qps", "ops", "iops", "rps", "throughput", "latency", "lat", "rt", "runtime", "elapsed", "duration"),
        *("p50", "p75", "p90", "p95", "p99", "p999", "stddev", "stdev", "std", "sd", "avg", "mean", "median"),
    )
)
#: Names of columns that say how a run ended.
_OUTCOMES = frozenset(
    (
        *("status", "outcome", "exit", "exit_code", "exitcode", "exit_status", "returncode", "return_code", "rc"),
        *("success", "succeeded", "successful", "failed", "failure", "is_failed", "crashed", "is_valid", "valid"),
    )
)
#: So many texts of such a column are shown.
_MOST_SHOWN = 6
#: A 0 is no measurement when so many rows hold it, and so many times as many as any other value.
_LEAST_ZEROS, _MORE_OFTEN = 3, 3
#: A column that is set has values that come back; so many different ones are needed to call one measured.
_LEAST_DIFFERENT = 10
#: Rank correlation with the response from which a column of ever new values is taken for a second response.
_ALIKE = 0.9


def find_failure_code(response: Floats, *, some_failed: bool = False) -> str | None:
    """Describe a value that looks like the code of failed runs, and how to say so.

    That is an extreme that repeats, far from all other values; a 0 that repeats where other values hardly do; and any
    0 where other runs are known to have failed (`some_failed`).
    """
    values, counts = np.unique(response, return_counts=True)
    zeros = int((response == 0).sum())
    if some_failed and zeros and values[0] == 0:
        return f"{zeros} row{'s hold' if zeros > 1 else ' holds'} 0 next to rows that failed: {_proposal(0)}"
    if len(values) <= 2:  # failed or not
        return None
    if values[0] == 0 and zeros >= _LEAST_ZEROS and zeros > _MORE_OFTEN * counts[1:].max():
        return f"{zeros} rows hold 0, and no other value repeats so often: {_proposal(0)}"
    for extreme in (response.min(), response.max()):
        remaining = response[response != extreme]
        count = len(response) - len(remaining)
        if count < 2 or len(remaining) < 10:
            continue
        spread = float(np.ptp(np.quantile(remaining, [0.01, 0.99])))
        if float(np.abs(remaining - extreme).min()) > spread / 2:
            return f"{count} rows share the extreme value {extreme:g}, far from all others: {_proposal(extreme)}"
    return None


def _proposal(value: float) -> str:
    return f"a failure code? Then add --failed-value {value:g}"


def refuse_outcomes(counts: Mapping[str, Mapping[str, int]]) -> None:
    """Raise UserError for columns that say how a run ended, and propose what to do; `counts` are rows by text."""
    for name, of_texts in counts.items():
        if name.lower() not in _OUTCOMES:
            continue
        bad = [text for text in of_texts if text.lower() in FAILURE_WORDS] or [min(of_texts, key=lambda t: of_texts[t])]
        options = " ".join(f"--failed-value {shlex.quote(f'{name}={text}')}" for text in bad)
        texts = ", ".join(f"{text or 'nothing'} {count}" for text, count in list(of_texts.items())[:_MOST_SHOWN])
        raise UserError(
            f"{name!r} says how a run ended, not what was set ({texts}): {options} leaves out failed runs, --ignore "
            f"{name} only the column, --factors names all columns that are knobs"
        )


def refuse_measured(
    frame: "pd.DataFrame", response: str, factors: Sequence[str], known_knobs: Sequence[str] = ()
) -> None:
    """Raise UserError for columns that look measured, or number the rows; those in `known_knobs` are knobs."""
    suspects = [name for name in factors if name not in known_knobs and _looks_measured(frame, response, name, factors)]
    if suspects:
        those, them = ("it is", "it") if len(suspects) == 1 else ("they are", "them")
        raise UserError(
            f"{join_words([repr(name) for name in suspects])} {'looks' if len(suspects) == 1 else 'look'} measured or "
            f"counted, not set: another value in nearly every row. Say what {those}: --ignore {','.join(suspects)} "
            f"leaves {them} out, --factors names all columns that are knobs"
        )


def _looks_measured(frame: "pd.DataFrame", response: str, name: str, factors: Sequence[str]) -> bool:
    different = frame[name].nunique()
    is_number = frame[name].dtype.kind in "if"
    if different < _LEAST_DIFFERENT:
        return False
    if is_number and _MEASURED & set(split(r"[^a-z0-9]+", name.lower())):
        return True
    if different < len(frame) / 2:
        return False
    distinct_counts = [frame[factor].nunique() for factor in factors if factor != name]
    if not distinct_counts:
        return False  # the only column that can have been set
    is_clock = frame[name].is_monotonic_increasing or frame[name].is_monotonic_decreasing  # or counts the runs
    if is_clock or not is_number or max(distinct_counts) < len(frame) / 4:
        return True
    return bool(abs(frame[name].corr(frame[response], method="spearman")) >= _ALIKE)
