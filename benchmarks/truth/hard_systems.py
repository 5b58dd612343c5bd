"""How many of the knobs that matter does screening find where hardly anything is simple? On generated systems.

Run `python benchmarks/truth/hard_systems.py [--systems 100] [--runs 150] [--varied 1]`. A system has 100 knobs with
two to five levels. Eleven are active; each makes it 1.3 to 3 times as fast or slow:

    steps          two knobs of which the upper levels differ from the lower ones
    U curves       two knobs whose middle levels are the best, or the worst
    gated          two knobs that count only where a switch, itself active, is on
    three at once  three knobs that count only, or more, where the levels of all three are high
    monotone       one knob

Runs are a Latin hypercube. One level of an idle knob makes a run fail in half of the cases; failed runs are missing, as
in studies. Noise is log-normal (sd 0.05) and autocorrelated by 0.7 in the order of the runs, and 2 % of the runs stall
three to ten times. Compared on the same runs are knobscope as studies use it (`auto`), extremely randomised trees and
LightGBM with the same rule for what stands out, and both with the first eleven knobs of their own importance (who uses
these does not know how many matter: it is a bound). Printed are the share of the active knobs that were found, by kind,
that of the knobs of which one level makes the default configuration 1.3x as fast or slow, which a sweep would measure,
and the idle knobs named per system. The default configuration is random; with `--varied` a configuration draws that
share of the knobs and leaves the others at their defaults, as studies do with `sampling: {varied: ...}`.
"""

import argparse
import math
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np
import pandas as pd
from pyDOE2 import lhs

from knobscope.processes.parallel import one_thread
from knobscope.stages.select.selection import mark_selected, select_knobs
from knobscope.statistics.design import Settings
from knobscope.statistics.models import make_models

KNOBS, NOISE, CORRELATED, STALLED = 100, 0.05, 0.7, 0.02
NAMES = [f"k{number}" for number in range(KNOBS)]
KINDS = ("step", "step", "U", "U", "switch", "gated", "gated", "three", "three", "three", "monotone")
GOAL = "goal: 90 % found with 0.5 idle knobs or fewer at 150 runs"

Generator = np.random.Generator


@dataclass(frozen=True)
class System:
    """Levels per knob, active knobs in the order of KINDS, what each does (log), and the one that makes runs fail."""

    levels: np.ndarray
    active: np.ndarray
    sizes: np.ndarray
    failing: int

    def log_response(self, codes: np.ndarray) -> np.ndarray:
        """Return the logarithm of throughput without noise; rows are level numbers."""
        share = codes[:, self.active] / (self.levels[self.active] - 1)  # 0 to 1
        upper = (share > 0.5).astype(float)
        size = self.sizes
        log = upper[:, :2] @ size[:2] + (4 * share * (1 - share))[:, 2:4] @ size[2:4]
        log += size[4] * upper[:, 4] + upper[:, 4] * (share[:, 5:7] @ size[5:7])
        log += 2 * size[7] * share[:, 7:10].prod(axis=1) + 0.25 * share[:, 7:10] @ size[7:10]
        return np.asarray(log + share[:, 10] * size[10])


def draw_default(system: System, seed: int) -> np.ndarray:
    """Return a random configuration."""
    return (np.random.default_rng([48, seed]).random(KNOBS) * system.levels).astype(int)


def find_swept(system: System, default: np.ndarray) -> list[bool]:
    """Return of the active knobs, in the order of KINDS, whether one level alone changes the default by 1.3x."""

    def log_of(knob: int, level: int) -> float:
        return float(system.log_response(np.where(np.arange(KNOBS) == knob, level, default)[None])[0])

    usual = float(system.log_response(default[None])[0])
    return [
        max(abs(log_of(knob, level) - usual) for level in range(system.levels[knob])) >= math.log(1.3)
        for knob in system.active
    ]


def draw_system(rng: Generator) -> System:
    """Draw which knobs are active, how many levels they have, and how much they do."""
    order = rng.permutation(KNOBS)
    active, levels = order[: len(KINDS)], rng.integers(2, 6, KNOBS)
    levels[active[[2, 3]]] = rng.choice([3, 5], 2)  # a U curve has a middle
    sizes = rng.uniform(math.log(1.3), math.log(3), len(KINDS)) * rng.choice([-1, 1], len(KINDS))
    return System(levels, active, sizes, int(order[len(KINDS)]))


