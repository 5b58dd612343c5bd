"""What one knob does: effects of single changes within blocks, with interval and q value.

A value is compared with the sentinel or, where the sweep measured it together with a change of other knobs, with the
runs that have that change alone. Each metric of each case (DBMS, device, workload) has its own fit of the sweep:
response = group + configuration. A group is one session of one block (`blocks` tells of drift and resumed blocks), an
observation is one measurement (`units`), and configurations may differ in noise. What a block does to a configuration
alone is a random term (`block_variation`): several measurements in one block are no several blocks. An effect that was
measured in fewer than two blocks, or with fewer than two residual degrees of freedom, has an estimate but no interval:
one block cannot tell an effect from the luck of a position in the order. Where others measured and their table tells of
no blocks, two measurements have to do, apart from each other in the order, which is taken for random. An effect larger
than the whole range that the comparable runs of its case measured has no estimate either: the fit has too few runs for
its terms.
"""

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.specs import Knob, StudySpecs
from knobscope.stages.detect.blocks import Groups, judge_blocks
from knobscope.stages.detect.contrasts import contrast_tiers
from knobscope.stages.detect.guards import set_aside_blocks
from knobscope.stages.detect.metrics import METRICS
from knobscope.stages.detect.units import Units, list_blocks, make_units
from knobscope.stages.detect.value_order import steps_from
from knobscope.statistics.arrays import Bools, Floats, Ints
from knobscope.statistics.block_variation import MixedDesign
from knobscope.statistics.regression import adjust_for_fdr, t_interval, t_probability
from knobscope.tables import TABLES

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

LEAST_DEGREES = 2
LEAST_REPLICATES = 2
#: Rounding of the fit may carry an effect a little beyond the range of two runs.
_RANGE_SLACK = 1 + 1e-9
_CASE = ["dbms", "device", "workload"]
_CHANGE = ["knob", "value", "baseline", "beside"]
#: How many runs of each value, and of what it is compared with, were set aside.
_LOST_RUNS = """
    WITH lost AS (
        SELECT dbms, device, workload, config_id, count(*) AS runs
        FROM set_aside_runs JOIN runs USING (run_id) WHERE phase = 'sweep' GROUP BY ALL
    )
    SELECT c.dbms, c.device, c.workload, knob, value, baseline, beside,
        coalesce(max(v.runs), 0) AS set_aside, coalesce(max(r.runs), 0) AS reference_set_aside
    FROM single_changes c
    LEFT JOIN lost v
        ON (v.dbms, v.device, v.workload, v.config_id) = (c.dbms, c.device, c.workload, c.config_id)
    LEFT JOIN lost r
        ON (r.dbms, r.device, r.workload, r.config_id) = (c.dbms, c.device, c.workload, c.reference_id)
    GROUP BY ALL
"""


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
    effects = _add_knob_columns(effects, specs)
    devices = connection.execute("FROM device_tiers").df()
    effects = effects.merge(devices, how="left", on="device")
    add_frame(connection, "blocks", pd.concat([blocks for _, blocks in results], ignore_index=True))
    set_aside_blocks(connection)
    lost = connection.execute(_LOST_RUNS).df()
    effects = effects.merge(lost, how="left", on=[*_CASE, *_CHANGE]).assign(swept=None)
    add_frame(connection, "effects", effects)
    add_frame(connection, "tier_contrasts", contrast_tiers(effects))


