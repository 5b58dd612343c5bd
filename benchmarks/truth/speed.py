"""Processor time of one subsample of `rank`, and of one trial of `replay`: what both commands repeat.

Run `python benchmarks/truth/speed.py [--rows 5290] [--knobs 121]`. `rank` takes 11 subsamples of all rows, and 25 of
each draw; `replay` takes 20 trials. Compare two versions on the same machine: `PYTHONPATH=OTHER/src` runs another one.
"""

import argparse
import time

import numpy as np
import pandas as pd

from knobscope.commands.table.replay import Plan, run_trial
from knobscope.processes.parallel import one_thread
from knobscope.statistics.design import Settings
from knobscope.statistics.models.forest import ExtraTrees
from knobscope.statistics.ranking import rank_knobs
from knobscope.statistics.stopping import Runs


def make_table(rows: int, knobs: int, levels: list[int]) -> tuple[Settings, np.ndarray]:
    """Draw independent knobs, of which four matter."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"k{number}": rng.integers(0, levels[number % 4], rows) for number in range(knobs)})
    unit = frame / np.maximum(frame.max(), 1)
    return Settings.from_frame(frame, list(frame)), np.exp(
        (0.5 * unit.k0 + unit.k2 + 0.4 * unit.k1 * unit.k3 + rng.normal(0, 0.1, rows)).to_numpy()
    )


def main() -> None:
    """Print seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5290)
    parser.add_argument("--knobs", type=int, default=121)
    parser.add_argument("--replay-knobs", type=int, default=10)
    args = parser.parse_args()
    with one_thread():
        settings, response = make_table(args.rows, args.knobs, [2, 5, 100_000, 1_000_000])
        runs = Runs.of(settings, response)
        start = time.process_time()
        rank_knobs(runs, ExtraTrees(1), 1, 2)  # trees are fitted anew to every subsample
        whole = (time.process_time() - start) / 2
        print(f"rank, {args.rows} rows of {args.knobs} knobs: {whole:.1f} s per subsample", flush=True)
        start = time.process_time()
        rank_knobs(Runs.of(settings.take(slice(400)), response[:400]), ExtraTrees(1), 1, 2)
        part = (time.process_time() - start) / 2
        print(f"rank, 400 rows of {args.knobs} knobs: {part:.1f} s per subsample", flush=True)
        total = 11 * whole + 10 * 25 * part
        print(f"so rank --samples 400 --draws 10 takes {total:.0f} s of processor time", flush=True)
        settings, response = make_table(291, args.replay_knobs, [2, 2, 3, 4])
        start = time.process_time()
        run_trial(settings, response, Plan(), 0)
        print(f"replay, 291 rows of {args.replay_knobs} knobs: {time.process_time() - start:.1f} s per trial")
    print("goal: rank --samples 400 --draws 10 of 121 knobs, and replay of 291 rows, in 5 minutes on two cores")


if __name__ == "__main__":
    main()
