"""The stage as one function: plan and runs of a sweep in, which values to measure again out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.durable_files import finite
from knobscope.stages.plan import describe_ratio
from knobscope.stages.reinforce.precision import Precision, SweepRuns, count_more, measure_precision
from knobscope.statistics.arrays import Bools, Floats, Ints
from knobscope.statistics.power import Aim
from knobscope.text.formats import join_words, list_names, loosen_units, plural

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class _Values:
    """The values of a sweep: names, and arrays of shape (values,)."""

    names: list[str]
    planned: Ints  # blocks that were to measure it
    blocks: Ints  # blocks in which it ran
    smallest: Floats  # ratio of the smallest effect that would be found now
    suffices: Bools
    more: Ints

    @property
    def never_ran(self) -> Bools:
        """Values without a run to go by: they fail, and would fail again."""
        never: Bools = self.blocks == 0
        return never


def decide(
    plan: "pd.DataFrame",
    runs: "pd.DataFrame",
    aim: Aim,
    least: int,
    most: int,
    references: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return what is known of every value of a sweep, and how many blocks more it needs, ready for JSON.

    `plan` are the rows of table `plan` of all rounds of one case's sweep, `runs` its rows of table `runs` so far. A
    value needs more when the smallest effect that would be found is larger than the one aimed at, or when it ran in
    fewer than `least` blocks; never beyond `most` blocks, those in which it failed included. One that failed in all
    blocks is left alone. `references` are the configurations that values are compared with, by `config_id`, where that
    is not the default one.
    """
    values = plan[~plan["is_sentinel"]].drop_duplicates("config_id")
    codes = {config_id: code for code, config_id in enumerate(values["config_id"], start=1)}
    measured = _read_runs(runs, codes, references or {})
    precision, ran = measure_precision(measured), measured.count_blocks(np.isfinite(measured.response))
    planned = plan[~plan["is_sentinel"]].groupby("config_id")["block_id"].nunique()
    of_values = planned.reindex(list(codes)).to_numpy(np.int64)
    smallest = aim.smallest(precision.errors, precision.degrees)
    enough = aim.suffices(smallest)
    lacking = ~(enough & (ran >= least)) & (ran > 0)
    judged = _Values(
        names=_name_values(values, plan),
        planned=of_values,
        blocks=ran,
        smallest=smallest,
        suffices=enough,
        more=count_more(precision, aim, lacking, np.maximum(most - of_values, 0)),
    )
    decision: dict[str, Any] = finite(_to_json(judged, list(codes), precision, aim, plan, most))
    return decision


def _read_runs(runs: "pd.DataFrame", codes: dict[str, int], references: Mapping[str, str]) -> SweepRuns:
    """Return the runs of the sweep as arrays; a run of a configuration that is no longer planned does not count."""
    planned = runs[runs["is_sentinel"] | runs["config_id"].isin(list(codes))]
    ok = (planned["status"] == "ok") & (planned["throughput_ops"] > 0)
    throughput = planned["throughput_ops"].where(ok).to_numpy(float)
    setting = planned["config_id"].map(codes).fillna(0).where(~planned["is_sentinel"], 0)
    return SweepRuns(
        setting=setting.to_numpy(np.int64),
        block=planned["block_id"].factorize()[0].astype(np.int64),
        session=planned.groupby(["block_id", "session"], dropna=False).ngroup().to_numpy(np.int64),
        response=np.log(throughput),
        settings=len(codes) + 1,
        reference=np.array([codes.get(references.get(config_id, ""), 0) for config_id in codes], np.int64),
    )


def _name_values(values: "pd.DataFrame", plan: "pd.DataFrame") -> list[str]:
    """Return `knob = value` of each value: where its configuration differs from the default one."""
    default = json.loads(plan.loc[plan["is_sentinel"], "configuration"].iloc[0])
    names = []
    for text in values["configuration"]:
        changed = {knob: value for knob, value in json.loads(text).items() if value != default[knob]}
        names.append(", ".join(f"{knob} = {value}" for knob, value in changed.items()))
    return names


def _to_json(
    values: _Values, config_ids: list[str], precision: Precision, aim: Aim, plan: "pd.DataFrame", most: int
) -> dict[str, Any]:
    rows = [
        {
            "config_id": config_id,
            "value": values.names[at],
            "planned": int(values.planned[at]),
            "blocks": int(values.blocks[at]),
            "standard_error": float(precision.errors[at]),
            "degrees": float(precision.degrees[at]),
            "smallest_effect": float(values.smallest[at]),
            "suffices": bool(values.suffices[at]),
            "more": int(values.more[at]),
        }
        for at, config_id in enumerate(config_ids)
    ]
    more = int(values.more.max(initial=0))
    return {
        "blocks": int(plan["block_id"].nunique()),
        "noise": precision.noise,
        "effect": aim.effect,
        "power": aim.power,
        "comparisons": aim.comparisons,
        "between_devices": aim.between_devices,
        "more": more,
        "done": more == 0,
        "reason": _explain(values, aim, most),
        "values": rows,
    }


def _explain(values: _Values, aim: Aim, most: int) -> str:
    """Say in one sentence why the sweep goes on, or why it ends."""
    goal, count = f"{aim.effect:g}x", len(values.names)
    parts = []
    if enough := int(values.suffices.sum()):
        parts.append(f"effects of {goal} would be found for {enough} of {plural(count, 'value')}")
    if going := np.flatnonzero(values.more > 0).tolist():
        blocks = plural(int(values.more.max()), "block")
        parts.append(f"up to {blocks} more for {_list_values(values, going)}")
    at_end = (values.more == 0) & ~values.suffices & ~values.never_ran
    if ended := np.flatnonzero(at_end).tolist():
        shown = _list_values(values, ended)
        parts.append(f"{most} blocks, the most that the study allows, were not enough for {shown}")
    if failed := [values.names[at] for at in np.flatnonzero(values.never_ran)]:
        parts.append(f"no run to compare of {list_names(failed)}")
    return loosen_units("; ".join(parts) or "there is no value to repeat")


def _list_values(values: _Values, which: list[int]) -> str:
    """Name values, each with the smallest effect that would be found; the worst one first."""
    order = sorted(which, key=lambda at: -values.smallest[at])
    named = [f"{values.names[at]} ({_describe_visible(float(values.smallest[at]))})" for at in order]
    return list_names(named) if len(named) != 2 else join_words(named)


def _describe_visible(smallest: float) -> str:
    ratio = describe_ratio(smallest)
    return "shows nothing yet" if ratio == "no" else f"shows {ratio} and more"
