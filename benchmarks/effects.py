"""Do the effects survive the noise that databases have? Alarms, coverage and power on simulated sweeps.

Run `python benchmarks/effects.py [--studies 200] [--blocks 3] [--most 12]`; `--only "noise 0.1"` leaves out what does
not begin like that. A study has three devices of rising tiers and one knob with 20 values; every block holds each value
once and the default configuration three times, in random order, with log-normal noise. Nothing has an effect, so that
every finding is a false alarm, counted per 200 comparisons at a false discovery rate of 5 % and a least effect of 5 %
(as the rules `tier` and `intuition` ask for): `tier` compares a value's effects on two devices, `intuition` a value
with the default. `kept` are those that stay when the largest eight are measured again, as every study does
(docs/how-to/causes.md), in new pairs of runs with the same noise. Coverage is the share of 95 % intervals that hold the
truth, power the share of studies in which a value that is 1.3 times as fast on the highest tier alone is found.

With `--most`, values are measured in further blocks as `knobscope reinforce` asks for them, until effects of 1.3x would
be found with a power of 90 %, or in so many blocks. Then the table tells how many blocks a value took on average, and
the share of values for which they sufficed. Runs that share a server instance are left out: no plan puts them together.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd

from knobscope.specs import Case
from knobscope.specs.models.study import Remeasure
from knobscope.stages.detect.contrasts import contrast_tiers
from knobscope.stages.detect.effects import effects_of_case
from knobscope.stages.detect.guards import find_stalled_runs
from knobscope.stages.detect.metrics import METRICS
from knobscope.stages.plan import sentinel_positions
from knobscope.stages.reinforce import SweepRuns, count_more, measure_precision
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import NOTHING, Amount
from knobscope.statistics.looks import LOOKS
from knobscope.statistics.power import Aim
from knobscope.statistics.regression import adjust_for_fdr
from knobscope.tables import WhatIfRunRow

VALUES = 20
FDR = 0.05
MIN_EFFECT = 0.05
DEVICES = ("hdd", "ssd", "nvme")
TRUE_EFFECT = np.log(1.3)
TRUE_VALUE = "7"
#: Every value on every device, and on every pair of devices, are 60 comparisons each.
AIM = Aim(effect=1.3, power=0.9, fdr=FDR, comparisons=VALUES * len(DEVICES), between_devices=True)

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


def draw_block(rng: Generator, repeats: int, values: np.ndarray) -> pd.DataFrame:
    """Draw the order of a block: the default configuration (0) first, between the values, and last."""
    order = rng.permutation(values)
    setting = np.insert(order, sorted(sentinel_positions(len(order))), 0)
    instance = np.repeat(np.arange(len(setting)), repeats)
    return pd.DataFrame({"setting": setting[instance], "instance": instance, "position": np.arange(len(instance))})


def draw_blocks(
    rng: Generator, device: str, blocks: dict[int, np.ndarray], repeats: int, noise: Noise, effect: float
) -> pd.DataFrame:
    """Draw blocks of one device (number -> values) as view `sweep_metrics` shows their runs."""
    parts = [draw_block(rng, repeats, values).assign(block=number) for number, values in blocks.items()]
    runs = pd.concat(parts, ignore_index=True)
    runs["instance"] += (VALUES + 3) * (runs["block"] - min(blocks))
    level = np.log(1000) + 0.2 * runs["block"]
    truth = np.where(runs["setting"] == int(TRUE_VALUE), effect, 0.0)
    is_sentinel = runs["setting"] == 0
    changed = {"knob": "k", "value": runs["setting"].astype(str), "baseline": "0"}
    return runs.assign(
        **{name: np.where(is_sentinel, None, value) for name, value in changed.items()},
        **dict.fromkeys(METRICS, np.nan),
        block_id="b" + runs["block"].astype(str).str.zfill(3),
        session="one",
        is_sentinel=is_sentinel,
        dbms="d",
        device=device,
        workload="w",
        run_id=[f"{device}-{block}-{number}" for number, block in runs["block"].items()],
        config_id=runs["setting"].astype(str),
        reference_id="0",
        beside=None,
    ).assign(throughput_ops=np.exp(level + truth + noise(runs, rng)))


@dataclass(frozen=True)
class Design:
    """How a sweep is measured: complete blocks, and with `most` further ones of the values that are too noisy."""

    blocks: int
    most: int | None
    repeats: int  # runs of a value directly after each other

    def draw(self, rng: Generator, device: str, noise: Noise, effect: float) -> tuple[pd.DataFrame, np.ndarray]:
        """Draw the sweep of one device; returns also which values suffice, shape (values,)."""
        complete = dict.fromkeys(range(self.blocks), np.arange(1, VALUES + 1))
        runs = draw_blocks(rng, device, complete, self.repeats, noise, effect)
        while True:
            more, suffices = self._look(runs)
            if not more.any():
                return runs, suffices
            first = int(runs["block"].max()) + 1
            further = {first + index: np.flatnonzero(more > index) + 1 for index in range(more.max())}
            drawn = draw_blocks(rng, device, further, self.repeats, noise, effect)
            runs = pd.concat([runs, drawn], ignore_index=True)

    def _look(self, runs: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return blocks more and which values suffice, as `knobscope reinforce` would say."""
        setting, block = runs["setting"].to_numpy(np.int64), runs["block"].to_numpy(np.int64)
        sweep = SweepRuns(setting, block, block, np.log(runs["throughput_ops"].to_numpy(float)), VALUES + 1)
        precision = measure_precision(sweep)
        suffices = AIM.suffices(AIM.smallest(precision.errors, precision.degrees))
        planned = sweep.count_blocks(np.ones(len(runs), bool))
        return count_more(precision, AIM, ~suffices, np.maximum((self.most or 0) - planned, 0)), suffices


