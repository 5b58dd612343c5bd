"""What the statistics find and what they make up, on generated data whose truth is known.

Run `python benchmarks/power.py [--sets 1000] [--runs 250]`. Every data set has eight knobs: one curve that levels off
(knee), one that turns, one with a cliff, a straight line, two knobs that interact, and two that do nothing; where the
points are is drawn anew each time. It is measured at three noise levels (share of the variance), by random runs. Then
as many sets of pure noise are ranked. Printed are power (share of true terms and points that were found) and false
positives.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd

from knobscope.commands.table.rank import rank_table
from knobscope.processes.parallel import one_thread
from knobscope.statistics.curves import important_points
from knobscope.statistics.design import Settings
from knobscope.statistics.models.stepwise import StepwiseAnova
from knobscope.statistics.stopping import Runs, Stop

NOISE_SHARES = (0.02, 0.1, 0.3)
LEVELS = {"knee": 7, "turning": 7, "cliff": 8, "line": 6, "a": 3, "b": 4, "idle": 4, "idle_2": 3}
TRUE_TERMS = frozenset({"knee", "turning", "cliff", "line", "a", "b", "a:b"})
SHAPES = ("knee", "turning", "cliff")


@dataclass(frozen=True)
class Truth:
    """Where the important points are (level numbers), and the response of each setting without noise."""

    points: dict[str, int]
    response: np.ndarray


def standardise(values: np.ndarray) -> np.ndarray:
    """Return values with mean 0 and variance 1: every effect is as strong as every other."""
    return np.asarray((values - values.mean()) / values.std())


def draw_truth(codes: pd.DataFrame, rng: np.random.Generator) -> Truth:
    """Draw curves and an interaction; add up the effects of the settings."""
    knee, turn, step = (int(rng.integers(2, 5)) for _ in range(3))
    sign = rng.choice([-1, 1], 4)
    x = np.arange(8)
    curves = {
        "knee": np.minimum(x[:7], knee) + 0.03 * x[:7],
        "turning": -np.abs(x[:7] - turn),
        "cliff": (x >= step).astype(float),
        "line": x[:6].astype(float),
    }
    total = sum(s * standardise(curve)[codes[name]] for s, (name, curve) in zip(sign, curves.items(), strict=True))
    bump = (codes.a == rng.integers(3)) & (codes.b == rng.integers(4))
    total = total + standardise(bump.to_numpy(float)) * rng.choice([-1, 1])
    return Truth({"knee": knee, "turning": turn, "cliff": step}, np.asarray(total))


def measure(noise_share: float, runs: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, Truth]:
    """Draw random settings and measure them once."""
    codes = pd.DataFrame({name: rng.integers(0, count, runs) for name, count in LEVELS.items()})
    truth = draw_truth(codes, rng)
    spread = np.sqrt(truth.response.var() * noise_share / (1 - noise_share))
    return codes, truth.response + rng.normal(0, spread, runs), truth


def judge_signal(runs: int, seed: int) -> list[dict[str, Any]]:
    """Fit one data set at each noise level; a row per level says what was found."""
    rows = []
    for number, share in enumerate(NOISE_SHARES):
        codes, response, truth = measure(share, runs, np.random.default_rng([seed, number]))
        data = Runs.of(Settings.from_frame(codes, list(codes)), response)
        with one_thread():
            model = StepwiseAnova().fit(data.settings, data.response)
            explained = model.explain(data.settings, data.response)
            points = important_points(Stop(False, "", model, []), data, explained, {})
        names = {term.name for term in model.terms}
        row: dict[str, Any] = {"noise": share, "terms": len(names & TRUE_TERMS) / len(TRUE_TERMS)}
        row["interaction"] = "a:b" in names
        row["idle"] = len(names & {"idle", "idle_2"}) / 2
        row["false_interactions"] = sum(":" in name for name in names - TRUE_TERMS) / (len(LEVELS) * 7 / 2 - 1)
        for shape in SHAPES:
            own = [point["value"] for point in points if point["knob"] == point["type"] == shape]
            row[shape] = truth.points[shape] in own
            row[f"{shape} ±1"] = any(abs(value - truth.points[shape]) <= 1 for value in own)
        row["points on the line"] = any(point["knob"] == "line" for point in points)
        row["points of idle knobs"] = any(point["knob"].startswith("idle") for point in points)
        rows.append(row)
    return rows


def judge_noise(runs: int, model: str, seed: int) -> bool:
    """Whether a ranking of pure noise is called trustworthy: it must not be."""
    rng = np.random.default_rng([seed, 99])
    codes = pd.DataFrame({name: rng.integers(0, count, runs) for name, count in LEVELS.items()})
    with one_thread():
        return rank_table(Settings.from_frame(codes, list(codes)), rng.normal(size=runs), model, seed).trustworthy


def in_parallel(work: Any, items: range, jobs: int) -> Iterator[Any]:
    """Yield results in order, from several processes."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, items, chunksize=10)


def main() -> None:
    """Print a table per question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000, help="data sets, each at every noise level")
    parser.add_argument("--runs", type=int, default=250)
    parser.add_argument("--noise-sets", type=int, default=1000, help="sets of pure noise; trees rank a fifth of them")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    rows = [row for part in in_parallel(partial(judge_signal, args.runs), range(args.sets), args.jobs) for row in part]
    print(f"{args.sets} data sets of {args.runs} runs; means over them, per share of noise in the variance")
    print(pd.DataFrame(rows).groupby("noise").mean().round(3).T.to_string())
    # Trees take a hundred times as long.
    for model, sets in (("anova", args.noise_sets), ("extra_trees", max(1, args.noise_sets // 5))):
        trusted = sum(in_parallel(partial(judge_noise, args.runs, model), range(sets), args.jobs))
        print(f"pure noise, ranked by {model}: not trustworthy in {100 - 100 * trusted / sets:.1f} % of {sets} sets")


if __name__ == "__main__":
    main()
