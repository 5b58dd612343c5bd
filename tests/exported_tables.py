"""The tables and the trace that the commands of the README are tried on."""

import csv
from itertools import product
from pathlib import Path

import numpy as np


def write_example_tables(folder: Path) -> None:
    """Write `table.csv` (a full grid of three knobs, column tps) and `blkparse.txt`."""
    rng = np.random.default_rng(1)
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sync", "cache", "threads", "tps"])
        for sync, cache, threads in product((0, 1), (8, 16, 32, 64), (1, 2, 4, 8)):
            tps = 1000 * (4 - 3 * sync) * np.log2(cache) * threads**0.5 * np.exp(rng.normal(0, 0.02))
            writer.writerow([sync, cache, threads, round(tps, 1)])
    events = [f"  8,0 1 {n} {n / 1000:.9f} 42 {e} WS {8 * n} + 8 [x]" for n in range(50) for e in ("D", "C")]
    (folder / "blkparse.txt").write_text("\n".join(events) + "\n")
