"""Sweeps that were never measured: tables `plan` and `runs` of one case, with throughput of known noise."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from knobscope.stages.plan import sentinel_positions

#: Blocks of a round: the values of each, by their number from 1.
Blocks = list[list[int]]


def draw_sweep(
    rng: np.random.Generator,
    blocks: Blocks,
    noise: Mapping[int, float] | float,
    effects: Mapping[int, float] | None = None,
    round_: int = 0,
    fails: Callable[[int, int], bool] = lambda block, value: False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return plan and runs of one round; `noise` is that of all values, or by value, with that of the others at -1."""
    plan, runs = [], []
    for number, values in enumerate(blocks):
        order = rng.permutation(values)
        settings = np.insert(order, sorted(sentinel_positions(len(order))), 0)
        level = rng.normal(7, 0.3)
        for position, setting in enumerate(settings.tolist()):
            sd = noise if isinstance(noise, float) else noise.get(setting, noise[-1])
            row: dict[str, Any] = {
                "block_id": f"d/v/w/sweep-{round_}-{number}",
                "config_id": f"c{setting}",
                "is_sentinel": setting == 0,
                "position": position,
            }
            plan.append({**row, "configuration": f'{{"knob": {setting}, "other": "x"}}'})
            failed = setting > 0 and fails(number, setting)
            throughput = np.exp(level + (effects or {}).get(setting, 0.0) + rng.normal(0, sd))
            status = {"status": "failed_run" if failed else "ok", "throughput_ops": np.nan if failed else throughput}
            runs.append({**row, "session": "one", **status})
    return pd.DataFrame(plan), pd.DataFrame(runs)


def draw_rounds(*rounds: tuple[pd.DataFrame, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Join rounds, as the stage reads them."""
    return tuple(pd.concat(frames, ignore_index=True) for frames in zip(*rounds, strict=True))  # type: ignore[return-value]
