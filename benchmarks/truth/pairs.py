"""Do the intervals of interactions of two values hold where the noise of consecutive runs is alike?

Run `python benchmarks/truth/pairs.py [--studies 400]`. A sweep of three or five blocks has seven values of four knobs,
six pairs of these values, and the default configuration at the start, in the middle and at the end of each block, in
random order. No pair interacts. Noise of a run is 0.1, autocorrelated within blocks. Coverage of the 95 % intervals,
and the share of sweeps with a discovery at a false discovery rate of 5 %.
"""

import argparse
from itertools import product

import numpy as np
import pandas as pd

from knobscope.stages.detect.metrics import METRICS
from knobscope.stages.detect.pairs import pair_effects_of_case

NOISE, MIN_EFFECT, FDR = 0.1, 0.05, 0.05
#: Configurations 1 to 7 are values alone, 8 to 13 pairs of these.
PAIRS = [(8, 1, 4), (9, 2, 4), (10, 1, 5), (11, 2, 5), (12, 3, 6), (13, 3, 7)]
CONFIGURATIONS = 13


def draw_noise(count: int, correlation: float, rng: np.random.Generator) -> np.ndarray:
    """Draw a stationary autoregressive series."""
    noise = rng.normal(0, 1, count)
    for index in range(1, count):
        noise[index] = correlation * noise[index - 1] + np.sqrt(1 - correlation**2) * noise[index]
    return NOISE * noise


def draw_sweep(blocks: int, correlation: float, rng: np.random.Generator) -> pd.DataFrame:
    """Draw a sweep as view `sweep_metrics` shows it."""
    parts = []
    for block in range(blocks):
        order = np.insert(
            rng.permutation(np.arange(1, CONFIGURATIONS + 1)), [0, CONFIGURATIONS // 2, CONFIGURATIONS], 0
        )
        log = rng.normal(8, 0.2) + draw_noise(len(order), correlation, rng)
        names = [f"{block}-{number}" for number in range(len(order))]
        part = pd.DataFrame({"config_id": order.astype(str), "throughput_ops": np.exp(log), "run_id": names})
        parts.append(part.assign(block_id=f"d/x/w/b{block}", position=range(len(order)), is_sentinel=order == 0))
    unmeasured = dict.fromkeys(set(METRICS) - {"throughput_ops"}, np.nan)
    return pd.concat(parts, ignore_index=True).assign(session="one", dbms="d", device="x", workload="w", **unmeasured)


def main() -> None:
    """Print a line per autocorrelation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    args = parser.parse_args()
    pairs = pd.DataFrame(PAIRS, columns=["config_id", "one_id", "other_id"]).astype(str)
    for blocks, correlation in product((3, 5), (0.0, 0.3, 0.7, 0.9)):
        held, alarms, widths = [], [], []
        for seed in range(args.studies):
            runs = draw_sweep(blocks, correlation, np.random.default_rng([1150, seed]))
            effects = pair_effects_of_case(runs, pairs, MIN_EFFECT)
            if effects.empty:  # no block can be compared
                continue
            judged = effects[effects["low"].notna()]
            held += ((judged["low"] <= 0) & (judged["high"] >= 0)).tolist()
            widths += (judged["high"] - judged["low"]).tolist()
            alarms.append((judged["q_value"] <= FDR).any())
        print(
            f"{blocks} blocks, autocorrelation {correlation}: coverage {100 * np.mean(held):.1f} %, discoveries in "
            f"{100 * np.mean(alarms):.1f} % of {args.studies} sweeps, width {np.median(widths):.2f}",
            flush=True,
        )
    print("goal: 94 % or more")


if __name__ == "__main__":
    main()
