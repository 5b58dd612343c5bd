"""What earlier rounds of a case have measured: some sampling methods choose the next runs by it."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from knobscope.stages.plan.sampling import DesignSpace, Key
from knobscope.tables import read_table
from knobscope.tables.responses import Response


def read_earlier(
    space: DesignSpace, plans: Sequence[Path], runs: Sequence[Path], response: Response
) -> dict[Key, float]:
    """Return the mean log response of every configuration planned so far; NaN where no run of it succeeded.

    `plans` are tables `plan`, `runs` block directories.
    """
    if not plans:
        return {}
    planned = read_table(plans).drop_duplicates("config_id").set_index("config_id")["configuration"]
    keys = {config_id: space.key(json.loads(text)) for config_id, text in planned.items()}
    responses: dict[Key, list[float]] = {key: [] for key in keys.values()}
    if runs:
        measured = read_table([directory / "runs.parquet" for directory in runs])
        ok = measured[(measured["status"] == "ok") & (measured[response.column] > 0)]
        for config_id, figure in zip(ok["config_id"], ok[response.column], strict=True):
            responses[keys[config_id]].append(math.log(response.of(figure)))
    return {key: float(np.mean(values)) if values else math.nan for key, values in responses.items()}
