"""What counts as one measurement of a sweep: a series of runs of one configuration directly after each other.

Repeats directly after each other share a server instance, a state of the caches and of the device: they say how steady
one instance is, and not what another one would do. Their mean is one measurement (the experimental unit of Fisher's
designs). Runs of a configuration that others separate are measurements of their own.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from knobscope.stages.detect.metrics import METRICS
from knobscope.statistics.arrays import Bools, Floats, Ints
from knobscope.tables import NO_BLOCK

if TYPE_CHECKING:
    import pandas as pd

_GROUP = ["block_id", "session"]
#: In SQL, what runs have in common that measure a difference within themselves: their block, where one is known.
UNIT_OF_RUN = f"CASE WHEN ends_with(block_id, '/{NO_BLOCK}') THEN run_id ELSE concat(block_id, ' ', session) END"


@dataclass(frozen=True)
class Units:
    """Measurements of one case: `frame` has a row for each, in the order of block, session and position.

    Its columns are those that tell where it stands (block_id, session, position, is_sentinel, setting, dbms, device,
    workload), `log_throughput` and `runs`, how many successful runs it is the mean of. `responses` has an array per
    metric as it is fitted, shape (units,).
    """

    frame: "pd.DataFrame"
    responses: dict[str, Floats]

    @cached_property
    def setting(self) -> Ints:
        """Code of the configuration, 0 for the default."""
        return np.asarray(self.frame["setting"], np.int64)

    @cached_property
    def runs(self) -> Ints:
        """Successful runs in each."""
        return np.asarray(self.frame["runs"], np.int64)

    @cached_property
    def block(self) -> Ints:
        """Code of the block."""
        return np.asarray(self.frame["block_id"].factorize()[0], np.int64)

    @cached_property
    def has_blocks(self) -> bool:
        """Whether any of them is known to belong to a block: tables of others may tell of none."""
        return not all(block.endswith(f"/{NO_BLOCK}") for block in self.frame["block_id"].unique())


def list_blocks(setting: Ints, block: Ints, settings: int) -> Bools:
    """Return which blocks hold which configuration, shape (settings, blocks), from the codes of measurements."""
    incidence = np.zeros((settings, int(block.max(initial=-1)) + 1), bool)
    incidence[setting, block] = True
    return incidence


def make_units(runs: "pd.DataFrame", setting: Ints) -> Units:
    """Join runs of one case (view `sweep_metrics`) to measurements; `setting` numbers their configurations."""
    import pandas as pd

    responses = pd.DataFrame({name: metric.response(runs[name].to_numpy(float)) for name, metric in METRICS.items()})
    group = runs.groupby(_GROUP, dropna=False, sort=True).ngroup().to_numpy(np.int64)
    order = np.lexsort((runs["position"].to_numpy(float), group))
    group, ordered = group[order], setting[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(group) != 0) | (np.diff(ordered) != 0)
    unit = np.cumsum(begins) - 1
    means = responses.iloc[order].assign(unit=unit).groupby("unit").mean()
    by_unit = runs.iloc[order].assign(setting=ordered, unit=unit).groupby("unit")
    frame = by_unit[[*_GROUP, "is_sentinel", "setting", "dbms", "device", "workload"]].first()
    frame = frame.assign(
        position=by_unit["position"].mean(),
        runs=responses["throughput_ops"].iloc[order].notna().groupby(unit).sum(),
        log_throughput=means["throughput_ops"],
    )
    return Units(frame.reset_index(drop=True), {name: means[name].to_numpy(float) for name in METRICS})
