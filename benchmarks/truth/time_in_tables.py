"""Is the difference between two days published as the effect of a knob that was measured on one of them?

Run `python benchmarks/truth/time_in_tables.py [--studies 200]`. A table has twenty values of a knob, three runs of
each, and six of the default configuration; the second half of its runs is 20 % faster or slower, as another day may be.
Noise is 0.05. In most tables each value was measured on one day only. Nothing has an effect, so that every finding is a
false alarm, counted per 200 values at a false discovery rate of 5 % and a least effect of 5 %; coverage is that of the
95 % intervals. `judged` are values that have an interval, and `power` is the share of studies that find another value
that is 1.3 times as fast. Tables go through the code of `knobscope import` and `knobscope detect`. `--old` treats each
block, and each series without blocks, as one session, as it was before there were days.
"""

import argparse
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd

from knobscope.commands.importing.runs import ImportedRun, read_runs
from knobscope.stages.detect.effects import effects_of_case
from knobscope.stages.detect.metrics import METRICS
from knobscope.statistics.regression import adjust_for_fdr

FDR, MIN_EFFECT, VALUES, REPEATS, NOISE, FAST_VALUE = 0.05, 0.05, 20, 3, 0.05, 1
MORNING = datetime(2026, 11, 2, 9)


class Design(NamedTuple):
    """What a table shows of the two days."""

    has_times: bool
    in_blocks: bool = False  # a block is a repeat of everything, over both days
    default_days: tuple[int, ...] = (0, 1)
    days_of_value: str = "one"  # or `half`: every other value on both days; `random`: the order is random
    day_effect: float = np.log(1.2)


DESIGNS = {
    "rows in their order": Design(False),
    "times": Design(True),
    "rows in their order, default on the first day": Design(False, default_days=(0,)),
    "times, default on the first day": Design(True, default_days=(0,)),
    "times, repeats as blocks": Design(True, in_blocks=True),
    "rows in their order, half of the values on both days": Design(False, days_of_value="half"),
    "times, half of the values on both days": Design(True, days_of_value="half"),
    "rows in their order, random order over both days": Design(False, days_of_value="random"),
    "times, random order over both days": Design(True, days_of_value="random"),
    "rows in their order, random order, no second day": Design(False, days_of_value="random", day_effect=0),
}


def draw_order(design: Design, rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    """Yield day, repeat and value (0: the default) of every run."""
    values = np.tile(np.arange(1, VALUES + 1), REPEATS)
    repeats = np.repeat(np.arange(REPEATS), VALUES)
    days = (values > VALUES // 2).astype(int)
    if design.days_of_value != "one":
        anywhere = rng.permutation(len(values)) % 2
        days = np.where((values % 2 == 0) | (design.days_of_value == "random"), anywhere, days)
    default_days = np.resize(design.default_days, 6)
    days, repeats = np.r_[days, default_days], np.r_[repeats, np.arange(6) // 2]
    values = np.r_[values, np.zeros(6, int)]
    order = np.lexsort((rng.random(len(days)), repeats if design.in_blocks else np.zeros(len(days)), days))
    yield from zip(days[order], repeats[order], values[order], strict=True)


def draw_table(design: Design, effect: float, rng: np.random.Generator) -> pd.DataFrame:
    """Draw the runs of a table, in the order in which they ran."""
    day_effect = design.day_effect * rng.choice([-1, 1])
    rows = []
    for number, (day, repeat, value) in enumerate(draw_order(design, rng)):
        log = 8 + day * day_effect + effect * (value == FAST_VALUE) + rng.normal(0, NOISE)
        row = {"dbms": "d", "device": "x", "tier": "hdd", "workload": "w", "throughput_ops": float(np.exp(log))}
        row |= {"knob": "k", "value": str(value), "baseline": "0"} if value else {}
        row |= {"block": f"b{repeat}"} if design.in_blocks else {}
        if design.has_times:
            row |= {"started_at": (MORNING + timedelta(days=int(day), minutes=5 * number)).isoformat()}
        rows.append(row)
    return pd.DataFrame(rows)


def show_runs(runs: list[ImportedRun], is_old: bool) -> pd.DataFrame:
    """Return the runs as view `sweep_metrics` shows them."""
    rows = [
        {
            "run_id": run.name,
            "block_id": f"{run.case}/{run.block}",
            "session": "imported" if is_old else run.session,
            "position": run.position,
            "is_sentinel": not run.settings,
            "config_id": run.settings.get("k", "0"),
            "knob": "k" if run.settings else None,
            "value": run.settings.get("k"),
            "baseline": "0" if run.settings else None,
            "throughput_ops": run.line["throughput_ops"],
        }
        for run in runs
    ]
    unmeasured = dict.fromkeys(set(METRICS) - {"throughput_ops"}, np.nan)
    case = {"dbms": "d", "device": "x", "workload": "w", "reference_id": "0", "beside": None}
    return pd.DataFrame(rows).assign(**unmeasured, **case)


def judge_study(design: Design, seed: int, is_old: bool, folder: Path) -> dict[str, float]:
    """Return alarms and coverage of a table without effects, and whether an effect in the same design is found."""
    row: dict[str, float] = {}
    for effect in (0.0, float(np.log(1.3))):
        path = folder / "runs.csv"
        draw_table(design, effect, np.random.default_rng([4712, seed])).to_csv(path, index=False)
        effects, _ = effects_of_case(show_runs(read_runs(path, {}).runs, is_old), MIN_EFFECT)
        effects = effects[effects["metric"] == "throughput_ops"]
        q_values = adjust_for_fdr(effects["p_value"].to_numpy(float))
        findings = (q_values <= FDR) & (np.expm1(effects["estimate"]).abs() >= MIN_EFFECT)
        if effect:
            row["power [%]"] = 100 * float(findings[effects["value"] == str(FAST_VALUE)].any())
            continue
        judged = effects[effects["low"].notna()]
        row["alarms / 200"] = 200 * float(findings.mean())
        row["judged [%]"] = 100 * len(judged) / len(effects)
        row["coverage [%]"] = 100 * float(((judged["low"] <= 0) & (judged["high"] >= 0)).mean())
    return row


def main() -> None:
    """Print a line per design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first study")
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--only", default="", help="tables that start like this; absent: all")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.studies)
    print(f"{args.studies} studies; goal: at most 1 alarm per 200, coverage of 93 % or more")
    with TemporaryDirectory() as folder:
        for name, design in DESIGNS.items():
            if name.startswith(args.only):
                rows = [judge_study(design, seed, args.old, Path(folder)) for seed in seeds]
                figures = pd.DataFrame(rows).mean().round(1)
                print(f"{name}: {', '.join(f'{key} {value:g}' for key, value in figures.items())}", flush=True)


if __name__ == "__main__":
    main()
