"""How often screening stops too early: generated systems that are hard on purpose, or your own tables.

Run `python benchmarks/false_stops.py [--systems 40] [--trials 3] [--seed 1]` for generated systems, or name CSV files
that hold every setting of a system (a column per knob, and the response): `python benchmarks/false_stops.py a.csv b.csv
--response time --ignore energy`. A stop can be checked on them: it is false when R2 on the settings that were never
looked at is below .85. Strategies are compared on the same systems. Kinds of generated systems: interactions of three
knobs, cliffs (a corner of the grid is ten times slower), rare levels, noise that limits what can be predicted, hardly
any effect, heavy tails, products of many effects, parity of three switches, smooth curves over many levels, and knobs
that switch other knobs off.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from knobscope.commands.table.replay import Plan, run_trial
from knobscope.processes.parallel import one_thread
from knobscope.statistics.design import Settings

FALSE_BELOW = 0.85
STRATEGIES = {
    "anova, random": Plan("anova", "random", start=0.05, step=0.05),  # as in the paper
    "auto, lhs": Plan("auto", "lhs"),
    "auto, active": Plan("auto", "active"),  # the default of `replay`
}

Generator = np.random.Generator


def make_grid(rng: Generator, least: int = 4, most: int = 7) -> pd.DataFrame:
    """Return a full grid of 250 to 1,200 settings: knobs k0, k1, ... with two to five levels each."""
    while True:
        counts = rng.integers(2, 6, rng.integers(least, most + 1))
        if 250 <= np.prod(counts) <= 1200:
            return pd.DataFrame(product(*map(range, counts)), columns=[f"k{i}" for i in range(len(counts))])


def main_effects(grid: pd.DataFrame, rng: Generator, size: float) -> np.ndarray:
    """Sum of one random curve per knob; knobs differ in strength, and about a third of them do nothing."""
    total = np.zeros(len(grid))
    for name in grid:
        strength = size * rng.exponential(1) * (rng.random() > 0.35)
        total += strength * rng.normal(size=grid[name].nunique())[grid[name]]
    return total


def corner(grid: pd.DataFrame, rng: Generator, knobs: int) -> np.ndarray:
    """Mark the settings where some knobs all have one certain level."""
    marked = np.ones(len(grid), bool)
    for name in rng.permutation(grid.columns)[:knobs]:
        marked &= (grid[name] == rng.integers(grid[name].nunique())).to_numpy()
    return marked


def three_way(rng: Generator) -> pd.DataFrame:
    """One to three interactions of three knobs, as strong as the main effects together."""
    grid = make_grid(rng)
    y = main_effects(grid, rng, 1)
    for _ in range(rng.integers(1, 4)):
        y = y + rng.uniform(2, 8) * corner(grid, rng, 3)
    return grid.assign(y=y + rng.normal(0, 0.1, len(grid)))


def cliffs(rng: Generator) -> pd.DataFrame:
    """A corner of two or three knobs is five to twenty times slower."""
    grid = make_grid(rng)
    y = 10 + main_effects(grid, rng, 0.7)
    y = np.abs(y) * np.where(corner(grid, rng, rng.integers(2, 4)), rng.uniform(5, 20), 1)
    return grid.assign(y=y * np.exp(rng.normal(0, 0.03, len(grid))))


def rare_level(rng: Generator) -> pd.DataFrame:
    """One level of a knob is allowed beside few others only, and is far from the rest."""
    grid = make_grid(rng)
    y = main_effects(grid, rng, 1) + rng.uniform(5, 15) * (grid.k0 == 0)
    allowed = (grid.k0 != 0) | (rng.random(len(grid)) < 0.08)
    return grid.assign(y=y + rng.normal(0, 0.2, len(grid)))[allowed].reset_index(drop=True)


def noise_limited(rng: Generator) -> pd.DataFrame:
    """Noise is 10 to 60 % of the variance."""
    grid = make_grid(rng)
    y = main_effects(grid, rng, 1) + corner(grid, rng, 2) * rng.uniform(0, 4) + rng.normal(0, 1e-3, len(grid))
    share = rng.uniform(0.1, 0.6)
    return grid.assign(y=y + rng.normal(0, np.std(y) * np.sqrt(share / (1 - share)), len(grid)))


def low_effect(rng: Generator) -> pd.DataFrame:
    """Best and worst differ by 10 %, most of it noise."""
    grid = make_grid(rng)
    y = 100 + 0.5 * main_effects(grid, rng, 1)
    return grid.assign(y=y + rng.normal(0, 2, len(grid)))


def heavy_tails(rng: Generator) -> pd.DataFrame:
    """Noise with a t distribution of two degrees: some runs are far off for no reason."""
    grid = make_grid(rng)
    y = main_effects(grid, rng, 2) + corner(grid, rng, 2) * rng.uniform(0, 6)
    return grid.assign(y=y + 0.3 * rng.standard_t(2, len(grid)))


def products(rng: Generator) -> pd.DataFrame:
    """Effects multiply, and nobody took the logarithm."""
    grid = make_grid(rng)
    return grid.assign(y=np.exp(main_effects(grid, rng, 0.6) + rng.normal(0, 0.03, len(grid))))


def parity(rng: Generator) -> pd.DataFrame:
    """Three switches whose parity decides, beside ordinary effects: no interaction of two can see it."""
    grid = make_grid(rng, 5, 7)
    switches = sum((grid[name] > 0).astype(int) for name in ("k0", "k1", "k2"))
    return grid.assign(
        y=main_effects(grid, rng, 1) + rng.uniform(0.5, 4) * (switches % 2) + rng.normal(0, 0.1, len(grid))
    )


def smooth(rng: Generator) -> pd.DataFrame:
    """Three ordered knobs with many levels whose curves bend and meet."""
    counts = rng.integers(7, 15, 3)
    grid = pd.DataFrame(product(*map(range, counts)), columns=["k0", "k1", "k2"])
    a, b, c = (grid[name] / (count - 1) for name, count in zip(grid, counts, strict=True))
    y = np.sin(rng.uniform(1, 5) * a) + rng.uniform(0, 3) * np.minimum(a, b) + rng.uniform(0, 2) * (c > 0.8)
    return grid.assign(y=y + rng.normal(0, 0.05, len(grid)))


def switched_off(rng: Generator) -> pd.DataFrame:
    """Two switches fix other knobs at their first level: cells of them hold very different shares of the settings."""
    grid = make_grid(rng)
    switch, dependents = rng.permutation(grid.columns)[:2], rng.permutation(grid.columns)[:2]
    for off, knob in zip(switch, dependents, strict=True):
        if off != knob:
            grid.loc[grid[off] == 0, knob] = 0
    grid = grid.drop_duplicates(ignore_index=True)
    y = main_effects(grid, rng, 1)
    for first, second in zip(switch, dependents, strict=True):
        cell = (grid[first] > 0) & (grid[second] == 0)
        y = y + rng.uniform(1, 5) * cell.to_numpy() * (grid[rng.choice(grid.columns)] > 0).to_numpy()
    return grid.assign(y=y + rng.normal(0, 0.1, len(grid)))


SYSTEMS: dict[str, Callable[[Generator], pd.DataFrame]] = {
    function.__name__: function
    for function in (
        three_way,
        cliffs,
        rare_level,
        noise_limited,
        low_effect,
        heavy_tails,
        products,
        parity,
        smooth,
        switched_off,
    )
}


def read_own(path: str, response: str, ignore: Sequence[str]) -> pd.DataFrame:
    """Read a table, its response named y, without other responses and knobs that have one level only."""
    table = pd.read_csv(path).drop(columns=list(ignore), errors="ignore").rename(columns={response: "y"})
    return table[[name for name in table if name == "y" or table[name].nunique() > 1]]


def generate(seed: int, kind: str, number: int) -> pd.DataFrame:
    """Generate one system: the same for the same arguments."""
    return SYSTEMS[kind](np.random.default_rng([seed, list(SYSTEMS).index(kind), number]))


def judge(seed: int, trials: int, item: tuple[str, int, pd.DataFrame | None]) -> list[dict[str, object]]:
    """Replay one system with every strategy: a row per strategy and trial. An item is kind, number, own table."""
    kind, number, own = item
    table = generate(seed, kind, number) if own is None else own
    settings = Settings.from_frame(table, [name for name in table if name != "y"])
    rows = []
    with one_thread():
        for name, plan in STRATEGIES.items():
            for trial in range(trials):
                outcome = run_trial(settings, table.y.to_numpy(float), replace(plan, seed=number), trial)
                r2 = outcome["r2_unsampled"]
                false = outcome["stopped"] and r2 is not None and r2 < FALSE_BELOW
                rows.append(
                    {"kind": kind, "number": number, "strategy": name, "stopped": outcome["stopped"], "false": false}
                )
                rows[-1] |= {"share": outcome["rate"], "r2": r2}
    return rows


def work_through(args: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield the rows of all systems; the result does not depend on the number of processes."""
    items: list[tuple[str, int, pd.DataFrame | None]] = [
        (Path(path).stem, 0, read_own(path, args.response, args.ignore)) for path in args.tables
    ]
    if not items:
        items = [(kind, number, None) for number in range(args.systems) for kind in SYSTEMS]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for rows in pool.map(partial(judge, args.seed, args.trials), items):
            yield from rows


def main() -> None:
    """Print a table: kind and strategy, stops, false stops, median share of the grid at a stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help="CSV files that hold every setting (default: generated systems)")
    parser.add_argument("--response", default="y", help="column of your tables (y)")
    parser.add_argument("--ignore", nargs="*", default=[], help="columns of your tables that are no knobs")
    parser.add_argument("--systems", type=int, default=40, help="generated systems of each kind")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    rows = pd.DataFrame(work_through(parser.parse_args()))
    rows["share"] = rows.share.where(rows.stopped)
    for keys in (["kind", "strategy"], ["strategy"]):
        table = rows.groupby(keys, sort=False).agg(
            trials=("stopped", "size"), stops=("stopped", "sum"), false=("false", "sum"), share=("share", "median")
        )
        print(table.round(3).to_string(), end="\n\n")
    worst = rows[rows["false"]]
    print(worst.to_string() if len(worst) else "no false stop")


if __name__ == "__main__":
    main()
