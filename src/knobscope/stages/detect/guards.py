"""Runs that said they were well and are set aside: copies of others, damaged series, stalls, blocks without use.

They are set aside before anything is compared: their status becomes `invalid`, with the reason, as if `measure` had
found it, and table `set_aside_runs` says which guard it was. What one block shows by itself (the same series twice, too
few intervals), `measure` has found already; here all runs of the study are at hand, also those that others measured.
Runs of a sweep block that cannot be compared stay `ok`: nothing is wrong with them but their company.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from knobscope.stages.detect.metrics import METRICS
from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.copies import Figure, cautious_noise, chances_of_series, find_copies, measured_figure
from knobscope.statistics.series import (
    Series,
    find_exceptions,
    find_frozen,
    find_silent,
    find_truncated,
    measure_shapes,
)
from knobscope.statistics.stalls import measure_stalls
from knobscope.text.formats import format_number

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

_RUNS = """
    SELECT run_id, dbms, device, workload, phase, block_id, session, config_id, is_sentinel, window_s, operations,
        throughput_ops, latency_mean_us, latency_p50_us, latency_p95_us, latency_p99_us, cpu_s
    FROM runs WHERE status = 'ok' ORDER BY dbms, device, workload, phase, round, block_id, position, run_id
"""
_INTERVALS = "SELECT run_id, t_s, ops, latency_p95_us, latency_p99_us FROM intervals ORDER BY run_id, t_s"
_CASE = ["dbms", "device", "workload"]
#: Figure -> what it tells about, and the smallest share of it that can be determined, whatever digits are written.
_FIGURES = {
    "throughput_ops": ("speed", 1e-4),
    "latency_mean_us": ("speed", 1e-5),
    "latency_p50_us": ("speed", 1e-5),
    "latency_p95_us": ("tail", 1e-5),
    "latency_p99_us": ("tail", 1e-5),
    "cpu_s": ("cpu", 1e-5),
}
#: A stall that lasts to the end is told from a damaged series only where a configuration has so many runs.
_LEAST_RUNS = {"frozen": 2, "truncated": 2, "silent": 3}


def set_aside_runs(connection: "duckdb.DuckDBPyConnection") -> None:
    """Fill table `set_aside_runs`, and take these runs out of all comparisons."""
    import pandas as pd

    runs = connection.execute(_RUNS).df()
    series = _read_series(connection)
    odd_runs: dict[str, tuple[str, str | None, str]] = {
        run: ("copied", twin, reason) for run, twin, reason in find_copied_runs(runs, series)
    }
    for run, guard, reason in find_damaged_series(runs, series):
        odd_runs.setdefault(run, (guard, None, reason))
    sweep = runs[(runs["phase"] == "sweep") & ~runs["run_id"].isin(list(odd_runs))]
    odd_runs |= {run: ("stalled", None, reason) for run, reason in find_stalled_runs(sweep)}
    if not odd_runs:
        return
    rows = [(run, *about) for run, about in odd_runs.items()]
    frame = pd.DataFrame(rows, columns=["run_id", "guard", "twin_run_id", "reason"])
    connection.register("found", frame)
    connection.execute("INSERT INTO set_aside_runs SELECT run_id, guard, twin_run_id, reason FROM found")
    connection.execute(
        "UPDATE runs SET status = 'invalid', reason = found.reason FROM found WHERE found.run_id = runs.run_id"
    )
    connection.unregister("found")


def set_aside_blocks(connection: "duckdb.DuckDBPyConnection") -> None:
    """Add the runs of sweep blocks that cannot be compared to table `set_aside_runs`."""
    connection.execute(
        "INSERT INTO set_aside_runs SELECT DISTINCT run_id, 'block', NULL, 'its block: ' || b.reason "
        "FROM sweep_runs r JOIN blocks b ON b.block_id = r.block_id AND b.session IS NOT DISTINCT FROM r.session "
        "WHERE status = 'ok' AND treatment = 'dropped'"
    )


def find_stalled_runs(runs: "pd.DataFrame") -> Iterator[tuple[str, str]]:
    """Yield runs of a sweep that stalled, with a reason; all default runs of a case are of one configuration."""
    for _, case in runs.groupby(_CASE, sort=False):
        names = case["run_id"].tolist()
        setting: Ints = case["config_id"].where(~case["is_sentinel"]).factorize()[0].astype(np.int64) + 1
        group = case.groupby(["block_id", "session"], dropna=False, sort=False).ngroup().to_numpy(np.int64)
        log = METRICS["throughput_ops"].response(case["throughput_ops"].to_numpy(float))
        times = measure_stalls(log, setting, group)
        for index in np.flatnonzero(np.isfinite(times)):
            slower = format_number(times[index])
            yield names[index], f"it stalled: {slower} times slower than the median run of its configuration and block"


def _read_series(connection: "duckdb.DuckDBPyConnection") -> dict[str, Series]:
    """Return the intervals of all runs that have some; slices of two arrays, as there may be tens of thousands."""
    intervals = connection.execute(_INTERVALS).df()
    names = intervals["run_id"].to_numpy(object)
    begins = np.flatnonzero(np.r_[True, names[1:] != names[:-1]]) if len(names) else np.zeros(0, np.int64)
    times = intervals["t_s"].to_numpy(float)
    figures = intervals[["ops", "latency_p95_us", "latency_p99_us"]].to_numpy(float)
    bounds = pairwise([*begins.tolist(), len(names)])
    return {names[begin]: Series(times[begin:end], figures[begin:end]) for begin, end in bounds}


def find_copied_runs(runs: "pd.DataFrame", series: dict[str, Series]) -> Iterator[tuple[str, str, str]]:
    """Yield runs that are copies, each with a run that has the same figures and a reason.

    `runs` has the columns of table `runs`, in the order of blocks and positions. Of runs of the same configuration the
    first one stays; where configurations differ nobody can say whose figures they are, and none stays.
    """
    if runs.empty:
        return
    block = runs.groupby(["block_id", "session"], dropna=False, sort=False).ngroup().to_numpy(np.int64)
    setting = runs.groupby([*_CASE, "config_id"], dropna=False, sort=False).ngroup().to_numpy(np.int64)
    first = find_copies(list(_figures(runs, series, setting, block)), block)
    names = runs["run_id"].tolist()
    for original in np.unique(first[first != np.arange(len(first))]):
        alike = np.flatnonzero(first == original)
        if len(set(setting[alike])) == 1:
            for copy in alike[1:]:
                yield names[copy], names[original], "the same figures as another run, to the last digit"
            continue
        for run in alike:
            twin = next(index for index in alike if setting[index] != setting[run])
            reason = "the same figures as a run of another configuration or case, to the last digit"
            yield names[run], names[twin], f"{reason}, so that nobody can say whose they are"


def _figures(runs: "pd.DataFrame", series: dict[str, Series], setting: Ints, block: Ints) -> Iterator[Figure]:
    counted = np.fmax(runs["operations"].to_numpy(float), (runs["throughput_ops"] * runs["window_s"]).to_numpy(float))
    for name, (topic, least) in _FIGURES.items():
        values = runs[name].to_numpy(float)
        steps = np.full(len(runs), least)
        if name == "throughput_ops":  # one operation more or less, where it is known how many there were
            steps = np.where(counted > 0, 1 / np.where(counted > 0, counted, 1.0), least)
        yield measured_figure(topic, values, steps, cautious_noise(values, setting, block))
    codes: dict[bytes, int] = {}
    values, chances = np.full(len(runs), np.nan), np.ones(len(runs))
    figures = {index: series[run].figures for index, run in enumerate(runs["run_id"]) if run in series}
    if figures:
        values[list(figures)] = [codes.setdefault(array.tobytes(), len(codes) + 1) for array in figures.values()]
        chances[list(figures)] = chances_of_series(list(figures.values()))
    yield Figure("series", values, chances, may_lack=True)


def find_damaged_series(runs: "pd.DataFrame", series: dict[str, Series]) -> Iterator[tuple[str, str, str]]:
    """Yield runs whose intervals are not what happened: run, guard (`frozen`, `silent`, `truncated`) and reason."""
    with_series = runs[runs["run_id"].isin(list(series))]
    for _, case in with_series.groupby(_CASE, sort=False):
        names = case["run_id"].tolist()
        shapes = measure_shapes([series[name] for name in names])
        configuration: Ints = case["config_id"].factorize()[0].astype(np.int64)
        window: Floats = case["window_s"].to_numpy(float)
        odd_by_guard = {
            "frozen": find_frozen(shapes),
            "truncated": find_truncated(shapes, window),
            "silent": find_silent(shapes),
        }
        for guard, odd in odd_by_guard.items():
            for index in np.flatnonzero(find_exceptions(odd, configuration, _LEAST_RUNS[guard])):
                intervals = shapes.intervals[index]
                ends = f"its intervals end {shapes.end_s[index]:.3g} s after the begin of the window"
                reason = {
                    "frozen": f"{shapes.repeats[index] + 1} of {intervals} intervals are the same, to the last digit",
                    "truncated": ends if np.isnan(window[index]) else f"{ends}, which is {window[index]:.3g} s long",
                    "silent": "no operation ends in "
                    f"{max(shapes.silent[index], shapes.pause[index])} of {intervals} intervals in a row",
                }[guard]
                yield names[index], guard, reason
