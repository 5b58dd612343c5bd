"""How many runs it takes to find the few knobs of 200 that matter, on generated systems whose truth is known.

Run `python benchmarks/screening.py [--systems 200] [--ways knobscope anova] [--runs 80 320] [--jobs 2]`. Five to ten
knobs of 200 are active, half of all have two levels and half have three; between its extreme levels an active knob
makes the system 1.2 to 3 times as fast or slow, and three pairs of active knobs interact. Noise is log-normal (standard
deviation .03 to .1, drawn per system), three times as large in a tenth of the configurations, and 3 % of the runs
stall: 3 to 20 times slower. Compared on the same systems:

- knobscope as studies use it: Latin hypercube, model `auto`, knobs that stand out (`knobscope.stages.select`);
- the same with a warm start, from what `select` found on a relative of the system with 120 runs: one on which a fifth
  of the active knobs are others, and all effects of other sizes (`warm`); or on a system that has nothing to do with
  this one (`misled`);
- the same with LightGBM, and plain random samples with an analysis of variance of all main effects (p < .05 as in
  SIGMOD 2024), which needs more runs than there are columns;
- Morris screening with groups: elementary effects of groups of ten knobs, then of groups of five and single knobs where
  the mean absolute effect is above three standard deviations of the noise (whose true value it is told).

Printed are the share of the active knobs that were found, the mean number of idle knobs that were called active, and
the share of systems with more than one of those.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
from pyDOE2 import lhs

from knobscope.processes.parallel import one_thread
from knobscope.stages.select.selection import mark_selected, select_knobs
from knobscope.statistics.design import Settings
from knobscope.statistics.models.anova import Anova

KNOBS = 200
PAIRS = 3
NAMES = [f"k{number}" for number in range(KNOBS)]
STALLED = 0.03
RUNS = {
    "knobscope": (40, 60, 80, 120),
    "warm": (40, 60, 80, 120),
    "misled": (40, 60, 80, 120),
    "lightgbm": (160,),
    "anova": (320, 480),
}
#: Runs from which a prior was learned, and the share of the active knobs that are others here.
PRIOR_RUNS, OTHERS = 120, 0.2

Generator = np.random.Generator


@dataclass(frozen=True)
class System:
    """Levels per knob, a log effect per level of the active knobs, interactions of two, and the noise of a run."""

    levels: np.ndarray
    curves: dict[int, np.ndarray]
    pairs: dict[tuple[int, int], float]
    noise: float

    def measure(self, codes: np.ndarray, rng: Generator) -> np.ndarray:
        """Return the throughput of configurations (rows of level numbers), each measured once."""
        log = np.zeros(len(codes))
        for knob, curve in self.curves.items():
            log += curve[codes[:, knob]]
        for (first, second), size in self.pairs.items():
            shares = codes[:, [first, second]] / (self.levels[[first, second]] - 1) - 0.5
            log += 4 * size * shares.prod(axis=1)
        noisier = np.where(rng.random(len(codes)) < 0.1, 3.0, 1.0)
        stalled = rng.random(len(codes)) < STALLED
        log += self.noise * noisier * rng.normal(size=len(codes)) - stalled * np.log(rng.uniform(3, 20, len(codes)))
        return np.asarray(1000 * np.exp(log))


def draw_system(rng: Generator) -> System:
    """Draw which knobs are active, and how much."""
    return draw_effects(rng.permutation(KNOBS)[: rng.integers(5, 11)], rng)


def draw_relative(system: System, rng: Generator) -> System:
    """Draw a system on which most of the same knobs are active, each as much as chance has it."""
    active, idle = list(system.curves), np.setdiff1d(np.arange(KNOBS), list(system.curves))
    common = rng.permutation(active)[: len(active) - max(1, round(OTHERS * len(active)))]
    return draw_effects(np.concatenate([common, rng.permutation(idle)[: len(active) - len(common)]]), rng)


def draw_effects(active: np.ndarray, rng: Generator) -> System:
    """Draw how much some knobs change a system."""
    levels = np.where(np.arange(KNOBS) % 2, 2, 3)
    sizes = rng.uniform(np.log(1.2), np.log(3), len(active)) * rng.choice([-1, 1], len(active))
    between = rng.uniform(0, 1, len(active))
    curves = {
        int(knob): size * (np.array([0, 1]) if levels[knob] == 2 else np.array([0, middle, 1]))
        for knob, size, middle in zip(active, sizes, between, strict=True)
    }
    pairs: dict[tuple[int, int], float] = {}
    while len(pairs) < PAIRS:
        first, second = sorted(int(knob) for knob in rng.permutation(active)[:2])
        smaller = min(np.ptp(curves[first]), np.ptp(curves[second]))
        pairs[first, second] = float(smaller * rng.uniform(0.25, 0.5) * rng.choice([-1, 1]))
    return System(levels, curves, pairs, float(rng.uniform(0.03, 0.1)))


def draw_lhs(system: System, runs: int, rng: Generator) -> np.ndarray:
    """Return a Latin hypercube, each axis cut into the knob's levels, as `knobscope.stages.plan.sampling` does it."""
    points = lhs(KNOBS, samples=runs, random_state=np.random.RandomState(rng.integers(2**31)))
    return np.asarray(np.minimum((points * system.levels).astype(int), system.levels - 1))


def draw_random(system: System, runs: int, rng: Generator) -> np.ndarray:
    """Return levels that are independent of each other."""
    return np.asarray(rng.integers(0, system.levels, (runs, KNOBS)))


