"""Is a ranking of a tuner's history called trustworthy though its first five miss the knob that alone separates it?

Run `python benchmarks/truth/trust.py [--seeds 40]`. Histories have a known truth (`histories.py`): one knob separates
fast rows from slow ones without an error. Designs (Latin hypercubes of the same systems) are ranked, too: they must
lose nothing. A history counts as a failure when the ranking is trusted and that knob is not among the first five ranks.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pandas as pd
from histories import TUNERS, make_history

from knobscope.commands.table.rank import TOP, rank_table
from knobscope.processes.parallel import one_thread
from knobscope.statistics.design import Settings
from knobscope.statistics.ranking import Ranking

GOAL = "goal: 0 trusted without the knob, and no design that loses its trust"


def judge(item: tuple[str, int]) -> dict[str, Any]:
    """Rank one history."""
    tuner, seed = item
    table, separator = make_history(tuner, seed)
    knobs = [name for name in table if name != "latency" and table[name].nunique() > 1]
    table = table[table.latency != 0]  # the failed runs, which `--failed-value 0` leaves out
    with one_thread():
        ranking: Ranking = rank_table(Settings.from_frame(table, knobs), table.latency.to_numpy(float))
    rank = next(knob.rank for knob in ranking.knobs if knob.knob == separator)
    return {
        "rows by": tuner,
        "histories": 1,
        "trusted": ranking.trustworthy,
        "knob in first five": rank <= TOP,
        "trusted without it": ranking.trustworthy and rank > TOP,
    }


def main() -> None:
    """Print a line per tuner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="histories per tuner")
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--tuner", choices=[*TUNERS, "random"], help="only this one")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    tuners = [args.tuner] if args.tuner else [*TUNERS, "random"]
    items = [(tuner, args.first + number) for tuner in tuners for number in range(args.seeds)]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        table = pd.DataFrame(pool.map(judge, items))
    print(table.groupby("rows by", sort=False).sum().to_string())
    print(GOAL)


if __name__ == "__main__":
    main()
