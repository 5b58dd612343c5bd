"""Do shorter windows find the same knobs, and in how much less time? On runs of a real server.

Run `python benchmarks/truth/windows.py [--study rocksdb-io --workload ycsb-a]` in an empty folder, as the user who runs
studies, on an idle machine; a second call measures what is missing. Two rounds of screening of a study are measured
with its own windows, and then shortened on paper, from the operations of each interval:

    half, fifth    the first half, and the first fifth, of each window
    operations     until so many have ended as the default configuration has in a fifth (`measure_operations`)
    racing         a run of the second round ends after a fifth where this lies within a standard deviation of what the
                   model of the first round predicts
    second half    what is left of each window after its first half: the same time as *half*, but other noise
    half the runs  the first round alone, with whole windows

Printed are the time that screening would have taken (loading, starting, warming up and stopping included), of that with
whole windows; by how much a run's throughput differs from that of its whole window (standard deviation of the natural
logarithm); how many of the first eight knobs are the same; and the held-out R2.
"""

import argparse
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from derived import derive_study

sys.path.append(str(Path(__file__).parents[1]))

from verdicts import link_specs, run_study

from knobscope.processes.parallel import one_thread
from knobscope.specs import load_study
from knobscope.stages.plan import case_space
from knobscope.stages.select import select_knobs
from knobscope.stages.select.command import screening_table
from knobscope.statistics.design import Settings
from knobscope.statistics.response import remove_block_offsets
from knobscope.statistics.stopping import Runs, decide_stop
from knobscope.tables.responses import RESPONSES

FIRST = 8
GOAL = "goal: half of the time, with the same first eight"


def read_runs(file: Path, results: Path) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return the runs of screening with their knobs, the operations of their intervals, and the names of the knobs."""
    specs = load_study(file, Path.cwd())
    (case,) = specs.cases
    levels = case_space(specs, case).levels
    folder = results / str(case)
    blocks = sorted((folder / "runs").glob("screen-*"))
    runs = screening_table(blocks, sorted((folder / "plan").glob("screen-*.parquet")), levels, RESPONSES["throughput"])
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        times = connection.execute(
            "SELECT run_id, started_at, window_s, overhead_s, is_sentinel FROM runs "
            "WHERE status = 'ok' AND phase = 'screen'"
        ).df()
        intervals = connection.execute("SELECT run_id, t_s, ops FROM intervals ORDER BY ALL").df()
    runs = runs.merge(times, on="started_at", validate="one_to_one")
    return runs, intervals[intervals["run_id"].isin(runs["run_id"])], list(levels)


class Windows:
    """Throughput and length of every run's window, shortened in several ways."""

    def __init__(self, runs: pd.DataFrame, intervals: pd.DataFrame, knobs: list[str]) -> None:
        """Keep the runs, and the operations of each interval as a table with a row per run."""
        self.runs, self.knobs = runs, knobs
        numbered = intervals.assign(number=intervals.groupby("run_id").cumcount())
        self.ops = numbered.pivot(index="run_id", columns="number", values="ops").loc[runs["run_id"]].to_numpy(float)
        self.step_s = float(intervals.groupby("run_id")["t_s"].diff().median())
        self.count = self.ops.shape[1]

    def of(self, steps: np.ndarray, begin: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return throughput and seconds of windows that have so many intervals each, from one on."""
        position = np.arange(self.count)
        inside = (position >= begin) & (position < begin + steps[:, None])
        return np.nansum(np.where(inside, self.ops, 0), axis=1) / (steps * self.step_s), steps * self.step_s

    def first(self, part: float) -> tuple[np.ndarray, np.ndarray]:
        """Return those of the first part of each window."""
        return self.of(np.full(len(self.runs), max(1, round(part * self.count))))

    def operations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return those of windows that end with the operations that the default has in a fifth, or as they do."""
        throughput, seconds = self.first(0.2)
        enough = np.median((throughput * seconds)[self.runs["is_sentinel"].to_numpy(bool)])
        reached = np.nancumsum(self.ops, axis=1) >= enough
        steps = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, self.count)
        return self.of(np.maximum(steps, round(1 / self.step_s)))

    def racing(self) -> tuple[np.ndarray, np.ndarray]:
        """Return those of windows that end after a fifth where the model of the first round agrees."""
        whole, short = self.first(1)[0], self.first(0.2)
        settings = Settings.from_frame(self.runs, self.knobs)
        is_first = (self.runs["round"] == self.runs["round"].min()).to_numpy()
        response, _ = remove_block_offsets(settings.groups(), self.runs["block"].to_numpy(), np.log(whole))
        earlier = Runs.of(settings.take(is_first), response[is_first])
        stop = decide_stop(earlier, "auto", settings, 0.9, 10, 1)
        if stop.model is None or stop.predicted is None:
            raise SystemExit("the first round has too few runs for a model")
        error = np.nanstd(earlier.response - stop.predicted)
        agrees = ~is_first & (np.abs(np.log(short[0]) - stop.model.predict(settings)) <= error)
        return self.of(np.where(agrees, round(short[1][0] / self.step_s), self.count))


