"""How many of the knobs that matter are found where a bottleneck hides them, on generated systems of 200 knobs?

Run `python benchmarks/narrowing.py [--systems 60] [--jobs 2]`. Systems are those of `benchmarks/screening.py`, with a
bottleneck: one further knob, or two or three at once, make the system 20 to 160 times slower at any level but the
default, and then nothing else counts. Each system is screened in five rounds of 60 runs, drawn and ranked by the code
that studies use, in two ways: a Latin hypercube (`lhs`), and one whose later rounds leave out levels, and pairs of
them, that turned out to be costly (`narrowing`). Printed are, by the number of knobs of the bottleneck, the share of
the knobs that matter that were found (those of the bottleneck are among them), the idle ones named, and of how many
knobs that are no part of the bottleneck levels were left out.
"""

import argparse
import math
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
from screening import KNOBS, NAMES, Generator, System, draw_system, find_by_selection

from knobscope.processes.parallel import one_thread
from knobscope.specs import Dbms, Value
from knobscope.stages.plan import DesignSpace, draw_configurations, find_costly, narrow
from knobscope.stages.plan.sampling import Key

ROUNDS, RUNS = 5, 60
WAYS = ("lhs", "narrowing")


@dataclass(frozen=True)
class Bottleneck:
    """A system, and knobs that together make it slow when none of them has its default, which is level 0."""

    system: System
    knobs: tuple[int, ...]
    slower: float  # natural logarithm

    def measure(self, codes: np.ndarray, rng: Generator) -> np.ndarray:
        """Return the throughput of configurations (rows of level numbers), each measured once."""
        free = self.system.measure(codes, rng)
        bound = 1000 * np.exp(self.system.noise * rng.normal(size=len(codes)) - self.slower)
        return np.where((codes[:, list(self.knobs)] > 0).all(axis=1), np.minimum(free, bound), free)


def draw_bottleneck(rng: Generator, knobs: int) -> Bottleneck:
    """Draw a system, and which of its idle knobs are a bottleneck."""
    system = draw_system(rng)
    idle = rng.permutation(np.setdiff1d(np.arange(KNOBS), list(system.curves)))
    return Bottleneck(system, tuple(map(int, idle[:knobs])), float(rng.uniform(math.log(20), math.log(160))))


def make_space(system: System) -> DesignSpace:
    """Return what a study with these knobs may draw."""
    knob = {"type": "integer", "range": [0, 2], "default": 0, "apply": "restart", "mechanism": "other"}
    knob["source"] = "https://example.org"
    dbms = {
        "name": "generated",
        "description": "a generated system",
        "version_sql": "-",
        "writing": {"restart": {"sql": "{knob} {value}"}},
        "readback": {"each": "{knob}"},
        "connection": {"binding": "none", "properties": {}},
        "loading": {"tables": ["-"]},
        "knobs": dict.fromkeys(NAMES, knob),
    }
    levels: dict[str, list[Value]] = {
        name: list(range(count)) for name, count in zip(NAMES, system.levels.tolist(), strict=True)
    }
    return DesignSpace(Dbms.model_validate(dbms), levels, dict.fromkeys(NAMES, 0), {})


def screen(way: str, bottleneck: Bottleneck, rng: Generator) -> tuple[np.ndarray, np.ndarray, set[int]]:
    """Return the level numbers of all rounds, their throughput, and the knobs of which levels were left out."""
    space = make_space(bottleneck.system)
    earlier: dict[Key, float] = {}
    for number in range(ROUNDS):
        costly = find_costly(space, earlier) if way == "narrowing" and number else []
        random = np.random.RandomState(rng.integers(2**31))
        drawn = draw_configurations(narrow(space, costly), "lhs", RUNS, random, set(earlier))
        keys = [space.key(configuration) for configuration in drawn]
        earlier |= zip(keys, np.log(bottleneck.measure(np.array(keys, int), rng)).tolist(), strict=True)
    left_out = {NAMES.index(knob) for clash in costly for knob in clash.values}
    return np.array(list(earlier), int), np.exp(list(earlier.values())), left_out


def judge_system(seed: int) -> list[dict[str, Any]]:
    """Screen one system in both ways; a row per way."""
    rng, knobs = np.random.default_rng(seed), 1 + seed % 3
    bottleneck, rows = draw_bottleneck(rng, knobs), []
    for way in WAYS:
        codes, throughput, left_out = screen(way, bottleneck, np.random.default_rng([seed, 1]))
        with one_thread():
            picks = find_by_selection("auto", codes, throughput, seed)
        rows.append({"knobs": knobs, "way": way, **_score(bottleneck, picks, left_out)})
    return rows


def _score(bottleneck: Bottleneck, knobs: Iterable[int], left_out: set[int]) -> dict[str, int]:
    active = set(bottleneck.system.curves) | set(bottleneck.knobs)
    named = set(knobs)
    return {
        "active": len(active),
        "found": len(active & named),
        "false": len(named - active),
        "others_left_out": len(left_out - set(bottleneck.knobs)),
    }


def main() -> None:
    """Print a row per size of the bottleneck and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    rows = []
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        seeds = range(1000 * args.seed, 1000 * args.seed + args.systems)
        for count, system_rows in enumerate(pool.map(judge_system, seeds), start=1):
            rows += system_rows
            print(f"\r{count} of {args.systems} systems", end="\n" if count == args.systems else "", file=sys.stderr)
    print(f"{'bottleneck':12}{'sampling':12}{'systems':>8}{'found':>9}{'false':>8}{'others left out':>17}")
    for (knobs, way), part in pd.DataFrame(rows).groupby(["knobs", "way"]):
        share = part["found"].sum() / part["active"].sum()
        figures = f"{len(part):8}{share:9.1%}{part['false'].mean():8.2f}{part['others_left_out'].mean():17.2f}"
        print(f"{knobs} knob{'s' * (knobs > 1):7}{way:12}{figures}")


if __name__ == "__main__":
    main()
