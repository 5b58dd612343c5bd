"""How many runs does screening take until it stops, compared with random samples and analysis of variance?

Run `python benchmarks/truth/runs.py PerformanceEvolution_Data [--systems MariaDB HSQLDB] [--trials 3]`, with that
folder of a clone of github.com/ChristianKaltenecker/PerformanceEvolution_Website. Its tables hold every setting of
a system in many revisions, each of which is a table of its own here. Strategies:

    paper    random samples in steps of 5 % of the grid, analysis of variance (Hui et al., SIGMOD 2024)
    same     the same with the looks of the default
    lhs      model `auto`, a Latin hypercube
    default  model `auto`, `active`

Printed are the settings that were taken (median of the trials; every setting where it did not stop), the stops that
were false (R2 on settings that were never taken below .85), and the least such R2. The goal is that the default takes
at most 60 % of the runs of `paper`, and no more than `lhs`, without a false stop.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from knobscope.commands.table.replay import Plan, run_trial
from knobscope.processes.parallel import one_thread
from knobscope.statistics.design import Settings

FALSE_BELOW = 0.85
STRATEGIES = {
    "paper": Plan("anova", "random", start=0.05, step=0.05),
    "same": Plan("anova", "random"),
    "lhs": Plan("auto", "lhs"),
    "default": Plan("auto", "active"),
}
#: What is measured, in addition to `performance`: not settings.
MEASURED = {"performance", "cpu", "size", "memory", "energy"}


def read_revisions(folder: Path, every: int, first: int) -> dict[str, pd.DataFrame]:
    """Return some revisions of a system: a column per knob, and `y`."""
    rows = pd.read_csv(folder / "measurements.csv", sep=";", dtype={"revision": str})
    columns = list(rows.columns[: rows.columns.get_loc("revision")])
    names = list(dict.fromkeys(rows["revision"]))[first::every]
    tables = {name: rows[rows["revision"] == name].reset_index(drop=True) for name in names}
    return {name: join_indicators(table[columns]).assign(y=table["performance"]) for name, table in tables.items()}


def join_indicators(table: pd.DataFrame) -> pd.DataFrame:
    """Make knobs of columns of 0 and 1: `name_8`, `name_64` are a number, two to four that add up to 1 are one knob."""
    table = table[[name for name in table if table[name].nunique() > 1 and name not in MEASURED]]
    knobs: dict[str, pd.Series] = {}
    numbered = [match for name in table if (match := re.fullmatch(r"(.*)_(\d+)", name))]
    for match in numbered:
        knobs[match[1]] = knobs.get(match[1], -1) + (int(match[2]) + 1) * table[match[0]]
    rest = [name for name in table if name not in {match[0] for match in numbered}]
    while rest:
        parts = (rest[:count] for count in (4, 3, 2))
        alternatives = next((part for part in parts if (table[part].sum(axis=1) == 1).all()), rest[:1])
        knobs[rest[0]] = table[alternatives].to_numpy().argmax(axis=1) if alternatives[1:] else table[rest[0]]
        rest = rest[len(alternatives) :]
    joined = pd.DataFrame(knobs)
    kept: list[str] = []
    for name in joined:  # without knobs that say what another one says
        pairs = [len(joined[[name, other]].drop_duplicates()) == joined[name].nunique() for other in kept]
        kept += [] if any(pairs) and joined[name].nunique() > 1 else [name]
    return joined[kept]


def replay(table: pd.DataFrame, strategies: Sequence[str], trials: Sequence[int]) -> dict[str, float]:
    """Return for each strategy what it took, how often it stopped falsely, and the least R2."""
    settings = Settings.from_frame(table, [name for name in table if name != "y"])
    figures = {}
    for name in strategies:
        outcomes = [run_trial(settings, table["y"].to_numpy(float), STRATEGIES[name], trial) for trial in trials]
        stopped = [outcome for outcome in outcomes if outcome["stopped"] and outcome["r2_unsampled"] is not None]
        scores = [outcome["r2_unsampled"] for outcome in stopped]
        figures[name] = float(np.median([outcome["settings"] for outcome in outcomes]))
        figures[f"{name} false"] = sum(score < FALSE_BELOW for score in scores)
        figures[f"{name} least R2"] = min(scores, default=np.nan)
    return figures


def main() -> None:
    """Print a line per table, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--systems", nargs="+", default=["MySQL", "MariaDB", "HSQLDB", "PostgreSQL"])
    parser.add_argument("--every", type=int, default=6, help="of the revisions of a system, every so manyth")
    parser.add_argument("--first", type=int, default=0, help="revision to begin with")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES), help="with `paper`")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--first-trial", type=int, default=0)
    args = parser.parse_args()
    trials = range(args.first_trial, args.first_trial + args.trials)
    rows = []
    with one_thread():
        for system in args.systems:
            for revision, table in read_revisions(args.folder / system, args.every, args.first).items():
                rows.append(replay(table, args.strategies, trials))
                shown = ", ".join(f"{key} {value:.4g}" for key, value in rows[-1].items())
                print(f"{system} {revision}, {len(table)} settings: {shown}", flush=True)
    total = pd.DataFrame(rows)
    for name in args.strategies:
        taken, ratio = total[name].sum(), np.exp(np.log(total[name] / total["paper"]).mean())
        false, least = int(total[f"{name} false"].sum()), total[f"{name} least R2"].min()
        shares = f"{taken / total['paper'].sum():.2f} of those of `paper` (geometric mean of tables {ratio:.2f})"
        print(f"{name}: {taken:g} settings, {shares}; {false} false stops, least R2 {least:.3f}")


if __name__ == "__main__":
    main()
