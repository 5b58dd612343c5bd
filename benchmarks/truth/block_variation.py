"""Do intervals hold when a configuration differs from block to block by more than the noise of a run?

Run `python benchmarks/truth/block_variation.py [--studies 200]`; `--only "sweep"` leaves out what does not start like
that. Log throughput of a run is the sum of its block, its configuration, the block's deviation of this configuration
(sd `interaction`), and noise. A `sweep` has three devices, blocks that hold every value once, and the default
configuration at the start, in the middle and at the end; an `import` holds every configuration three times per block,
in random order. Nothing has an effect, so every finding is a false alarm, counted per 200 comparisons at a false
discovery rate of 5 % and a least effect of 5 %: of values against the default, and of one value's effects on two
devices. Power is the share of studies that find a value that is 1.3 times as fast on the highest tier, where tiers
are compared. Compare two versions: `PYTHONPATH=OTHER/src` runs another one.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import pandas as pd

from knobscope.stages.detect.contrasts import contrast_tiers
from knobscope.stages.detect.effects import effects_of_case
from knobscope.stages.detect.metrics import METRICS
from knobscope.statistics.regression import adjust_for_fdr

FDR, MIN_EFFECT, DEVICES, FAST_VALUE = 0.05, 0.05, ("hdd", "ssd", "nvme"), 2


class Design(NamedTuple):
    """What is measured, and how it varies."""

    is_import: bool
    values: int
    blocks: int
    interaction: float
    noise: float


CONDITIONS = {
    "sweep of 20 values, interaction 0.05, noise 0.02": Design(False, 20, 3, 0.05, 0.02),
    "sweep of 20 values, interaction 0.05, noise 0.05": Design(False, 20, 3, 0.05, 0.05),
    "sweep of 20 values, noise 0.05": Design(False, 20, 3, 0, 0.05),
    "sweep of 20 values, noise 0.1": Design(False, 20, 3, 0, 0.1),
    "sweep of 5 values, interaction 0.05, noise 0.02": Design(False, 5, 3, 0.05, 0.02),
    "sweep of 5 values, noise 0.05": Design(False, 5, 3, 0, 0.05),
    "sweep of 2 values, interaction 0.05, noise 0.02": Design(False, 2, 3, 0.05, 0.02),
    "sweep of 2 values, noise 0.05": Design(False, 2, 3, 0, 0.05),
    "import of 20 values, interaction 0.05, noise 0.02": Design(True, 20, 3, 0.05, 0.02),
    "import of 20 values, noise 0.05": Design(True, 20, 3, 0, 0.05),
    "import of 5 values, 2 blocks, interaction 0.05, noise 0.02": Design(True, 5, 2, 0.05, 0.02),
    "import of 5 values, 2 blocks, noise 0.05": Design(True, 5, 2, 0, 0.05),
}


def draw_order(design: Design, rng: np.random.Generator) -> np.ndarray:
    """Return the configurations of a block in their order, 0 being the default."""
    if design.is_import:
        return rng.permutation(np.repeat(np.arange(design.values + 1), 3))
    return np.insert(rng.permutation(np.arange(1, design.values + 1)), [0, design.values // 2, design.values], 0)


def draw_runs(design: Design, device: str, effect: float, rng: np.random.Generator) -> pd.DataFrame:
    """Draw the runs of a device as view `sweep_metrics` shows them."""
    parts = []
    for block in range(design.blocks):
        setting = draw_order(design, rng)
        deviation = rng.normal(0, design.interaction, design.values + 1)[setting]
        level = rng.normal(8, 0.2) + effect * (setting == FAST_VALUE)
        log = level + deviation + rng.normal(0, design.noise, len(setting))
        parts.append(
            pd.DataFrame({"setting": setting, "throughput_ops": np.exp(log), "position": np.arange(len(log))}).assign(
                block_id=f"b{block}", run_id=[f"{device}-{block}-{number}" for number in range(len(log))]
            )
        )
    runs = pd.concat(parts, ignore_index=True)
    is_default = runs["setting"] == 0
    change = {"knob": "k", "value": runs["setting"].astype(str), "baseline": "0"}
    return runs.assign(
        **{name: np.where(is_default, None, value) for name, value in change.items()},
        **dict.fromkeys(set(METRICS) - {"throughput_ops"}, np.nan),
        session="one",
        is_sentinel=is_default,
        dbms="d",
        device=device,
        workload="w",
        config_id=runs["setting"].astype(str),
        reference_id="0",
        beside=None,
    )


def is_finding(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Mark what the rules would call a finding."""
    return (rows["q_value"] <= FDR) & (np.expm1(rows["estimate"]).abs() >= MIN_EFFECT)


def judge_study(design: Design, seed: int) -> dict[str, float]:
    """Return alarms and coverage of a study without effects, and whether an effect in the same design is found."""
    row: dict[str, float] = {}
    for truth in (0.0, np.log(1.3)):
        rng = np.random.default_rng([4711, seed])
        runs = [draw_runs(design, name, truth * (rank == 2), rng) for rank, name in enumerate(DEVICES)]
        cases = [effects_of_case(case, MIN_EFFECT)[0].assign(tier_rank=rank) for rank, case in enumerate(runs)]
        effects = pd.concat(cases, ignore_index=True)
        effects = effects[effects["metric"] == "throughput_ops"].reset_index(drop=True)
        effects["q_value"] = adjust_for_fdr(effects["p_value"].to_numpy(float))
        contrasts = contrast_tiers(effects)
        if truth:
            row["power [%]"] = 100 * float(is_finding(contrasts[contrasts["value"] == str(FAST_VALUE)]).any())
            continue
        judged = effects[effects["low"].notna()]
        row["tier alarms / 200"] = 200 * float(is_finding(contrasts).mean())
        row["alarms / 200"] = 200 * float(is_finding(effects).mean())
        row["studies with alarms [%]"] = 100 * float(is_finding(effects).any() or is_finding(contrasts).any())
        row["coverage [%]"] = 100 * float(((judged["low"] <= 0) & (judged["high"] >= 0)).mean())
    return row


def main() -> None:
    """Print a line per design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--only", default="", help="designs that start like this; absent: all")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    print(f"{args.studies} studies")
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for name, design in CONDITIONS.items():
            if name.startswith(args.only):
                rows = pool.map(partial(judge_study, design), range(args.studies), chunksize=5)
                figures = pd.DataFrame(list(rows)).mean().round(1)
                print(f"{name}: {', '.join(f'{key} {value}' for key, value in figures.items())}", flush=True)
    print("goal: at most 1 alarm per 200, coverage of 93 % or more")


if __name__ == "__main__":
    main()
