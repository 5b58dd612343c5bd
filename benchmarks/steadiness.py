"""How often the steadiness test calls a window unsteady: without any trend (it should be 1 %), and with one.

Run `python benchmarks/steadiness.py [--windows 3000]`. Windows are drawn from an autoregressive process of first order
with 20 % noise; beside the test of knobscope stands Mann and Kendall's, which takes the intervals for independent.
"""

import argparse

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from knobscope.statistics.steadiness import find_trend

INTERVALS = (6, 10, 20, 30, 60)
CORRELATIONS = (0.0, 0.3, 0.6, 0.8)


def draw_noise(windows: int, intervals: int, correlation: float, rng: np.random.Generator) -> np.ndarray:
    """Return noise with variance 1, a row per window."""
    noise = rng.normal(size=(windows, intervals))
    for position in range(1, intervals):
        noise[:, position] = correlation * noise[:, position - 1] + np.sqrt(1 - correlation**2) * noise[:, position]
    return noise


def is_unsteady(operations: np.ndarray) -> bool:
    """Judge a window as a run's."""
    trend = find_trend(np.rint(operations).astype(int).tolist())
    return trend is not None and not trend.is_steady


def is_unsteady_by_kendall(operations: np.ndarray) -> bool:
    """Judge a window by Kendall's tau against time, and the same change that matters."""
    trend = find_trend(np.rint(operations).astype(int).tolist())
    p_value = kendalltau(np.arange(len(operations)), np.rint(operations)).pvalue
    return trend is not None and abs(trend.change) >= 0.1 and p_value <= 0.01


def main() -> None:
    """Print shares of unsteady windows in percent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=3000)
    windows = parser.parse_args().windows
    rows = []
    for intervals in INTERVALS:
        for correlation in CORRELATIONS:
            noise = draw_noise(windows, intervals, correlation, np.random.default_rng(1))
            flat = 1000 + 200 * noise
            ramp = 1000 * (1 + np.linspace(-0.15, 0.15, intervals)) + 50 * noise[: windows // 5]
            shares = {
                "no trend": np.mean([is_unsteady(window) for window in flat]),
                "no trend, Mann-Kendall": np.mean([is_unsteady_by_kendall(window) for window in flat]),
                "30 % change in 5 % noise": np.mean([is_unsteady(window) for window in ramp]),
            }
            rows.append({"intervals": intervals, "autocorrelation": correlation, **shares})
    table = pd.DataFrame(rows).set_index(["intervals", "autocorrelation"])
    print((100 * table).round(1).to_string())


if __name__ == "__main__":
    main()
