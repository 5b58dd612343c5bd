"""Do effects of a few values survive differences in noise? False alarms and power on simulated sweeps.

Run `python benchmarks/truth/few_values.py [--values 2 5] [--blocks 3] [--studies 3000] [--jobs 1]`. A sweep has one
knob and complete blocks, as in `benchmarks/effects.py`; one value or the default configuration is two or four times as
noisy as the others, or the default half or a quarter as noisy. With fewer than eight configurations all share one
variance (`common`, as in `knobscope.statistics.variances`). That is compared with a variance of its own for each
(`own`, Welch), with the moderation that is used from eight configurations on (`moderated`), with an own variance where
an F test calls a configuration noisier than the others (`tested`), and with one variance of the default configuration
and one of all values (`grouped`). Alarms are the shares of p values below 5 % where nothing has an effect, of the
value that may be noisy and of the quiet ones; power is the same share where a value is 1.1 times as fast.
"""

import argparse
import itertools
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import fdtrc

sys.path.insert(0, str(Path(__file__).parents[1]))
import effects

from knobscope.stages.detect.blocks import judge_blocks
from knobscope.stages.detect.effects import design_units
from knobscope.stages.detect.units import make_units
from knobscope.statistics import regression, variances
from knobscope.statistics.arrays import Floats

NOISE, EFFECT = 0.05, np.log(1.1)
#: Ratios of the noise of the default configuration and of the first value to that of other values.
RATIOS = {
    "equal": (1, 1),
    "a value 2x": (1, 2),
    "a value 4x": (1, 4),
    "default 2x": (2, 1),
    "default 4x": (4, 1),
    "default 1/2": (0.5, 1),
    "default 1/4": (0.25, 1),
}
#: Studies with one order of runs.
DRAWS = 25


def own_variances(squares: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Return each configuration's own variance, as Welch's test does."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return squares / degrees, degrees


def tested_variances(squares: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Return the common variance, and their own for configurations that are noisier than the others (F test)."""
    degrees = np.maximum(degrees, 1e-9)
    others, of_others = squares.sum() - squares, degrees.sum() - degrees
    noisier = fdtrc(degrees, of_others, squares / degrees / (others / of_others)) < 0.05
    total = degrees[~noisier].sum()
    return np.where(noisier, squares / degrees, squares[~noisier].sum() / total), np.where(noisier, degrees, total)


def grouped_variances(squares: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Return a variance of the default configuration, which has most runs, and one of all others."""
    is_default = np.arange(len(squares)) == 0
    variance, of_variance = (np.array([numbers[0], numbers[1:].sum()]) for numbers in (squares, degrees))
    return np.where(is_default, *variance / of_variance), np.where(is_default, *of_variance)


#: Method -> configurations from which on variances are moderated, and how that is done.
METHODS = {
    "common": (8, variances.moderate_variances),
    "own": (8, own_variances),
    "moderated": (2, variances.moderate_variances),
    "tested": (8, tested_variances),
    "grouped": (8, grouped_variances),
}


def judge(ratios: tuple[float, float], values: int, blocks: int, seed: int) -> pd.DataFrame:
    """Return the shares of clear effects in studies with one order of runs, by method."""
    effects.VALUES = values
    rng = np.random.default_rng([seed, values, blocks])
    still = partial(effects.plain, 0.0)
    runs = effects.draw_blocks(rng, "d", dict.fromkeys(range(blocks), np.arange(1, values + 1)), 1, still, 0.0)
    units = make_units(runs, runs["setting"].to_numpy(np.int64))
    groups, _ = judge_blocks(units.frame, effects.MIN_EFFECT)
    level = units.responses["throughput_ops"]
    design = design_units(groups.comparable(np.isfinite(level)), units, groups, values + 1)
    scale = NOISE * np.select([units.setting == 0, units.setting == 1], ratios, 1.0)
    parts = np.column_stack([np.arange(1, values + 1), np.zeros(values, np.int64)])
    results = []
    for _ in range(DRAWS):
        response = level + rng.normal(0, scale)
        for method, (least, moderate) in METHODS.items():
            variances._LEAST_KNOWN, regression.moderate_variances = least, moderate
            estimates, errors, degrees = design.fit(response).contrast(parts, np.array([1.0, -1.0]))
            _, half = regression.t_interval(0 * errors, errors, np.maximum(degrees, 1))
            false, true = np.abs(estimates) > half, np.abs(estimates + EFFECT) > half
            results.append((method, false[0], true[0], false[1:].mean(), true[1:].mean()))
    columns = ["method", "alarms, value 1", "power, value 1", "alarms, others", "power, others"]
    return pd.DataFrame(results, columns=columns).groupby("method", sort=False).mean()


def main() -> None:
    """Print a table: a line per kind of noise and method, in percent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, nargs="+", default=[2, 5])
    parser.add_argument("--blocks", type=int, nargs="+", default=[3])
    parser.add_argument("--studies", type=int, default=3000)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for blocks, values, (name, ratios) in itertools.product(args.blocks, args.values, RATIOS.items()):
            studies = list(pool.map(partial(judge, ratios, values, blocks), range(args.studies // DRAWS), chunksize=5))
            means = 100 * pd.concat(studies).groupby(level=0, sort=False).mean()
            print(f"{values} values, {blocks} blocks, {name}\n{means.round(1).to_string()}", flush=True)


if __name__ == "__main__":
    main()
