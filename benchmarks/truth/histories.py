"""Histories of tuners with known truth: 190 rows of 190 knobs, one of which alone separates fast rows from slow ones.

Four tuners keep what was fast: a genetic algorithm, a model-based search (extremely randomised trees, an optimistic
guess, every fourth row at random), hill climbing, and a policy that drifts (as reinforcement learning does). Knobs
therefore move together. A fifth history leaves the slow neighbourhood of the default for a configuration that another
workload liked, and stays there: most knobs then split the rows nearly as the one does that matters. Knobs with twenty
or more levels are set by orders of magnitude, as sizes are. Some histories have latencies that end at a cap, zeros of
failed runs, copied rows, or are sorted by their response.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

ROWS, KNOBS = 190, 190
#: The cap of latencies, as a multiple of the median of the slow rows.
CAP = 1.1


@dataclass(frozen=True)
class System:
    """Knobs with so many levels, and what they do: one separates, some others matter little, the rest do nothing."""

    levels: np.ndarray
    default: np.ndarray
    separator: int
    slow: np.ndarray  # per level of the separator
    slowdown: float
    small: np.ndarray  # slope per knob, mostly 0
    noise: float

    def latency(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a latency per row of level numbers."""
        curve = (codes / (self.levels - 1)) @ self.small
        factor = np.where(self.slow[codes[:, self.separator]], self.slowdown, 1.0)
        return np.asarray(10 * factor * np.exp(curve + rng.normal(0, self.noise, len(codes))))


