"""Do the predicted effects of a screening sample hold the truth? On generated systems whose effects are known.

Run `python benchmarks/truth/predicted_effects.py [--systems 20] [--runs 150] [--knobs 30]`. Of the knobs, with two to
four levels each, six are active; two pairs of these interact, and noise is log-normal (sd 0.05). Configurations are
random, as in the table of a stranger. An effect is that of a value against the knob's first one, all other knobs at
their first ones. Printed are the share of 95 % intervals that hold the truth, for values of active and of idle knobs,
the mean error, and how many idle knobs have an interval without 0.
"""

import argparse

import numpy as np
import pandas as pd

from knobscope.processes.parallel import one_thread
from knobscope.stages.select import select_knobs

ACTIVE, PAIRS, NOISE = 6, 2, 0.05
GOAL = "goal: 95 % of the intervals hold the truth"


def judge(seed: int, runs: int, knobs: int, model: str) -> list[dict[str, object]]:
    """Return a row for each value of each knob of a system."""
    rng = np.random.default_rng([5, seed])
    levels = {f"k{number}": list(range(int(rng.integers(2, 5)))) for number in range(knobs)}
    curves = {
        knob: np.r_[0, rng.choice([-1, 1], len(values) - 1) * rng.uniform(0.1, 0.6, len(values) - 1)]
        if number < ACTIVE
        else np.zeros(len(values))
        for number, (knob, values) in enumerate(levels.items())
    }
    table = pd.DataFrame({knob: rng.choice(values, runs) for knob, values in levels.items()})
    response = sum(curves[knob][table[knob]] for knob in levels)
    for first, second in [(f"k{2 * pair}", f"k{2 * pair + 1}") for pair in range(PAIRS)]:
        response = response + rng.uniform(0.2, 0.5) * ((table[first] > 0) & (table[second] > 0))
    table["y"] = 1000 * np.exp(response + rng.normal(0, NOISE, runs))
    default = dict.fromkeys(levels, 0)
    with one_thread():
        selection = select_knobs(table, list(levels), "y", model, default=default, levels=levels, seed=seed)
    effects = [] if selection.tunability is None else selection.tunability.effects
    return [
        {
            "kind": "active" if int(effect.knob[1:]) < ACTIVE else "idle",
            "holds": effect.effect_low <= (truth := curves[effect.knob][effect.value]) <= effect.effect_high,
            "error": abs(effect.effect - truth),
            "without 0": effect.effect_low * effect.effect_high > 0,
        }
        for effect in effects
    ]


def main() -> None:
    """Print a line for values of active and of idle knobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=20)
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--knobs", type=int, default=30)
    parser.add_argument("--model", default="auto")
    args = parser.parse_args()
    rows = [row for seed in range(args.systems) for row in judge(seed, args.runs, args.knobs, args.model)]
    print(pd.DataFrame(rows).groupby("kind").mean().round(3).to_string())
    print(GOAL)


if __name__ == "__main__":
    main()