def find_by_selection(
    model: str, codes: np.ndarray, throughput: np.ndarray, seed: int, expected: Iterable[int] = ()
) -> set[int]:
    """Return the knobs that the stage `select` hands on when it may take as many as stand out."""
    table = pd.DataFrame(codes, columns=NAMES).assign(throughput_ops=throughput)
    names = frozenset(NAMES[knob] for knob in expected)
    selection = select_knobs(table, NAMES, "throughput_ops", model, seed=seed, expected=names)
    return {NAMES.index(str(row["knob"])) for row in mark_selected(selection, KNOBS) if row["stands_out"]}


def find_by_anova(codes: np.ndarray, throughput: np.ndarray) -> set[int]:
    """Return the knobs whose main effect an analysis of variance keeps."""
    settings = Settings.from_frame(pd.DataFrame(codes, columns=NAMES), NAMES)
    model = Anova(1).fit(settings, np.log(throughput))
    return {NAMES.index(factor) for term in model.terms for factor in term.factors}


def find_by_morris(system: System, rng: Generator) -> tuple[set[int], int]:
    """Return the knobs that group screening finds, and its number of runs.

    Each step moves a group from its lowest to its highest levels, or back, in random directions per knob, along two
    trajectories of an own random start; groups that move the system are divided.
    """
    groups = [np.arange(start, start + 10) for start in range(0, KNOBS, 10)]
    runs = 0
    for size in (5, 1, 0):
        effects = np.zeros(len(groups))
        for _ in range(2):
            direction = rng.integers(0, 2, KNOBS) * (system.levels - 1)
            rows = [direction]
            for group in groups:
                moved = rows[-1].copy()
                moved[group] = system.levels[group] - 1 - moved[group]
                rows.append(moved)
            effects += np.abs(np.diff(np.log(system.measure(np.array(rows), rng)))) / 2
            runs += len(rows)
        groups = [group for group, effect in zip(groups, effects, strict=True) if effect > 3 * system.noise]
        if size:
            groups = [part for group in groups for part in np.split(group, len(group) // size)]
    return {int(knob) for group in groups for knob in group}, runs


def judge_system(ways: Sequence[str], numbers: Sequence[int] | None, seed: int) -> list[dict[str, Any]]:
    """Screen one system in some ways; a row per way and number of runs. Ways that sample alike have the same runs.

    Of the numbers of runs that each way has only `numbers` are tried, if given.
    """
    rng = np.random.default_rng(seed)
    system, rows = draw_system(rng), []
    with one_thread():
        for way in ways:
            expected = expect_knobs(way, system, seed)
            for runs in RUNS[way]:
                if numbers is not None and runs not in numbers:
                    continue
                chance = np.random.default_rng([seed, runs])
                draw: Callable[[System, int, Generator], np.ndarray] = draw_random if way == "anova" else draw_lhs
                codes = draw(system, runs, chance)
                throughput = system.measure(codes, chance)
                if way == "anova":
                    knobs = find_by_anova(codes, throughput)
                else:
                    model = way if way == "lightgbm" else "auto"
                    knobs = find_by_selection(model, codes, throughput, seed, expected)
                rows.append(_score(system, way, runs, knobs, runs))
        knobs, runs = find_by_morris(system, rng)
    return [*rows, _score(system, "morris groups", 0, knobs, runs)]


def expect_knobs(way: str, system: System, seed: int) -> set[int]:
    """Return the knobs that a way expects to matter: those that stand out elsewhere; none in most ways."""
    if way not in ("warm", "misled"):
        return set()
    rng = np.random.default_rng([seed, PRIOR_RUNS, way == "warm"])
    relative = draw_relative(system, rng) if way == "warm" else draw_system(rng)
    codes = draw_lhs(relative, PRIOR_RUNS, rng)
    return find_by_selection("auto", codes, relative.measure(codes, rng), seed)


def _score(system: System, way: str, planned: int, knobs: Iterable[int], runs: int) -> dict[str, Any]:
    active, named = set(system.curves), set(knobs)
    return {
        "way": way,
        "planned": planned,
        "runs": runs,
        "active": len(active),
        "found": len(active & named),
        "false": len(named - active),
    }


def main() -> None:
    """Print a row per way and number of runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=list(RUNS), default=list(RUNS), help="beside Morris")
    parser.add_argument("--runs", nargs="+", type=int, help="try only these of the numbers of runs that each way has")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        seeds = range(1000 * args.seed, 1000 * args.seed + args.systems)
        rows = []
        for count, system_rows in enumerate(pool.map(partial(judge_system, args.ways, args.runs), seeds), start=1):
            rows += system_rows
            print(f"\r{count} of {args.systems} systems", end="\n" if count == args.systems else "", file=sys.stderr)
    print(f"{args.systems} systems of {KNOBS} knobs, 5 to 10 of them active")
    print(f"{'':16}{'runs':>6}{'found':>9}{'false':>8}{'more than one false':>22}")
    for (way, _), part in pd.DataFrame(rows).groupby(["way", "planned"], sort=False):
        share = part["found"].sum() / part["active"].sum()
        many = (part["false"] > 1).mean()
        print(f"{way:16}{part['runs'].mean():6.0f}{share:9.1%}{part['false'].mean():8.2f}{many:22.1%}")


if __name__ == "__main__":
    main()