def rank(runs: pd.DataFrame, knobs: list[str], throughput: np.ndarray) -> tuple[list[str], float]:
    """Return the knobs in the order of their ranks, and the held-out R2."""
    selection = select_knobs(runs.assign(throughput_ops=throughput), knobs, "throughput_ops", "auto")
    ranked = sorted(selection.importance, key=lambda entry: entry["rank"])
    return [entry["knob"] for entry in ranked], selection.holdout_r2 or float("nan")


def compare(windows: Windows, warmup_s: float) -> pd.DataFrame:
    """Return a row for each way to shorten windows."""
    runs, (whole, length_s) = windows.runs, windows.first(1)
    around_s = runs["overhead_s"].to_numpy() + warmup_s
    is_first = (runs["round"] == runs["round"].min()).to_numpy()
    everything = np.ones(len(runs), bool)
    half = windows.count // 2
    ways = {
        "whole windows": (*windows.first(1), everything),
        "half": (*windows.first(0.5), everything),
        "second half": (*windows.of(np.full(len(runs), half), half), everything),
        "fifth": (*windows.first(0.2), everything),
        "operations": (*windows.operations(), everything),
        "racing": (*windows.racing(), everything),
        "half the runs": (whole, length_s, is_first),
    }
    reference, _ = rank(runs, windows.knobs, whole)
    rows = []
    for name, (throughput, seconds, kept) in ways.items():
        order, r2 = rank(runs[kept], windows.knobs, throughput[kept])
        time = (seconds + around_s)[kept].sum() / (length_s + around_s).sum()
        differs = np.std(np.log(throughput / whole)[kept])
        same = len({*order[:FIRST]} & {*reference[:FIRST]})
        rows.append({"windows": name, "time": time, "differs": differs, "same": same, "R2": r2, "first": order[:FIRST]})
    return pd.DataFrame(rows)


def main() -> None:
    """Measure the study, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="rocksdb-io")
    parser.add_argument("--workload", default="ycsb-a", help="the one of the study's that is measured")
    parser.add_argument("--runs", type=int, default=30, help="of each of two rounds")
    args = parser.parse_args()
    link_specs()
    own = {
        "sampling": f"{{runs_per_round: {args.runs}, max_rounds: 2, method: lhs}}",
        "screening": "{threshold: 0.999, warm_start: false, top: 1}",
        "sweep": "{repeats: 2}",
        "remeasure": "{findings: 0}",
    }
    file = derive_study(args.study, f"{args.study}-windows", own, {}, args.workload)
    results = run_study(file)
    runs, intervals, knobs = read_runs(file, results)
    warmup_s = load_study(file, Path.cwd()).workloads[args.workload].warmup_s
    with one_thread():
        table = compare(Windows(runs, intervals, knobs), warmup_s)
    print(f"{args.study}: {len(runs)} runs, {len(knobs)} knobs, windows of {runs['window_s'].median():g} s\n")
    print("| windows | time, % | differs | same of the first eight | R2 |\n|---|---|---|---|---|")
    for row in table.itertuples():
        print(f"| {row.windows} | {100 * row.time:.0f} | {row.differs:.3f} | {row.same} | {row.R2:.2f} |")
    for row in table.itertuples():
        print(f"{row.windows}: {', '.join(row.first)}")
    print(GOAL)


if __name__ == "__main__":
    main()
