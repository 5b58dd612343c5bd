"""How much are effects exaggerated that a study publishes, and do their intervals hold the truth?

Run `python benchmarks/truth/winners_curse.py [--studies 400]`. In a sweep of 20 values, blocks as given and three runs
of the default configuration per block, one value is 1.3 times as fast; noise is 0.2. Where the sweep finds it (false
discovery rate of 5 % over 20 comparisons), it is measured again in pairs of runs until stage `remeasure` has its
answer. Of those that stay: the published ratio over the true one (geometric mean), and the share of 95 % intervals that
hold the truth; `old` is the sweep's estimate, `new` that of the new pairs.
"""

import argparse

import numpy as np
import pandas as pd

from knobscope.specs import Case
from knobscope.specs.models.study import Remeasure
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import Amount
from knobscope.statistics.block_variation import fit_mixed
from knobscope.statistics.looks import LOOKS, SIGNIFICANCE
from knobscope.statistics.regression import Nuisance, adjust_for_fdr, t_probability
from knobscope.tables import WhatIfRunRow

VALUES, TRUTH, FDR, MIN_EFFECT = 20, float(np.log(1.3)), 0.05, float(np.log(1.05))


def sweep_effect(blocks: int, noise: float, rng: np.random.Generator) -> Amount | None:
    """Measure a sweep; return the effect of value 1, or None where it is not found."""
    setting = np.tile(np.r_[0, 0, 0, np.arange(1, VALUES + 1)], blocks)
    block = np.repeat(np.arange(blocks), VALUES + 3)
    response = rng.normal(0, 0.3, blocks)[block] + TRUTH * (setting == 1) + rng.normal(0, noise, len(setting))
    fit = fit_mixed(response, setting, Nuisance.levels(block), VALUES + 1, block)
    parts = np.column_stack([np.arange(1, VALUES + 1), np.zeros(VALUES, np.int64)])
    estimates, errors, degrees = fit.contrast(parts, np.array([1.0, -1.0]))
    q_values = adjust_for_fdr(t_probability(estimates, errors, degrees))
    is_found = q_values[0] <= FDR and abs(estimates[0]) >= MIN_EFFECT
    return Amount(float(estimates[0]), float(errors[0]), float(degrees[0])) if is_found else None


def measure_again(swept: Amount, noise: float, rng: np.random.Generator) -> Answer:
    """Measure pairs of runs until there is an answer."""
    case = Case("d", "v", "w")
    question = Question(case, "k", "1", {"k": 1}, {}, (0,), swept=swept, least=MIN_EFFECT, followed=False)
    answer, pairs = Answer(question), list[WhatIfRunRow]()
    for _ in range(LOOKS):
        for pair in range(len(pairs) // 2, len(pairs) // 2 + Remeasure().repeats):
            throughput = np.exp(rng.normal([0, TRUTH], noise))
            pairs += [
                {"pair": pair, "is_reference": is_reference, "status": "ok", "throughput_ops": float(ops)}
                for is_reference, ops in zip((True, False), throughput, strict=True)
            ]
        answer.add(ITSELF, pairs)
        if answer.is_settled:
            break
    return answer


def main() -> None:
    """Print a line per number of blocks and way to publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--noise", type=float, default=0.2)
    parser.add_argument("--blocks", type=int, nargs="+", default=[3, 6, 12])
    args = parser.parse_args()
    rows = []
    for blocks in args.blocks:
        outcomes = []
        for seed in range(args.studies):
            rng = np.random.default_rng([1147, blocks, seed])
            swept = sweep_effect(blocks, args.noise, rng)
            if swept is None:
                continue
            answer = measure_again(swept, args.noise, rng)
            published = answer.repeated_effect
            if answer.is_gone or published is None:
                continue
            for name, amount, level in (("old", swept, 0.05), ("new", published, SIGNIFICANCE)):
                low, high = amount.interval(level)
                outcomes.append((name, amount.mean - TRUTH, low <= TRUTH <= high, high - low))
        table = pd.DataFrame(outcomes, columns=["way", "log", "held", "width"])
        for way, group in table.groupby("way", sort=False):
            exaggeration, coverage = float(np.exp(group["log"].mean())), 100 * group["held"].mean()
            rows.append((blocks, way, len(group), exaggeration, coverage, group["width"].mean()))
    columns = ["blocks", "published", "studies", "exaggeration", "coverage [%]", "width"]
    print(pd.DataFrame(rows, columns=columns).round(3).to_string(index=False))
    print("goal: exaggeration of 1.05 at most, coverage of 94 % or more")


if __name__ == "__main__":
    main()
