"""Our least squares beside statsmodels: the same analysis of variance, and how much faster.

Run `python benchmarks/anova.py [TABLE.csv RESPONSE]`; without a table, a generated grid of 3x3x2x2x3x3x3 settings of
which 15 % were sampled. Both fit main effects and all two-way interactions and test every term (type II).
"""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from statsmodels.formula.api import ols
from threadpoolctl import threadpool_limits

from knobscope.statistics.design import Settings, pairwise_terms
from knobscope.statistics.models.anova import Anova

LEVELS = (3, 3, 2, 2, 3, 3, 3)


def make_grid() -> pd.DataFrame:
    """Return a full grid whose response has two strong factors, one interaction and 3 % noise."""
    rng = np.random.default_rng(1)
    codes = np.stack(np.meshgrid(*[np.arange(n) for n in LEVELS], indexing="ij"), axis=-1).reshape(-1, len(LEVELS))
    grid = pd.DataFrame(codes, columns=[f"k{i}" for i in range(len(LEVELS))])
    mean = 100 + 30 * (grid.k0 == 0) + 20 * (grid.k0 == 1) * (grid.k1 == 2) + 4 * grid.k4
    grid["y"] = mean * rng.normal(1, 0.03, len(grid))
    return grid


def best_of(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several durations, in seconds: the one that was disturbed least."""
    durations = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        durations.append(time.perf_counter() - start)
    return min(durations)


def main(arguments: list[str]) -> None:
    """Print both durations, their ratio, and the largest differences of coefficients and sums of squares."""
    frame = pd.read_csv(Path(arguments[0])) if arguments else make_grid()
    response = arguments[1] if arguments else "y"
    factors = [name for name in frame if name != response and frame[name].nunique() <= 20]
    sample = frame.sample(frac=0.15, random_state=1)
    renamed = {name: re.sub(r"\W", "_", f"f_{name}") for name in factors}
    table = sample.rename(columns={**renamed, response: "y"})
    formula = "y ~ (" + " + ".join(f"C({name}, Sum)" for name in renamed.values()) + ") ** 2"
    settings, values = Settings.from_frame(sample, factors), sample[response].to_numpy(float)
    terms = pairwise_terms(factors)
    # One BLAS thread for both: on matrices this small more of them only wait for each other.
    threadpool_limits(1)
    fitted = ols(formula, table).fit()
    reference = sm.stats.anova_lm(fitted, typ=2)["sum_sq"].to_numpy()[:-1]
    model = Anova().fit_terms(settings, values, terms)
    squares = np.array([test.sum_of_squares for test in model.tests()])
    # In an interaction their first factor runs fastest.
    coefficients = np.concatenate([block.ravel(order="F") for block in model.coefficients.values()])
    theirs = best_of(lambda: sm.stats.anova_lm(ols(formula, table).fit(), typ=2), 3)
    sequential = best_of(lambda: sm.stats.anova_lm(ols(formula, table).fit(), typ=1), 3)
    ours = best_of(lambda: Anova().fit_terms(settings, values, terms).tests(), 20)
    print(f"{len(sample)} rows, {len(terms)} terms")
    print(f"statsmodels fit + anova_lm, type II: {1000 * theirs:8.2f} ms")
    print(f"knobscope, the same:                 {1000 * ours:8.2f} ms   {theirs / ours:.0f} times faster")
    print(f"(statsmodels, sequential tests only: {1000 * sequential:8.2f} ms)")
    print(f"largest difference of the coefficients:              {np.abs(coefficients - fitted.params).max():.1e}")
    print(f"largest difference of the sums of squares, relative: {np.abs(squares / reference - 1).max():.1e}")


if __name__ == "__main__":
    main(sys.argv[1:])