def draw_system(rng: np.random.Generator, knobs: int = KNOBS) -> System:
    """Draw a system; the default is slow in half of them."""
    levels = rng.choice([2, 2, 3, 5, 20, 200], knobs)
    separator = int(rng.choice(np.nonzero(levels >= 20)[0] if rng.random() < 0.5 else np.nonzero(levels < 20)[0]))
    count = int(levels[separator])
    slow = np.arange(count) >= rng.integers(1, max(2, count // 2))
    if rng.random() < 0.5:
        slow = ~slow
    small = np.zeros(knobs)
    small[rng.choice(knobs, 8, replace=False)] = rng.normal(0, 0.1, 8)
    small[separator] = 0
    default = (rng.random(knobs) * levels).astype(int)
    return System(
        levels, default, separator, slow, float(rng.choice([3, 8, 25])), small, float(rng.choice([0.02, 0.1]))
    )


def mutate(system: System, codes: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Draw a share of the knobs anew."""
    drawn = (rng.random(codes.shape) * system.levels).astype(int)
    return np.where(rng.random(codes.shape) < share, drawn, codes)


Measure = Callable[[np.ndarray], np.ndarray]


def genetic(system: System, rows: int, measure: Measure, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A population of twenty: tournaments, uniform crossover, mutation of one knob in fifty."""
    codes = mutate(system, np.tile(system.default, (20, 1)), 0.5, rng)
    latency = measure(codes)
    while len(codes) < rows:
        best = np.argsort(latency, kind="stable")[:20]
        mother, father = (best[rng.integers(0, 20, (10, 3)).min(axis=1)] for _ in range(2))
        children = np.where(rng.random((10, len(system.levels))) < 0.5, codes[mother], codes[father])
        children = mutate(system, children, 0.02, rng)
        codes, latency = np.vstack([codes, children]), np.append(latency, measure(children))
    return codes[:rows], latency[:rows]


def model_based(system: System, rows: int, measure: Measure, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Like SMAC: candidates around the best rows, the one that trees think fastest; every fourth row is random."""
    codes = np.vstack([system.default, mutate(system, np.tile(system.default, (9, 1)), 1.0, rng)])
    latency = measure(codes)
    while len(codes) < rows:
        trees = ExtraTreesRegressor(10, min_samples_leaf=2, random_state=len(codes), n_jobs=1)
        trees.fit(codes, np.log(latency))
        best = np.argsort(latency, kind="stable")[:3]
        candidates = mutate(system, codes[rng.choice(best, 60)], 0.05, rng)
        guesses = np.array([tree.predict(candidates) for tree in trees.estimators_])
        order = np.argsort(guesses.mean(axis=0) - guesses.std(axis=0), kind="stable")
        new = np.vstack([candidates[order[:3]], mutate(system, codes[:1], 1.0, rng)])
        codes, latency = np.vstack([codes, new]), np.append(latency, measure(new))
    return codes[:rows], latency[:rows]


def hill_climbing(
    system: System, rows: int, measure: Measure, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Change a tenth of the knobs of the best row so far, and keep what is faster."""
    codes = system.default[None, :]
    latency = measure(codes)
    while len(codes) < rows:
        new = mutate(system, codes[[latency.argmin()]], 0.1, rng)
        codes, latency = np.vstack([codes, new]), np.append(latency, measure(new))
    return codes, latency


def drifting_policy(
    system: System, rows: int, measure: Measure, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Each row is a step of all knobs from the one before, with a pull towards the best so far (DDPG)."""
    place = (system.default + 0.5) / system.levels
    codes, latency = np.zeros((0, len(place)), int), np.zeros(0)
    best = place
    for _ in range(rows):
        place = np.clip(place + 0.2 * (best - place) + rng.normal(0, 0.08, len(place)), 0, 0.999)
        new = (place * system.levels).astype(int)[None, :]
        codes, latency = np.vstack([codes, new]), np.append(latency, measure(new))
        if latency[-1] == latency.min():
            best = place
    return codes, latency


def warm_start(system: System, rows: int, measure: Measure, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows around the default, then rows around a distant configuration, both with a few knobs drawn anew."""
    is_slow = system.slow[system.default[system.separator]]
    distant = mutate(system, system.default[None, :], rng.uniform(0.5, 1), rng)
    distant[0, system.separator] = rng.choice(np.nonzero(system.slow != is_slow)[0])
    early = int(rows * rng.uniform(0.15, 0.6))
    share = rng.choice([0.01, 0.03, 0.06])
    near, far = np.tile(system.default, (early, 1)), np.tile(distant, (rows - early, 1))
    codes = np.vstack([mutate(system, near, share, rng), mutate(system, far, share, rng)])
    return codes, measure(codes)


def random_design(
    system: System, rows: int, measure: Measure, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """No tuner: a Latin hypercube, in which every level of a knob comes equally often."""
    strata = rng.permuted(np.tile(np.arange(rows), (len(system.levels), 1)), axis=1).T
    codes = (system.levels * (strata + rng.random(strata.shape)) / rows).astype(int)
    return codes, measure(codes)


TUNERS = {
    "genetic": genetic,
    "model-based": model_based,
    "hill climbing": hill_climbing,
    "drifting policy": drifting_policy,
    "warm start": warm_start,
}


def make_history(tuner: str, seed: int) -> tuple[pd.DataFrame, str]:
    """Return a table with column `latency`, and the knob that separates; five rows or more are on each side.

    Every second history is throughput (`1 / latency`), every third one is capped, every fourth one sorted, and so on.
    """
    for attempt in range(1000):
        rng = np.random.default_rng([seed, attempt, len(tuner)])
        system = draw_system(rng, KNOBS)
        run = {**TUNERS, "random": random_design}[tuner]
        codes, latency = run(system, ROWS, lambda new, s=system, r=rng: s.latency(new, r), rng)  # type: ignore[misc]
        slow = system.slow[codes[:, system.separator]]
        if 5 <= slow.sum() <= ROWS - 5 and latency[slow].min() > latency[~slow].max():
            break
    else:
        raise RuntimeError(f"{tuner}, seed {seed}: no history with both sides")
    columns = {
        f"knob_{number}": codes[:, number] if count < 20 else np.round(2 ** (20 * codes[:, number] / (count - 1)), 3)
        for number, count in enumerate(system.levels)
    }
    table = pd.DataFrame(columns)
    table["latency"] = latency
    if seed % 3 == 1:
        table["latency"] = table.latency.clip(upper=CAP * float(np.median(latency[slow])))
    if seed % 2:
        table["latency"] = 1000 / table.latency
    if seed % 4 == 2:
        table = table.sort_values("latency", ignore_index=True)
    if seed % 5 == 3:
        table = pd.concat([table, table.iloc[:7]], ignore_index=True)
    if seed % 7 == 4:
        table.loc[rng.choice(len(table), 6, replace=False), "latency"] = 0.0
    return table, f"knob_{system.separator}"
