"""How much runs of the default configuration differ within a block: what the plan of the sweep goes by."""

from pathlib import Path

import numpy as np

from knobscope.statistics.power import pool_noise
from knobscope.statistics.stalls import find_stalls
from knobscope.tables import read_table


def measure_noise(runs: list[Path]) -> dict[str, float | int] | None:
    """Return `sd`, of a run's natural-log throughput, and the number of `runs` behind it; None: none was repeated.

    `runs` are block directories. Runs are compared within one session of a block.
    """
    measured = read_table([directory / "runs.parquet" for directory in runs])
    sentinels = measured[measured["is_sentinel"] & (measured["status"] == "ok") & (measured["throughput_ops"] > 0)]
    group = sentinels.groupby(["block_id", "session"], dropna=False).ngroup().to_numpy(np.int64)
    log_throughput = np.log(sentinels["throughput_ops"].to_numpy(float))
    is_usual = ~find_stalls(log_throughput, np.zeros(len(group), np.int64), group)  # the sweep sets stalls aside, too
    noise, degrees = pool_noise(log_throughput[is_usual], group[is_usual])
    return {"sd": noise, "runs": int(is_usual.sum())} if degrees > 0 else None
