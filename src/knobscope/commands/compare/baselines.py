"""How fast the default configuration is in both studies: blocks are the units.

Runs of one block have much in common, so that more of them tell no more of the study. Two studies have no block in
common, so the interval of their ratio comes from how much blocks of the same study differ
(Welch's t interval on means of natural logarithms over blocks). That knows nothing of how days differ: where one study
was measured half a day or more after the other, day and system change together, and there is no interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean, stdev

import numpy as np

from knobscope.commands.compare.matching import CasePair
from knobscope.commands.compare.reading import METRICS, StudyTables
from knobscope.commands.compare.setups import Workloads
from knobscope.specs import Case
from knobscope.statistics.independent import join_errors
from knobscope.statistics.regression import t_interval, t_probability
from knobscope.study_data.study import Row
from knobscope.text.formats import join_words

#: One block cannot tell a study from the luck of a moment.
_LEAST_BLOCKS = 2
#: Over this time a machine changes (temperature, neighbours, the state of its devices) by more than blocks show.
_APART = timedelta(hours=12)


@dataclass(frozen=True)
class Level:
    """The default configuration in one study: geometric mean over blocks; None: no run of it succeeded."""

    mean: float | None
    blocks: int
    runs: int
    error: float | None  # standard error of the mean's natural logarithm; None: one block


@dataclass(frozen=True)
class Measured:
    """One metric of the default configuration in both; `estimate` and its interval are natural-log ratios, B to A.

    `reason` says why there is no estimate, or no interval.
    """

    metric: str
    a: Level
    b: Level
    estimate: float | None
    low: float | None
    high: float | None
    p_value: float | None
    reason: str


@dataclass(frozen=True)
class Times:
    """When the default configuration ran in each study (UTC), and whether the studies took turns; None: not known."""

    a: tuple[datetime, datetime] | None
    b: tuple[datetime, datetime] | None
    interleaved: bool | None

    @property
    def are_apart(self) -> bool:
        """Whether one study was over half a day or more before the other started: on another day, or as good as."""
        if self.a is None or self.b is None:
            return False
        return self.b[0] - self.a[1] >= _APART or self.a[0] - self.b[1] >= _APART


def compare_levels(
    a: StudyTables, b: StudyTables, pair: CasePair, workloads: Workloads, times: Times
) -> list[Measured]:
    """Return throughput and p95 of the default configuration of a pair of cases."""
    sides = [default_runs(study, case) for study, case in ((a, pair.a), (b, pair.b))]
    return [_compare(metric, [_level(runs, metric) for runs in sides], workloads, times) for metric in METRICS]


def compare_times(a: StudyTables, b: StudyTables, pair: CasePair) -> Times:
    """Return when the runs of the default configuration were, and whether those of both studies took turns."""
    spans = [_span(default_runs(study, case)) for study, case in ((a, pair.a), (b, pair.b))]
    left, right = spans
    disjoint = None if left is None or right is None else left[1] < right[0] or right[1] < left[0]
    return Times(left, right, None if disjoint is None else not disjoint)


def default_runs(study: StudyTables, case: Case) -> list[Row]:
    """Return the usable runs of the default configuration."""
    return [run for run in usable_runs(study, case) if run["is_sentinel"]]


def usable_runs(study: StudyTables, case: Case) -> list[Row]:
    """Return the successful runs of a case, without blocks that cannot be compared.

    Sessions on another level than most of their case are left out where others are on the usual one, as in view
    `unusual_groups` of the database.
    """
    blocks = study.of_case("blocks", case)
    has_usual = any(not row["other_level"] and row["level"] is not None for row in blocks)
    left_out = {
        (row["block_id"], row["session"])
        for row in blocks
        if row["treatment"] == "dropped" or (row["other_level"] and has_usual)
    }
    return [
        run
        for run in study.of_case("runs", case)
        if run["status"] == "ok" and (run["block_id"], run["session"]) not in left_out
    ]


def _span(runs: Sequence[Row]) -> tuple[datetime, datetime] | None:
    begins = [run["started_at"] for run in runs if run["started_at"] is not None]
    return (min(begins), max(begins)) if begins else None


def _level(runs: Sequence[Row], metric: str) -> Level:
    """Return the mean over blocks; what one session measured of a block is a unit of its own."""
    groups: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        if run[metric] is not None and run[metric] > 0:
            groups.setdefault((run["block_id"], run["session"]), []).append(math.log(run[metric]))
    means = [fmean(logs) for logs in groups.values()]
    error = stdev(means) / math.sqrt(len(means)) if len(means) >= _LEAST_BLOCKS else None
    count = sum(map(len, groups.values()))
    return Level(math.exp(fmean(means)) if means else None, len(means), count, error)


def _compare(metric: str, sides: Sequence[Level], workloads: Workloads, times: Times) -> Measured:
    a, b = sides
    if a.mean is None or b.mean is None:
        without = join_words([letter for letter, side in zip("AB", sides, strict=True) if side.mean is None])
        return Measured(metric, a, b, None, None, None, None, f"no value of it was measured in {without}")
    if workloads.comparable is False:
        return Measured(metric, a, b, None, None, None, None, workloads.reason)
    estimate = math.log(b.mean / a.mean)
    if a.error is None or b.error is None:
        single = join_words([letter for letter, side in zip("AB", sides, strict=True) if side.error is None])
        reason = f"{single} measured it in one block only, and one block tells nothing about the next"
        return Measured(metric, a, b, estimate, None, None, None, reason)
    if times.are_apart:
        reason = "A and B were measured half a day or more apart, so time and system cannot be distinguished"
        return Measured(metric, a, b, estimate, None, None, None, reason)
    errors, degrees = np.array([[a.error], [b.error]]), np.array([[a.blocks - 1.0], [b.blocks - 1.0]])
    error, joint = join_errors(errors, degrees)
    difference = np.array([estimate])
    low, high = t_interval(difference, error, joint)
    p_value = t_probability(difference, error, joint)
    return Measured(metric, a, b, estimate, float(low[0]), float(high[0]), float(p_value[0]), "")
