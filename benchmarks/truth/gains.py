"""Do the intervals of tunability hold what the best value of a knob truly gains over its default?

Run `python benchmarks/truth/gains.py [--systems 40]`. A system has six knobs with two to five levels; two do nothing,
the others change the logarithm of throughput by a random amount (sd 0.3) per level, and two of them interact (sd 0.15).
Random configurations, and the default one eight times, are measured and fitted as `knobscope select` does. Per model,
number of runs and noise: the share of intervals that hold the gain of the truly best value, all other knobs at their
defaults; that of knobs of which no value gains anything; the median width of the other intervals; and the share of
gains above 0.2 (natural logarithm) whose interval begins above 5 %, so that the report shows them.
"""

import argparse
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from knobscope.processes.parallel import one_thread
from knobscope.statistics.design import FullGrid, Settings
from knobscope.statistics.stopping import Runs, decide_stop
from knobscope.statistics.tunability import measure_tunability

KNOBS, IDLE, EFFECT, INTERACTION, SENTINELS = 6, 2, 0.3, 0.15, 8


def judge(model: str, runs: int, noise: float, seed: int) -> list[dict[str, Any]]:
    """Return for each knob of a system whether its interval holds its gain."""
    rng = np.random.default_rng([1149, seed])
    levels = rng.integers(2, 6, KNOBS)
    effects = [rng.normal(0, EFFECT * (knob >= IDLE), count) for knob, count in enumerate(levels)]
    joint = rng.normal(0, INTERACTION, (levels[-2], levels[-1]))

    def response(codes: np.ndarray) -> np.ndarray:
        alone = sum(of_knob[codes[:, knob]] for knob, of_knob in enumerate(effects))
        return np.asarray(alone + joint[codes[:, -2], codes[:, -1]])

    codes = (rng.random((runs, KNOBS)) * levels).astype(int)
    codes[: max(levels)] = np.minimum(np.arange(max(levels))[:, None], levels - 1)  # every level occurs
    codes = np.vstack([codes, np.zeros((SENTINELS, KNOBS), int)])
    frame = pd.DataFrame(codes, columns=[f"k{knob}" for knob in range(KNOBS)])
    measured = Runs.of(Settings.from_frame(frame, list(frame)), response(codes) + rng.normal(0, noise, len(codes)))
    stop = decide_stop(measured, model, FullGrid(measured.settings), 0.9, 10, seed)
    if stop.model is None:
        return []
    values = {f"k{knob}": list(range(1, count)) for knob, count in enumerate(levels)}
    tunability = measure_tunability(measured, stop.model, dict.fromkeys(values, 0), values, seed)
    assert tunability is not None
    rows = []
    for knob in tunability.knobs:
        number = int(knob.knob[1:])
        alone = np.zeros((levels[number], KNOBS), int)
        alone[:, number] = np.arange(levels[number])
        truth = response(alone)
        gain = float((truth - truth[0]).max())
        is_idle = gain == 0
        held = knob.gain_low - 1e-9 <= gain <= knob.gain_high + 1e-9
        rows.append(
            {
                "idle": is_idle,
                "held": held,
                "above": gain > knob.gain_high,
                "gain": gain,
                "clear": knob.gain_low > np.log(1.05),
                "width": knob.gain_high - knob.gain_low,
            }
        )
    return rows


def main() -> None:
    """Print a line per model, number of runs and noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=40)
    parser.add_argument("--models", nargs="+", default=["anova", "auto", "extra_trees"])
    args = parser.parse_args()
    with one_thread():
        for model, runs, noise in product(args.models, (60, 120, 240), (0.05, 0.2)):
            rows = [row for seed in range(args.systems) for row in judge(model, runs, noise, seed)]
            table = pd.DataFrame(rows)
            some = table[~table.idle]
            print(
                f"{model}, {runs} runs, noise {noise}: gains {100 * some.held.mean():.1f} % "
                f"(above {100 * some.above.mean():.1f} %), idle knobs {100 * table[table.idle].held.mean():.1f} %, "
                f"width {some.width.median():.2f}, clear {100 * some[some.gain > 0.2].clear.mean():.0f} %",
                flush=True,
            )
    print("goal: 94 % or more")


if __name__ == "__main__":
    main()