def measure(
    system: System, runs: int, rng: Generator, varied: float, default: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the configurations that did not fail, and their throughput."""
    points = lhs(KNOBS, samples=runs, random_state=np.random.RandomState(rng.integers(2**31)))
    codes = np.minimum((points / varied * system.levels).astype(int), system.levels - 1)
    codes = np.where(points < varied, codes, default)
    noise, drift = np.zeros(runs), 0.0
    for run in range(runs):
        drift = CORRELATED * drift + math.sqrt(1 - CORRELATED**2) * rng.normal()
        noise[run] = NOISE * drift - (rng.random() < STALLED) * math.log(rng.uniform(3, 10))
    kept = (codes[:, system.failing] > 0) | (rng.random(runs) < 0.5)
    return codes[kept], 1000 * np.exp(system.log_response(codes) + noise)[kept]


def find(codes: np.ndarray, throughput: np.ndarray, model: str, seed: int) -> set[int]:
    """Return the knobs that stand out, by the rule of studies."""
    table = pd.DataFrame(codes, columns=NAMES).assign(throughput_ops=throughput)
    selection = select_knobs(table, NAMES, "throughput_ops", model, seed=seed)
    return {NAMES.index(str(row["knob"])) for row in mark_selected(selection, KNOBS) if row["stands_out"]}


def find_first(codes: np.ndarray, throughput: np.ndarray, model: str, seed: int) -> set[int]:
    """Return as many knobs as matter, the first by the model's own importance."""
    settings = Settings.from_frame(pd.DataFrame(codes, columns=NAMES), NAMES)
    (unfitted,) = make_models(model, seed)
    importance = unfitted.fit(settings, np.log(throughput)).importance(settings)
    return {NAMES.index(name) for name in sorted(importance, key=lambda name: -importance[name])[: len(KINDS)]}


WAYS = {
    "knobscope": partial(find, model="auto"),
    "extra_trees, what stands out": partial(find, model="extra_trees"),
    "lightgbm, what stands out": partial(find, model="lightgbm"),
    "extra_trees, first eleven": partial(find_first, model="extra_trees"),
    "lightgbm, first eleven": partial(find_first, model="lightgbm"),
}


def judge(seed: int, runs: int, varied: float) -> dict[str, tuple[list[bool], list[bool], int]]:
    """Return by way which active knobs of a system it found, which a sweep would measure, and idle ones that it named.

    Both lists are in the order of KINDS.
    """
    rng = np.random.default_rng([47, seed])
    system = draw_system(rng)
    default = draw_default(system, seed)
    codes, throughput = measure(system, runs, rng, varied, default)
    with one_thread():
        found = {name: way(codes, throughput, seed=seed) for name, way in WAYS.items()}
    return {
        name: (
            [int(knob) in of for knob in system.active],
            find_swept(system, default),
            len(of - {int(knob) for knob in system.active}),
        )
        for name, of in found.items()
    }


def main() -> None:
    """Print a line per way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first system")
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--varied", type=float, default=1.0, help="share of the knobs that a configuration draws")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.systems)
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        judged = list(pool.map(partial(judge, runs=args.runs, varied=args.varied), seeds))
    kinds = list(dict.fromkeys(KINDS))
    print(f"| {args.runs} runs, {args.systems} systems | found, % | {' | '.join(kinds)} | of swept ones | idle named |")
    print(f"|{'---|' * (len(kinds) + 4)}")
    for way in WAYS:
        by_kind = defaultdict(list)
        for of_system in judged:
            for kind, found in zip(KINDS, of_system[way][0], strict=True):
                by_kind[kind].append(found)
        everything = np.mean([found for of_system in judged for found in of_system[way][0]])
        figures = " | ".join(f"{100 * np.mean(by_kind[kind]):.0f}" for kind in kinds)
        swept = [found for of_system in judged for found, is_swept in zip(*of_system[way][:2], strict=True) if is_swept]
        idle = np.mean([of_system[way][2] for of_system in judged])
        print(f"| {way} | {100 * everything:.1f} | {figures} | {100 * np.mean(swept):.1f} | {idle:.2f} |")
    print(GOAL)


if __name__ == "__main__":
    main()