def effects_of_case(runs: "pd.DataFrame", min_effect: float) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Return rows of `effects` (metric by metric, every swept value, without q values) and of `blocks`.

    `runs` are all runs of one case in view `sweep_metrics`; metrics of runs that failed are NULL there.
    """
    import pandas as pd

    changes = runs.loc[runs["knob"].notna(), ["config_id", "reference_id", *_CHANGE]].drop_duplicates()
    runs = runs.drop_duplicates("run_id")  # one that is compared in two ways has a row for each
    codes, configurations = pd.factorize(runs["config_id"].where(~runs["is_sentinel"]))
    contrasts = Contrasts.of(changes, configurations)
    units = make_units(runs, (codes + 1).astype(np.int64))
    groups, blocks = judge_blocks(units.frame, min_effect)
    about = {name: changes[name].to_numpy() for name in _CHANGE}
    designs: dict[bytes, MixedDesign] = {}  # most metrics are known of the same runs
    rows = []
    for name, metric in METRICS.items():
        if metric.is_optional and not np.isfinite(units.responses[name]).any():
            continue
        columns = _fit_metric(units.responses[name], units, groups, contrasts, designs)
        columns["reference"] = metric.on_own_scale(columns["reference"])
        rows.append({**about, "metric": np.full(len(changes), name, object), **columns})
    effects = {column: np.concatenate([row[column] for row in rows]) for column in rows[0]}
    return pd.DataFrame({**effects, **runs[_CASE].iloc[0].to_dict()}), blocks


@dataclass(frozen=True)
class Contrasts:
    """Which configurations are compared, by their codes: shape (contrasts,); the default configuration has code 0."""

    value: Ints
    reference: Ints
    settings: int  # configurations, the default one included

    @classmethod
    def of(cls, changes: "pd.DataFrame", configurations: "pd.Index[str]") -> "Contrasts":
        """Return the contrasts of `config_id` with `reference_id`; codes count the configurations from 1."""
        value, reference = (configurations.get_indexer(changes[name]) + 1 for name in ("config_id", "reference_id"))
        return cls(value.astype(np.int64), reference.astype(np.int64), len(configurations) + 1)


def _fit_metric(
    response: Floats, units: Units, groups: Groups, contrasts: Contrasts, designs: dict[bytes, MixedDesign]
) -> dict[str, Any]:
    """Return the statistical columns of `effects`, shape (contrasts,)."""
    rows = groups.comparable(np.isfinite(response))
    setting, compared = units.setting[rows], response[rows]
    if rows.tobytes() not in designs:
        designs[rows.tobytes()] = design_units(rows, units, groups, contrasts.settings)
    fit = designs[rows.tobytes()].fit(compared)
    incidence = list_blocks(setting, units.block[rows], contrasts.settings)
    blocks = (incidence[contrasts.value] & incidence[contrasts.reference]).sum(axis=1)
    measurements = np.bincount(setting, minlength=contrasts.settings)
    replicates = blocks if units.has_blocks else measurements[contrasts.value]
    parts = np.column_stack([contrasts.value, contrasts.reference])
    estimates, errors, degrees = fit.contrast(parts, np.array([1.0, -1.0]))
    measured = np.abs(estimates) <= _RANGE_SLACK * np.ptp(compared) if rows.any() else np.zeros(len(parts), bool)
    judged = measured & (replicates >= LEAST_REPLICATES) & (fit.likeliest.degrees >= LEAST_DEGREES)
    errors, degrees = np.where(judged, errors, np.nan), np.maximum(degrees, 1)
    low, high = t_interval(estimates, errors, degrees)
    with np.errstate(invalid="ignore"):
        means = np.bincount(setting, compared, minlength=contrasts.settings) / measurements
    return {
        "estimate": np.where(measured, estimates, np.nan),
        "low": low,
        "high": high,
        "p_value": t_probability(estimates, errors, degrees),
        "standard_error": errors,
        "degrees": degrees,
        "noise": np.full(len(parts), fit.likeliest.noise),
        "reference": means[contrasts.reference],
        "runs": np.bincount(setting, units.runs[rows], minlength=contrasts.settings)[contrasts.value].astype(np.int64),
        "blocks": blocks,
    }


def design_units(rows: Bools, units: Units, groups: Groups, settings: int) -> MixedDesign:
    """Return the design of the measurements of a case that can be compared; without blocks each stands for itself."""
    group = groups.code[rows] if units.has_blocks else None
    return MixedDesign.of(units.setting[rows], groups.nuisance(rows), settings, group)


def _add_knob_columns(effects: "pd.DataFrame", specs: StudySpecs) -> "pd.DataFrame":
    """Add what the specs say of the knob, and the steps from the reference value to this one."""
    import pandas as pd

    rows = []
    for (dbms, name, cell, beside), group in effects.groupby(["dbms", "knob", "baseline", "beside"], dropna=False):
        baseline = None if pd.isna(cell) else cell  # runs that were measured elsewhere may not tell their default
        knobs = specs.dbms[dbms].knobs
        knob: Knob | None = knobs.get(name)
        changed = {} if pd.isna(beside) else json.loads(beside)
        about = {key: getattr(knob, key, None) for key in ("unit", "mechanism")} | _expectation(knob)
        key = {"dbms": dbms, "knob": name, "baseline": baseline, "beside": None if pd.isna(beside) else beside}
        for value, step in steps_from(knob, baseline, list(group["value"].unique())).items():
            texts = {name: value, **changed}
            values = {key: knobs[key].read(text) for key, text in texts.items() if key in knobs}
            risky = specs.dbms[dbms].list_risks(specs.study.baseline.get(dbms, {}) | values, texts)
            rows.append({**key, "value": value, "step": step, "durability": bool(risky), **about})
    described = pd.DataFrame(rows).astype({"step": "Int64", **{name: effects[name].dtype for name in _CHANGE[2:]}})
    return effects.merge(described, how="left", on=["dbms", *_CHANGE])


def _expectation(knob: Knob | None) -> dict[str, Any]:
    """Return what raising a knob should do, as its spec says, or as its documentation suggests and how surely."""
    if knob is None or knob.expect is not None or knob.proposal is None or knob.proposal.expect is None:
        return {"expect": knob.expect if knob is not None else None, "expect_confidence": math.nan}
    return {"expect": knob.proposal.expect, "expect_confidence": knob.proposal.confidence}


def add_frame(connection: "duckdb.DuckDBPyConnection", table: str, frame: "pd.DataFrame") -> None:
    """Insert the columns of a table of the study's database that a frame must have; an empty one may have none."""
    if frame.empty:
        return
    connection.register("frame", frame)
    names = ", ".join(f'"{name}"' for name in TABLES[table])
    connection.execute(f"INSERT INTO {table} SELECT {names} FROM frame")  # noqa: S608
    connection.unregister("frame")
