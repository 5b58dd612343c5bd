"""Do 90 % intervals of ranks hold the true rank, and does nothing drift between two studies of the same system?

Run `python benchmarks/truth/rank_intervals.py [--systems 40]`. Three kinds of systems that the code never saw: curves
whose strengths fall off geometrically, curves with interactions, and few strong knobs among idle ones. The true
importance of a knob is the share of the variance that it takes part in (Sobol's total index), from 40,000
configurations without noise. Idle knobs share their ranks: an interval holds the truth when it meets those. `own rank`
is the coverage of the other knobs. Each system is measured twice with other configurations and other noise (A/A), so
nothing may drift.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd

from knobscope.processes.parallel import one_thread
from knobscope.statistics.design import Settings
from knobscope.statistics.drift import rank_drift
from knobscope.statistics.models import MODELS
from knobscope.statistics.models.anova import InsufficientSamplesError
from knobscope.statistics.ranking import Ranking, rank_knobs
from knobscope.statistics.stopping import Runs

KINDS = ("curves", "interactions", "idle")
RANKERS = ("anova", "extra_trees", "lightgbm")
GOAL = "goal: 88 to 92 %, drift in 1 % of the comparisons at most"


class System:
    """Knobs with some levels each, a curve per knob, and products of the curves of some pairs."""

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        """Draw it."""
        knobs = int(rng.integers(6, 21))
        self.levels = rng.choice([2, 3, 4, 6], knobs)
        strength = rng.choice([0.6, 0.75, 0.9]) ** np.arange(knobs)
        if kind == "idle":
            strength[rng.integers(2, 5) :] = 0
        self.curves = [s * rng.normal(size=count) for s, count in zip(strength, self.levels, strict=True)]
        self.curves = [curve - curve.mean() for curve in self.curves]
        pairs = rng.integers(1, 4) if kind == "interactions" else 0
        self.pairs = [tuple(rng.choice(min(knobs, 6), 2, replace=False)) for _ in range(pairs)]
        self.noise_share = float(rng.choice([0.02, 0.1, 0.3, 0.6]))
        self.rows = int(rng.choice([60, 100, 180]))

    def response(self, codes: np.ndarray) -> np.ndarray:
        """Return what the configurations would do without noise."""
        each = np.array([curve[column] for curve, column in zip(self.curves, codes.T, strict=True)])
        return np.asarray(each.sum(axis=0) + sum(2 * each[a] * each[b] for a, b in self.pairs))

    def draw(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw configurations, every level of a knob equally often."""
        return np.column_stack([rng.permutation(np.arange(rows) % count) for count in self.levels])

    def importance(self, rng: np.random.Generator) -> np.ndarray:
        """Return half the mean square of what changing one knob changes (Jansen's estimate of the total effect)."""
        codes = self.draw(40_000, rng)
        plain, redrawn = self.response(codes), self.draw(40_000, rng)
        changed = [np.where(np.arange(codes.shape[1]) == knob, redrawn, codes) for knob in range(codes.shape[1])]
        return np.array([((self.response(codes_of_knob) - plain) ** 2).mean() / 2 for codes_of_knob in changed])


def rank_once(system: System, ranker: str, rng: np.random.Generator) -> Ranking | None:
    """Measure a system once and rank its knobs; None where the runs do not suffice for the model."""
    codes = system.draw(system.rows, rng)
    clean = system.response(codes)
    noise = np.sqrt(clean.var() * system.noise_share / (1 - system.noise_share))
    frame = pd.DataFrame(codes, columns=[f"k{number}" for number in range(codes.shape[1])])
    runs = Runs.of(Settings.from_frame(frame, list(frame)), clean + rng.normal(0, noise, len(clean)))
    try:
        model = MODELS[ranker](1, frozenset())[0].fit(runs.settings, runs.response)
    except InsufficientSamplesError:
        return None
    return rank_knobs(runs, model, int(rng.integers(1000)))


def judge_system(seed: int, item: tuple[str, str, int]) -> dict[str, Any] | None:
    """Return of how many knobs the interval holds the true rank, and whether any drifts between two rankings."""
    kind, ranker, number = item
    rng = np.random.default_rng([seed, number, KINDS.index(kind)])
    system = System(kind, rng)
    true = np.round(system.importance(rng), 9)
    with one_thread():
        pair = [rank_once(system, ranker, rng) for _ in range(2)]
    if pair[0] is None or pair[1] is None:
        return None
    is_covered, has_own_rank = [], []
    for knob in pair[0].knobs:
        own = true[int(knob.knob[1:])]
        best, worst = 1 + int((true > own).sum()), int((true >= own).sum())
        is_covered.append(knob.rank_low <= worst and knob.rank_high >= best)
        has_own_rank.append(best == worst)
    fits = {
        ("", letter, ""): {"trustworthy": ranking.trustworthy, "importance": ranking.to_json()["knobs"]}
        for letter, ranking in zip("AB", pair, strict=True)
    }
    _, (overlap,) = rank_drift(fits)
    widths = [knob.rank_high - knob.rank_low + 1 for knob in pair[0].knobs]
    return {
        "kind": kind,
        "ranker": ranker,
        "trustworthy": pair[0].trustworthy,
        "held": sum(is_covered),
        "knobs": len(is_covered),
        "own_held": sum(np.logical_and(is_covered, has_own_rank)),
        "own": sum(has_own_rank),
        "width": float(np.mean(widths)) / len(is_covered),
        "compared": overlap["trustworthy"],
        "drifts": overlap["drifting"] > 0,
    }


def main() -> None:
    """Print coverage per kind, and drift."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=40, help="of each kind, for each model")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    items = [(kind, ranker, n) for n in range(args.systems) for kind in KINDS for ranker in RANKERS]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        outcomes = pool.map(partial(judge_system, args.seed), items, chunksize=3)
        table = pd.DataFrame([row for row in outcomes if row is not None])
    for keys in (["trustworthy"], ["kind", "trustworthy"], ["ranker", "trustworthy"]):
        sums = table.groupby(keys).agg(
            rankings=("held", "size"),
            held=("held", "sum"),
            knobs=("knobs", "sum"),
            own_held=("own_held", "sum"),
            own=("own", "sum"),
            width=("width", "mean"),
        )
        sums["coverage [%]"] = (100 * sums.held / sums.knobs).round(1)
        sums["own rank [%]"] = (100 * sums.own_held / sums.own).round(1)
        sums["width [% of ranks]"] = (100 * sums.width).round(0)
        print(sums[["rankings", "coverage [%]", "own rank [%]", "width [% of ranks]"]].to_string(), "\n")
    compared = table[table.compared]
    print(f"A/A: {int(compared.drifts.sum())} of {len(compared)} comparisons drift")
    print(GOAL)


if __name__ == "__main__":
    main()
