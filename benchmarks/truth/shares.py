"""Do the intervals hold that say which share of an effect is gone on a what-if device, and do they have ends?

Run `python benchmarks/truth/shares.py [--studies 1000]`. A setting takes 1.3, 2 or 5 times as long per operation as the
default configuration; on the what-if device, which is a fifth faster, a share of the additional time is gone. Runs are
measured in pairs until the effect is clear on the device itself, as stage `remeasure` does, and in four or eight pairs
on the what-if device; noise of a run is log-normal. Of the shares that are published: how many 95 % intervals hold the
truth, how many have no ends, and that of those whose effect (microseconds) is clear by its own 95 % interval; and the
median width of those with ends.
"""

import argparse
import math
from itertools import product

import numpy as np
import pandas as pd

from knobscope.specs import Case
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import Amount
from knobscope.statistics.looks import LOOKS
from knobscope.tables import WhatIfRunRow

DEFAULT_US, WHAT_IF, LEAST = 1000.0, "latency", float(np.log(1.05))


def draw_pairs(
    first: int, count: int, times: tuple[float, float], noise: float, rng: np.random.Generator
) -> list[WhatIfRunRow]:
    """Draw pairs of runs with the default configuration and the setting, of which the times per operation are given."""
    rows: list[WhatIfRunRow] = []
    for pair in range(first, first + count):
        for is_reference, micros in zip((True, False), np.array(times) * np.exp(rng.normal(0, noise, 2)), strict=True):
            rows.append({"pair": pair, "is_reference": is_reference, "status": "ok", "throughput_ops": 1e6 / micros})
    return rows


def judge(slowdown: float, share: float, pairs: int, noise: float, seed: int) -> dict[str, float] | None:
    """Measure one effect; None where it is not clear, so that no share is published."""
    rng = np.random.default_rng([1148, seed, pairs, int(1000 * noise), int(10 * slowdown), int(10 * share)])
    more = DEFAULT_US * (slowdown - 1)
    swept = Amount(-math.log(slowdown), 0.01, 20)
    question = Question(Case("d", "v", "w"), "k", "1", {"k": 1}, {}, (0,), swept=swept, least=LEAST)
    answer, runs = Answer(question), list[WhatIfRunRow]()
    for _ in range(LOOKS):
        runs += draw_pairs(len(runs) // 2, pairs, (DEFAULT_US, DEFAULT_US + more), noise, rng)
        answer.add(ITSELF, runs)
        if answer.is_settled:
            break
    if not answer.is_open:
        return None
    faster = 0.8 * DEFAULT_US
    answer.add(WHAT_IF, draw_pairs(0, pairs, (faster, faster + (1 - share) * more), noise, rng))
    published = answer.shares[WHAT_IF]
    has_ends = math.isfinite(published.low)
    is_clear = answer.amounts[ITSELF].is_clear()
    return {
        "held": published.low <= share <= published.high,
        "without ends": not has_ends,
        "clear without ends": math.nan if not is_clear else not has_ends,
        "width": published.high - published.low if has_ends else math.nan,
    }


def main() -> None:
    """Print a line per number of pairs and noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000, help="for each effect and share")
    args = parser.parse_args()
    for pairs, noise in product((4, 8), (0.02, 0.05, 0.1, 0.2)):
        cells = product((1.3, 2.0, 5.0), (0.0, 0.5, 1.0), range(args.studies))
        rows = [row for slow, share, seed in cells if (row := judge(slow, share, pairs, noise, seed)) is not None]
        table = pd.DataFrame(rows).astype(float)
        held, ends, clear = (100 * table[name].mean() for name in ("held", "without ends", "clear without ends"))
        print(
            f"{pairs} pairs, noise {noise}: {len(table)} shares, coverage {held:.1f} %, without ends {ends:.1f} %, "
            f"clear and without ends {clear:.1f} %, width {table['width'].median():.2f}",
            flush=True,
        )
    print("goal: coverage of about 95 %, and ends wherever the effect is clear")


if __name__ == "__main__":
    main()