def set_stalls_aside(runs: pd.DataFrame) -> pd.DataFrame:
    """Take the throughput from runs that stalled, as `detect` does before it compares any."""
    stalled = runs["run_id"].isin([run for run, _ in find_stalled_runs(runs)])
    return runs.assign(throughput_ops=runs["throughput_ops"].mask(stalled))


def judge(noise: Noise, design: Design, seed: int) -> dict[str, float]:
    """Judge one study without effects, and the same noise with one effect on the highest tier."""
    rows: dict[str, float] = {}
    for effect in (0.0, TRUE_EFFECT):
        rng = np.random.default_rng([seed, 7])
        drawn = [design.draw(rng, device, noise, effect * (rank == 2)) for rank, device in enumerate(DEVICES)]
        effects = pd.concat(
            effects_of_case(set_stalls_aside(runs), MIN_EFFECT)[0].assign(tier_rank=rank)
            for rank, (runs, _) in enumerate(drawn)
        )
        effects = effects[effects["metric"] == "throughput_ops"].reset_index(drop=True)
        effects["q_value"] = adjust_for_fdr(effects["p_value"].to_numpy(float))
        contrasts = contrast_tiers(effects)
        if effect:
            rows["power"] = float(is_found(contrasts[contrasts["value"] == TRUE_VALUE]).any())
        else:
            has_interval = effects["low"].notna()
            alarms = pd.concat(
                [
                    contrasts[is_found(contrasts)].assign(rule="tier"),
                    effects[is_found(effects)].assign(rule="intuition"),
                ]
            )
            confirmed = measure_again(alarms, noise, rng)
            for rule, compared in (("tier", len(contrasts)), ("intuition", len(effects))):
                rows[rule] = 200 * float((alarms["rule"] == rule).sum()) / compared
                rows[f"{rule}_kept"] = 200 * float((confirmed["rule"] == rule).sum()) / compared
            rows["judged"] = float(has_interval.mean())
            rows["coverage"] = float(((effects["low"] <= 0) & (effects["high"] >= 0))[has_interval].mean())
            if design.most is not None:
                runs = pd.concat([runs for runs, _ in drawn])
                rows["blocks"] = float((runs["setting"] > 0).sum() / (VALUES * len(DEVICES)))
                rows["sufficed"] = float(np.mean([suffices for _, suffices in drawn]))
    return rows


