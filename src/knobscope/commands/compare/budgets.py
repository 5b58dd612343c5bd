"""What an operation of the default configuration waits for in both studies, where both watched waits."""

from dataclasses import dataclass
from statistics import fmean

from knobscope.commands.compare.baselines import default_runs
from knobscope.commands.compare.matching import CasePair
from knobscope.commands.compare.reading import StudyTables
from knobscope.specs import Case
from knobscope.study_data.study import Row
from knobscope.text.budgets import Part, sum_parts


@dataclass(frozen=True)
class Budgets:
    """Mean time of an operation by reason, in microseconds, over runs of the default configuration.

    `a_latency_us`, `b_latency_us`: what clients measured in these runs; None: not known.
    """

    a: list[Part]
    b: list[Part]
    a_latency_us: float | None
    b_latency_us: float | None


def compare_budgets(a: StudyTables, b: StudyTables, pair: CasePair) -> Budgets | None:
    """Return the budgets of a pair of cases; None where either study did not watch the waits of sessions."""
    (of_a, latency_of_a), (of_b, latency_of_b) = _read(a, pair.a), _read(b, pair.b)
    return Budgets(of_a, of_b, latency_of_a, latency_of_b) if of_a and of_b else None


def _read(study: StudyTables, case: Case) -> tuple[list[Part], float | None]:
    runs = {run["run_id"]: run for run in default_runs(study, case)}
    operations = {run_id: _count_operations(run) for run_id, run in runs.items()}
    waits, chains = (
        [
            {**row, **{name: row[name] / count for name in ("time_us", "through_us") if name in row}}
            for row in study.rows[table]
            if (count := operations.get(row["run_id"]))
        ]
        for table in ("waits", "wait_chains")
    )
    watched = {row["run_id"] for row in waits}
    latencies = [us for run_id in watched if (us := runs[run_id]["latency_mean_us"]) is not None]
    return sum_parts(waits, chains, operations=len(watched)), fmean(latencies) if latencies else None


def _count_operations(run: Row) -> float | None:
    """Return the operations of the time in which waits were counted; where it is not known, that was the window."""
    if run["throughput_ops"] is None or run["waits_s"] is None:
        return run["operations"]  # type: ignore[no-any-return]
    return float(run["throughput_ops"] * run["waits_s"])
