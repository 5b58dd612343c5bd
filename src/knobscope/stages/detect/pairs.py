"""What two knobs do together: interactions of the pairs that a sweep measured, with intervals.

The interaction of two values is what both do less what each does alone, as logarithms of throughput: a contrast of four
configurations of the fit that gives the effects (`effects`), whose terms for blocks and drift, units
and unequal variances it shares.
"""

from typing import TYPE_CHECKING

import numpy as np

from knobscope.specs import StudySpecs
from knobscope.stages.detect.blocks import judge_blocks
from knobscope.stages.detect.effects import LEAST_DEGREES, LEAST_REPLICATES, add_frame
from knobscope.stages.detect.units import list_blocks, make_units
from knobscope.statistics.arrays import Floats
from knobscope.statistics.regression import adjust_for_fdr, contrast_errors, fit_blocks, t_interval, t_probability

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["add_pair_effects", "pair_effects_of_case"]

_CASE = ["dbms", "device", "workload"]


def add_pair_effects(connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> None:
    """Fill table `pair_effects` of a study's database from views `sweep_metrics` and `knob_pairs`."""
    pairs = connection.execute("FROM knob_pairs ORDER BY ALL").df()
    if pairs.empty:
        return
    runs = connection.execute("FROM sweep_metrics SEMI JOIN knob_pairs USING (dbms, device, workload)").df()
    runs = runs.sort_values(["block_id", "position"]).drop_duplicates("run_id")
    for names, of_case in pairs.groupby(_CASE, sort=True):
        own = runs[(runs[_CASE] == list(names)).all(axis=1)]
        add_frame(connection, "pair_effects", pair_effects_of_case(own, of_case, specs.study.thresholds.min_effect))


def pair_effects_of_case(runs: "pd.DataFrame", pairs: "pd.DataFrame", min_effect: float) -> "pd.DataFrame":
    """Return rows of `pair_effects`: `runs` are those of a case in view `sweep_metrics`, `pairs` its `knob_pairs`.

    A pair of which a part has no run that can be compared has no row.
    """
    import pandas as pd

    codes, configurations = pd.factorize(runs["config_id"].where(~runs["is_sentinel"]))
    settings = len(configurations) + 1
    units = make_units(runs, (codes + 1).astype(np.int64))
    groups, _ = judge_blocks(units.frame, min_effect)
    response = units.responses["throughput_ops"]
    rows = groups.comparable(np.isfinite(response))
    setting, block = units.setting[rows], units.block[rows]
    incidence = list_blocks(setting, block, settings)
    parts = np.column_stack(
        [configurations.get_indexer(pairs[name]) + 1 for name in ("config_id", "one_id", "other_id")]
    )
    blocks = (incidence[parts].all(axis=1) & incidence[0]).sum(axis=1)
    whole = incidence[parts].any(axis=2).all(axis=1)
    pairs, parts, blocks = pairs[whole], parts[whole], blocks[whole]
    if pairs.empty:
        return pairs
    fit = fit_blocks(response[rows], setting, groups.nuisance(rows), settings)
    together, alone, other_alone = fit.estimates[parts - 1].T
    errors, degrees = contrast_errors(fit, _weights(parts, settings))
    errors = np.where((blocks >= LEAST_REPLICATES) & (fit.degrees >= LEAST_DEGREES), errors, np.nan)
    estimates = together - alone - other_alone
    low, high = t_interval(estimates, errors, np.maximum(degrees, 1))
    p_values = t_probability(estimates, errors, np.maximum(degrees, 1))
    measured = {"alone": alone, "other_alone": other_alone, "together": together, "estimate": estimates}
    return pairs.assign(
        **measured, low=low, high=high, p_value=p_values, q_value=adjust_for_fdr(p_values), blocks=blocks
    )


def _weights(parts: np.ndarray, settings: int) -> Floats:
    """Return the contrasts (pairs, settings): both - one - other + default."""
    weights = np.zeros((len(parts), settings))
    each = np.arange(len(parts))
    for column, weight in enumerate((1.0, -1.0, -1.0)):
        weights[each, parts[:, column]] = weight
    weights[:, 0] = 1.0
    return weights