def measure_again(alarms: pd.DataFrame, noise: Noise, rng: Generator) -> pd.DataFrame:
    """Return the findings that stay when the largest of them are measured again, as many as a study does."""
    order = alarms.sort_values("estimate", key=np.abs, ascending=False)
    measured = order.iloc[: Remeasure().findings]
    stays = [not is_gone(row, noise, rng) for _, row in measured.iterrows()]
    return pd.concat([measured[stays], order.iloc[Remeasure().findings :]])


def is_gone(row: "pd.Series[Any]", noise: Noise, rng: Generator) -> bool:
    """Measure a value and the default configuration again, in pairs, until stage `remeasure` would have its answer."""
    base = NOTHING
    effect = Amount(row["estimate"], row.get("standard_error"), row.get("degrees"))
    if row["rule"] == "tier":  # on the device where the effect is larger, against that on the other one
        sides = [
            Amount(*(row[f"{column}_{side}"] for column in ("estimate", "standard_error", "degrees")))
            for side in ("lower", "higher")
        ]
        effect, base = sorted(sides, key=lambda amount: -abs(amount.mean))
    gap = effect.minus(base) if effect.is_clear() else None
    side = None if row["rule"] == "intuition" else "other"
    least = float(np.log1p(MIN_EFFECT))
    question = Question(
        Case("d", "x", "w"), "k", row["value"], {"k": 1}, {}, (0,), side, base, False, gap, least, False
    )
    answer, pairs = Answer(question), list[WhatIfRunRow]()
    for _ in range(LOOKS):
        pairs += draw_pairs(int(row["value"]), len(pairs) // 2, noise, rng)
        answer.add(ITSELF, pairs)
        if answer.is_settled:
            break
    return answer.is_gone


def draw_pairs(value: int, first: int, noise: Noise, rng: Generator) -> list[WhatIfRunRow]:
    """Draw runs of a value and of the default configuration, a server instance each."""
    count = 2 * Remeasure().repeats
    runs = pd.DataFrame({"setting": [0, value] * Remeasure().repeats, "instance": np.arange(count)})
    throughput = np.exp(noise(runs, rng))
    return [
        {
            "pair": first + index // 2,
            "is_reference": index % 2 == 0,
            "status": "ok",
            "throughput_ops": 1000 * float(ops),
        }
        for index, ops in enumerate(throughput)
    ]


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
    parser.add_argument("--most", type=int, help="blocks of a value at most; absent: no further blocks")
    parser.add_argument("--only", default="", help="conditions that begin like this; absent: all")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    table = {}
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for name, (noise, repeats) in CONDITIONS.items():
            if not name.startswith(args.only) or (args.most is not None and repeats > 1):
                continue
            design = Design(args.blocks, args.most, repeats)
            outcomes = pool.map(partial(judge, noise, design), range(args.studies), chunksize=5)
            table[name] = pd.DataFrame(list(outcomes)).mean()
    rows = pd.DataFrame(table).T
    shares = [name for name in ("judged", "coverage", "power", "sufficed") if name in rows]
    rows[shares] *= 100
    heads = {"tier": "tier alarms / 200", "intuition": "intuition alarms / 200", "blocks": "blocks of a value"}
    heads |= {f"{rule}_kept": "kept" for rule in ("tier", "intuition")}
    heads |= {name: f"{name} [%]" for name in shares}
    print(f"{args.studies} studies of {args.blocks} blocks" + (f", {args.most} at most" if args.most else ""))
    print(rows.rename(columns=heads).round(1).to_string())


if __name__ == "__main__":
    main()
