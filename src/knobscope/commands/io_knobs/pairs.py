"""Short runs of a knob's values between runs of what they are compared with, until the I/O shows a change or none.

Runs are measured, stored and resumed like all others. Values that share a reference share its runs: each is compared
with the reference run before and the one after it.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import duckdb

from knobscope.specs import Case, StudySpecs, value_text
from knobscope.stages.detect import IO_RESPONSES, create_schema, read_io_profiles
from knobscope.stages.measure import Measurer
from knobscope.stages.plan import Effort, SweptValue, case_space, effort_of, plan_row, swept_values
from knobscope.statistics.io_changes import FEWEST_PAIRS, Change, IoNoise, Trial, judge_trials
from knobscope.tables import BLOCK_TABLES, RunRecord, insert_rows, rows_of

#: Values of a knob that are tried: the farthest from the default, and then one more where that one showed nothing.
_VALUES = 2
#: Values that share runs of their reference.
_TOGETHER = 4
MOST_PAIRS = 4
#: Runs of the default configuration before the first value: of noise nothing is known yet.
_FIRST = 4
_PHASE = "pairs"
_NAMES = tuple(IO_RESPONSES)

_Profile = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """A value of a knob, and what its pairs of runs show; `failure` where it does not run."""

    knob: str
    value: str
    pairs: int
    change: Change
    failure: str = ""

    @property
    def verdict(self) -> str:
        """`related`, `none`, or `failed`."""
        return "failed" if self.failure else self.change.verdict


def list_candidates(specs: StudySpecs, case: Case, order: Sequence[str]) -> list[list[SweptValue]]:
    """Return the values to try, in rounds: a first value of each knob, in this order, then a second one.

    A value that cannot be compared is left out.
    """
    space = case_space(specs, case)
    rounds: list[list[SweptValue]] = [[] for _ in range(_VALUES)]
    for knob in order:
        values = [swept for swept in swept_values(specs, case, space, [knob]) if swept.reference is not None]
        for chosen, swept in zip(rounds, _farthest(values), strict=False):
            chosen.append(swept)
    return rounds


def _farthest(values: Sequence[SweptValue]) -> list[SweptValue]:
    """Return values by turns from both ends of their order, the end with more values between it and the default first.

    They lie in the knob's order, without the default.
    """
    if not values or isinstance(values[0].value, str):
        return list(values)
    default = values[0].default[values[0].knob]
    below = [] if isinstance(default, str) else [swept for swept in values if swept.value < default]  # type: ignore[operator]
    above = [swept for swept in reversed(values) if swept not in below]
    first, second = (below, above) if len(below) > len(above) else (above, below)
    ends = [*first[:1], *second[:1]]
    return [*ends, *(swept for swept in values if swept not in ends)]


def count_effort(specs: StudySpecs, case: Case, candidates: Sequence[Sequence[SweptValue]], budget: int) -> Effort:
    """Return the effort of all candidates at most: never more than `budget` runs."""
    values = sum(map(len, candidates))
    most = _FIRST + MOST_PAIRS * (values + len(list(_group([swept for part in candidates for swept in part]))))
    return effort_of(specs, [(case, min(most, budget))])


def _group(candidates: Sequence[SweptValue]) -> Iterator[list[SweptValue]]:
    """Yield candidates in their order, some at once that share a reference."""
    for _, shared in groupby(candidates, key=lambda swept: json.dumps(swept.reference, sort_keys=True)):
        of_reference = list(shared)
        for begin in range(0, len(of_reference), _TOGETHER):
            yield of_reference[begin : begin + _TOGETHER]


@dataclass
class Pairs:
    """Measures candidates of a case within a budget of runs; `smallest` is the relative change of I/O that counts."""

    specs: StudySpecs
    case: Case
    measurer: Measurer
    budget: int
    smallest: float
    runs: int = 0
    seconds: float = 0.0
    _connection: duckdb.DuckDBPyConnection = field(init=False)
    _repeats: Counter[str] = field(default_factory=Counter)
    _series: dict[str, list[_Profile]] = field(default_factory=dict)  # reference configuration -> its runs
    _last: str = ""  # the configuration of the last run

    @contextmanager
    def opened(self) -> Iterator["Pairs"]:
        """Yield this with a database in memory that turns a run's record into its I/O profile."""
        with duckdb.connect() as self._connection:
            create_schema(self._connection)
            yield self

    def compare(self, candidates: Sequence[Sequence[SweptValue]]) -> list[Comparison]:
        """Return what the candidates show, round by round, until the budget is used up.

        A knob that a value has shown to be related is not tried again.
        """
        default = case_space(self.specs, self.case).default
        for _ in range(min(_FIRST, self.budget)):
            self._measure_reference(default)
        comparisons: list[Comparison] = []
        for of_round in candidates:
            related = {comparison.knob for comparison in comparisons if comparison.verdict == "related"}
            for group in _group([swept for swept in of_round if swept.knob not in related]):
                if self.budget - self.runs < FEWEST_PAIRS * (len(group) + 1) + 1:
                    return comparisons
                comparisons += self._compare_group(group)
        return comparisons

    def count_false_alarms(self) -> tuple[int, int]:
        """Return how often the default configuration, compared with itself, is called related, and of how many."""
        noise = IoNoise.of(_NAMES, list(self._series.values()))
        changes = [
            self._judge(
                [Trial(series[at + 1], series[at : at + 3 : 2]), Trial(series[at + 3], series[at + 2 : at + 5 : 2])],
                noise,
                is_last=True,
            )
            for series in self._series.values()
            for at in range(0, len(series) - 4, 4)
        ]
        return sum(change.verdict == "related" for change in changes), len(changes)

    def _compare_group(self, group: Sequence[SweptValue]) -> Iterator[Comparison]:
        reference = group[0].reference or {}
        key = json.dumps(reference, sort_keys=True)
        before = self._series[key][-1] if self._last == key and self._series.get(key) else None
        before = before or self._measure_reference(reference)
        trials: dict[str, list[Trial]] = {swept.knob: [] for swept in group}
        pending = list(group)
        for pair in range(MOST_PAIRS):
            profiles = {swept.knob: self._measure(swept.configuration) for swept in pending[:: -1 if pair % 2 else 1]}
            after = self._measure_reference(reference)
            is_last = pair + 1 == MOST_PAIRS or self.budget - self.runs < len(pending) + 1
            if before is None or after is None:
                before = after
                continue
            noise = IoNoise.of(_NAMES, list(self._series.values()))
            undecided = []
            for swept in pending:
                profile, so_far = profiles[swept.knob], trials[swept.knob]
                if isinstance(profile, str):
                    yield Comparison(swept.knob, value_text(swept.value), len(so_far), Change("none"), profile)
                    continue
                so_far.append(Trial(profile, (before, after)))
                change = self._judge(so_far, noise, is_last=is_last)
                if change.verdict == "open":
                    undecided.append(swept)
                else:
                    yield Comparison(swept.knob, value_text(swept.value), len(so_far), change)
            pending, before = undecided, after
            if is_last or not pending:
                break
        for swept in pending:
            pairs = len(trials[swept.knob])
            yield Comparison(swept.knob, value_text(swept.value), pairs, Change("none"), "too few pairs of runs")

    def _judge(self, trials: Sequence[Trial], noise: IoNoise, *, is_last: bool) -> Change:
        return judge_trials(trials, noise, self.smallest, MOST_PAIRS - FEWEST_PAIRS + 1, is_last=is_last)

    def _measure_reference(self, configuration: Mapping[str, Any]) -> _Profile | None:
        profile = self._measure(configuration)
        if isinstance(profile, str):
            return None
        self._series.setdefault(json.dumps(dict(configuration), sort_keys=True), []).append(profile)
        return profile

    def _measure(self, configuration: Mapping[str, Any]) -> _Profile | str:
        """Return the I/O profile of a run of a configuration, or why there is none."""
        key = json.dumps(dict(configuration), sort_keys=True)
        dbms, default = self.specs.dbms[self.case.dbms], case_space(self.specs, self.case).default
        row = plan_row(
            dbms,
            f"{self.case}/{_PHASE}-0-0",
            _PHASE,
            configuration,
            self._repeats[key],
            self.runs,
            is_sentinel=dict(configuration) == dict(default),
        )
        record = self.measurer.measure(row)
        self._repeats[key] += 1
        self._last, self.runs = key, self.runs + 1
        self.seconds += self._count_seconds(record)
        return self._read_profile(record) if record["run"]["status"] == "ok" else str(record["run"].get("reason"))

    def _count_seconds(self, record: RunRecord) -> float:
        run, workload = record["run"], self.specs.workloads[self.case.workload]
        around = run.get("overhead_s") or 0.0
        return around + workload.warmup_s + run["window_s"] if run.get("window_s") else around

    def _read_profile(self, record: RunRecord) -> _Profile:
        """Return a row of `read_io_profiles`; the database is empty before and after."""
        run_id = {"run_id": record["run"]["run_id"]}
        self._connection.begin()
        insert_rows(self._connection, "runs", [record["run"]])
        for table in BLOCK_TABLES:
            insert_rows(self._connection, table, [{**run_id, **row} for row in rows_of(record, table)])
        profile: _Profile = read_io_profiles(self._connection, _PHASE).iloc[0].to_dict()
        self._connection.rollback()
        return profile
