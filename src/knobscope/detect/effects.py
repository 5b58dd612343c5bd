"""What one knob does: effects of single changes against the sentinel of the same block, with interval and q value.

Each metric of each case (DBMS, device, workload) has its own fit of the sweep: response = group + configuration. A
group is one session of one block (`knobscope.detect.blocks` tells of drift and resumed blocks), an observation is one
measurement (`knobscope.detect.units`), and configurations may differ in noise. An effect that was measured in fewer
than two blocks, or with fewer than two residual degrees of freedom, has an estimate but no interval: one block cannot
tell an effect from the luck of a position in the order. Where others measured and their table tells of no blocks, two
measurements have to do, apart from each other in the order, which is taken for random. An effect larger than the whole
range that the comparable runs of its case measured has no estimate either: the fit has too few runs for its terms.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.detect.blocks import Groups, judge_blocks
from knobscope.detect.contrasts import contrast_tiers
from knobscope.detect.metrics import METRICS
from knobscope.detect.order import steps_from
from knobscope.detect.units import Units, make_units
from knobscope.specs import Knob, StudySpecs
from knobscope.statistics.arrays import Floats
from knobscope.statistics.regression import (
    adjust_for_fdr,
    fit_blocks,
    t_interval,
    t_probability,
    unequal_errors,
)
from knobscope.tables import NO_BLOCK, TABLES

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["add_effects", "add_frame", "effects_of_case"]

_LEAST_DEGREES = 2
_LEAST_REPLICATES = 2
#: Rounding of the fit may carry an effect a little beyond the range of two runs.
_RANGE_SLACK = 1 + 1e-9
_CASE = ["dbms", "device", "workload"]


def add_effects(connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> None:
    """Fill tables `effects`, `blocks` and `tier_contrasts` of a study's database from its runs."""
    import pandas as pd

    runs = connection.execute("FROM sweep_metrics ORDER BY block_id, position").df()
    min_effect = specs.study.thresholds.min_effect
    results = [effects_of_case(case, min_effect) for _, case in runs.groupby(_CASE, sort=True)]
    if not results:
        return
    effects = pd.concat([effects for effects, _ in results], ignore_index=True)
    effects["q_value"] = effects.groupby("metric")["p_value"].transform(lambda p: adjust_for_fdr(p.to_numpy()))
    effects = _describe_knobs(effects, specs)
    devices = connection.execute("FROM device_tiers").df()
    effects = effects.merge(devices, how="left", on="device")
    add_frame(connection, "effects", effects)
    add_frame(connection, "blocks", pd.concat([blocks for _, blocks in results], ignore_index=True))
    add_frame(connection, "tier_contrasts", contrast_tiers(effects))


def effects_of_case(runs: "pd.DataFrame", min_effect: float) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Return rows of `effects` (metric by metric, every changed value, without q values) and of `blocks`.

    `runs` are all runs of one case in view `sweep_metrics`; metrics of runs that failed are NULL there.
    """
    import pandas as pd

    changes = runs.loc[~runs["is_sentinel"], ["knob", "value", "baseline"]].drop_duplicates()
    values = pd.MultiIndex.from_frame(changes)
    setting = values.get_indexer(pd.MultiIndex.from_frame(runs[changes.columns])) + 1
    setting[runs["is_sentinel"].to_numpy(bool)] = 0
    units = make_units(runs, setting, len(changes) + 1)
    groups, blocks = judge_blocks(units.frame, min_effect)
    about = {name: changes[name].to_numpy() for name in changes}
    rows = []
    for name, metric in METRICS.items():
        columns = _fit_metric(units.responses[name], units, groups, len(changes) + 1)
        columns["reference"] = metric.on_own_scale(columns["reference"])
        rows.append(pd.DataFrame({**about, "metric": name, "stalled": units.stalled[1:], **columns}))
    effects = pd.concat(rows, ignore_index=True).assign(**runs[_CASE].iloc[0].to_dict())
    return effects, blocks


def _fit_metric(response: Floats, units: Units, groups: Groups, settings: int) -> dict[str, Any]:
    """Return the statistical columns of `effects`; scalars or shape (settings - 1,)."""
    setting, block = units.setting, units.frame["block_id"].factorize()[0]
    rows = groups.comparable(np.isfinite(response))
    sentinel = response[rows & (setting == 0)]
    seen = np.unique(np.column_stack([setting[rows], block[rows]]), axis=0)[:, 0]
    blocks = np.bincount(seen, minlength=settings)[1:]
    has_blocks = not units.frame["block_id"].str.endswith(f"/{NO_BLOCK}").all()
    replicates = blocks if has_blocks else np.bincount(setting[rows], minlength=settings)[1:]
    fit = fit_blocks(response[rows], setting[rows], groups.nuisance(rows), settings)
    measured = np.abs(fit.estimates) <= _RANGE_SLACK * np.ptp(response[rows]) if rows.any() else np.False_
    judged = measured & (replicates >= _LEAST_REPLICATES) & (fit.degrees >= _LEAST_DEGREES)
    errors, degrees = unequal_errors(fit)
    errors = np.where(judged, errors, np.nan)
    low, high = t_interval(fit.estimates, errors, np.maximum(degrees, 1))
    return {
        "estimate": np.where(measured, fit.estimates, np.nan),
        "low": low,
        "high": high,
        "p_value": t_probability(fit.estimates, errors, np.maximum(degrees, 1)),
        "standard_error": errors,
        "degrees": degrees,
        "noise": fit.noise,
        "reference": sentinel.mean() if len(sentinel) else np.nan,
        "runs": np.bincount(setting[rows], units.runs[rows], minlength=settings)[1:].astype(np.int64),
        "blocks": blocks,
    }


def _describe_knobs(effects: "pd.DataFrame", specs: StudySpecs) -> "pd.DataFrame":
    """Add what the specs say of the knob, and the steps from the reference value to this one."""
    import pandas as pd

    rows = []
    for (dbms, name, known), group in effects.groupby(["dbms", "knob", "baseline"], dropna=False):
        baseline = None if pd.isna(known) else known  # runs that were measured elsewhere may not tell their default
        knob: Knob | None = specs.dbms[dbms].knobs.get(name)
        about = {key: getattr(knob, key, None) for key in ("unit", "expect", "mechanism")}
        key = {"dbms": dbms, "knob": name, "baseline": baseline}
        for value, step in steps_from(knob, baseline, list(group["value"].unique())).items():
            risky = knob is not None and knob.risks(value)
            rows.append({**key, "value": value, "step": step, "durability": risky, **about})
    described = pd.DataFrame(rows).astype({"step": "Int64", "baseline": effects["baseline"].dtype})
    return effects.merge(described, how="left", on=["dbms", "knob", "baseline", "value"])


def add_frame(connection: "duckdb.DuckDBPyConnection", table: str, frame: "pd.DataFrame") -> None:
    """Insert the columns of a table of the study's database that a frame must have; an empty one may have none."""
    if frame.empty:
        return
    connection.register("frame", frame)
    names = ", ".join(f'"{name}"' for name in TABLES[table])
    connection.execute(f"INSERT INTO {table} SELECT {names} FROM frame")  # noqa: S608
    connection.unregister("frame")
