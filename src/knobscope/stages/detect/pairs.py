"""What two knobs do together: interactions of the pairs that a sweep measured, with intervals.

The interaction of two values is what both do less what each does alone, as logarithms of throughput: a contrast of four
configurations of the fit that gives the effects (`effects`), whose terms for blocks and drift, units
and unequal variances it shares.
"""

from typing import TYPE_CHECKING

import numpy as np

from knobscope.specs import StudySpecs
from knobscope.stages.detect.blocks import judge_blocks
from knobscope.stages.detect.effects import LEAST_DEGREES, LEAST_REPLICATES, add_frame, design_units
from knobscope.stages.detect.units import list_blocks, make_units
from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.block_variation import MixedFit
from knobscope.statistics.regression import adjust_for_fdr, t_interval, t_probability

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

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
    fit = design_units(rows, units, groups, settings).fit(response[rows])
    alone, other_alone, together = (_against_default(fit, column) for column in (parts[:, 1], parts[:, 2], parts[:, 0]))
    whole_contrasts = np.column_stack([parts, np.zeros(len(parts), np.int64)])
    estimates, errors, degrees = fit.contrast(whole_contrasts, np.array([1.0, -1.0, -1.0, 1.0]))
    is_judged = (blocks >= LEAST_REPLICATES) & (fit.likeliest.degrees >= LEAST_DEGREES)
    errors, degrees = np.where(is_judged, errors, np.nan), np.maximum(degrees, 1)
    low, high = t_interval(estimates, errors, degrees)
    p_values = t_probability(estimates, errors, degrees)
    measured = {"alone": alone, "other_alone": other_alone, "together": together, "estimate": estimates}
    return pairs.assign(
        **measured, low=low, high=high, p_value=p_values, q_value=adjust_for_fdr(p_values), blocks=blocks
    )


def _against_default(fit: MixedFit, configuration: Ints) -> Floats:
    """Return the effects of configurations."""
    return fit.contrast(np.column_stack([configuration, np.zeros_like(configuration)]), np.array([1.0, -1.0]))[0]
