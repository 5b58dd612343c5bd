"""Do the effects survive the noise that databases have? Alarms, coverage and power on simulated sweeps.

Run `python benchmarks/effects.py [--studies 200] [--blocks 3]`. A study has three devices of rising tiers and one knob
with 20 values; every block holds each value once and the default configuration three times, in random order, with
log-normal noise. Nothing has an effect, so that every finding is a false alarm, counted per 200 comparisons at a false
discovery rate of 5 % and a least effect of 5 % (as the rules `tier` and `intuition` ask for): `tier` compares a value's
effects on two devices, `intuition` a value with the default. Coverage is the share of 95 % intervals that hold the
truth, power the share of studies in which a value that is 1.3 times as fast on the highest tier alone is found.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pandas as pd

from knobscope.detect.contrasts import contrast_tiers
from knobscope.detect.effects import effects_of_case
from knobscope.detect.metrics import METRICS
from knobscope.statistics.regression import adjust_for_fdr

VALUES = 20
FDR = 0.05
MIN_EFFECT = 0.05
DEVICES = ("hdd", "ssd", "nvme")
TRUE_EFFECT = np.log(1.3)
TRUE_VALUE = "7"

Generator = np.random.Generator
Noise = Callable[[pd.DataFrame, Generator], np.ndarray]


def plain(sd: float, runs: pd.DataFrame, rng: Generator) -> np.ndarray:
    """Every run has the same noise."""
    return rng.normal(0, sd, len(runs))


def stalled(sd: float, runs: pd.DataFrame, rng: Generator) -> np.ndarray:
    """Three runs of a hundred take ten times as long."""
    return plain(sd, runs, rng) - np.log(10) * (rng.random(len(runs)) < 0.03)


def uneven(runs: pd.DataFrame, rng: Generator) -> np.ndarray:
    """Three values are six times as noisy as the others."""
    return rng.normal(0, np.where(runs["setting"].isin([3, 4, 5]), 0.3, 0.05))


def instances(runs: pd.DataFrame, rng: Generator) -> np.ndarray:
    """Repeats directly after each other share a server instance, which is 5 % off; they themselves differ by 2 %."""
    return rng.normal(0, 0.05, len(runs))[runs["instance"]] + rng.normal(0, 0.02, len(runs))


def draw_block(rng: Generator, repeats: int) -> pd.DataFrame:
    """Draw the order of a block: the default configuration (0) first, in the middle and last."""
    order = rng.permutation(np.arange(1, VALUES + 1))
    setting = np.concatenate([[0], order[: VALUES // 2], [0], order[VALUES // 2 :], [0]])
    instance = np.repeat(np.arange(len(setting)), repeats)
    return pd.DataFrame({"setting": setting[instance], "instance": instance, "position": np.arange(len(instance))})


def draw_case(rng: Generator, device: str, blocks: int, repeats: int, noise: Noise, effect: float) -> pd.DataFrame:
    """Draw the sweep of one device as view `sweep_metrics` shows it."""
    parts = [draw_block(rng, repeats).assign(block_id=f"b{number}") for number in range(blocks)]
    runs = pd.concat(parts, ignore_index=True)
    runs["instance"] += (VALUES + 3) * runs["block_id"].factorize()[0]
    level = np.log(1000) + 0.2 * runs["block_id"].factorize()[0]
    truth = np.where(runs["setting"] == int(TRUE_VALUE), effect, 0.0)
    is_sentinel = runs["setting"] == 0
    changed = {"knob": "k", "value": runs["setting"].astype(str), "baseline": "0"}
    return runs.assign(
        **{name: np.where(is_sentinel, None, value) for name, value in changed.items()},
        **dict.fromkeys(METRICS, np.nan),
        session="one",
        is_sentinel=is_sentinel,
        dbms="d",
        device=device,
        workload="w",
    ).assign(throughput_ops=np.exp(level + truth + noise(runs, rng)))


def judge(noise: Noise, blocks: int, repeats: int, seed: int) -> dict[str, float]:
    """Judge one study without effects, and the same noise with one effect on the highest tier."""
    rows: dict[str, float] = {}
    for effect in (0.0, TRUE_EFFECT):
        rng = np.random.default_rng([seed, 7])
        effects = pd.concat(
            effects_of_case(draw_case(rng, device, blocks, repeats, noise, effect * (rank == 2)), MIN_EFFECT)[0].assign(
                tier_rank=rank
            )
            for rank, device in enumerate(DEVICES)
        )
        effects = effects[effects["metric"] == "throughput_ops"].reset_index(drop=True)
        effects["q_value"] = adjust_for_fdr(effects["p_value"].to_numpy(float))
        contrasts = contrast_tiers(effects)
        if effect:
            rows["power"] = float(is_found(contrasts[contrasts["value"] == TRUE_VALUE]).any())
        else:
            known = effects["low"].notna()
            rows["tier"] = 200 * float(is_found(contrasts).mean())
            rows["intuition"] = 200 * float(is_found(effects).mean())
            rows["judged"] = float(known.mean())
            rows["coverage"] = float(((effects["low"] <= 0) & (effects["high"] >= 0))[known].mean())
    return rows


def is_found(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Mark what the rules would call a finding."""
    return (rows["q_value"] <= FDR) & (np.expm1(rows["estimate"]).abs() >= MIN_EFFECT)


CONDITIONS: dict[str, tuple[Noise, int]] = {
    **{f"noise {sd:g}": (partial(plain, sd), 1) for sd in (0.05, 0.1, 0.2)},
    **{f"noise {sd:g}, 3 % of runs stalled tenfold": (partial(stalled, sd), 1) for sd in (0.05, 0.1, 0.2)},
    "noise .05, three values .3": (uneven, 1),
    "three repeats on instances that vary by .05": (instances, 3),
}


def main() -> None:
    """Print a table: a line per kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    table = {}
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for name, (noise, repeats) in CONDITIONS.items():
            found = pool.map(partial(judge, noise, args.blocks, repeats), range(args.studies), chunksize=5)
            table[name] = pd.DataFrame(list(found)).mean()
    rows = pd.DataFrame(table).T
    rows[["judged", "coverage", "power"]] *= 100
    heads = {"tier": "tier alarms / 200", "intuition": "intuition alarms / 200"}
    heads |= {name: f"{name} [%]" for name in ("judged", "coverage", "power")}
    print(f"{args.studies} studies of {args.blocks} blocks")
    print(rows.rename(columns=heads).round(1).to_string())


if __name__ == "__main__":
    main()
