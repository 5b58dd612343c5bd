"""The two kinds of rounds: screening (many knobs at once, round by round) and the one-at-a-time sweep."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from knobscope.errors import UserError
from knobscope.specs import Case, StudySpecs, Value, value_text
from knobscope.stages.plan.blocks import build_block, config_id_of, seed_of, split_into_blocks
from knobscope.stages.plan.dependents import SweptValue, sweep_configurations, swept_values
from knobscope.stages.plan.levels import default_configuration, screening_levels
from knobscope.stages.plan.narrowing import find_costly, narrow
from knobscope.stages.plan.pairs import pair_configurations
from knobscope.stages.plan.picking import RESPONSIVE, count_random
from knobscope.stages.plan.refused import list_refused
from knobscope.stages.plan.sampling import Configuration, DesignSpace, Key, draw_configurations
from knobscope.tables import LeftOutRow, PlanRow

#: Knobs of which `auto` weighs all pairs, at most.
MOST_ACTIVE = 30

#: The largest `sweep.most` of a study.
_MOST_BLOCKS = 1000


def case_space(specs: StudySpecs, case: Case) -> DesignSpace:
    """Return the configurations that screening of a case may draw."""
    study, dbms, workload = specs.study, specs.dbms[case.dbms], specs.workloads[case.workload]
    chosen = study.knobs[case.dbms]
    default = default_configuration(dbms, list(chosen), study.baseline.get(case.dbms, {}))
    levels = {
        name: screening_levels(dbms.knobs[name], choice, study.sampling.levels, default[name])
        for name, choice in chosen.items()
    }
    facts: dict[str, Value] = {"threads": workload.threads, "records": workload.records}
    return DesignSpace(dbms, levels, default, facts, study.sampling.varied)


def screening_blocks(specs: StudySpecs) -> int:
    """Return the number of blocks of a screening round; the DAG depends on it."""
    sampling = specs.study.sampling
    return math.ceil(sampling.runs_per_round / sampling.block_runs)


def sampling_method(specs: StudySpecs, case: Case) -> str:
    """Return the method by which screening of a case draws: that of the study, or what `auto` stands for.

    `active` needs the fewest runs to a model that predicts (docs/evidence/statistics.md), and gives every case
    configurations of its own, and so does `narrowing`, for more knobs than `active` could weigh all pairs of. Where a
    DBMS has several cases they measure the same ones, by `lhs`, so that devices can be compared configuration by
    configuration.
    """
    method: str = specs.study.sampling.method
    if method != "auto":
        return method
    if sum(peer.dbms == case.dbms for peer in specs.cases) > 1:
        return "lhs"
    return "active" if len(specs.study.knobs[case.dbms]) <= MOST_ACTIVE else "narrowing"


def identify_sampling(specs: StudySpecs, case: Case) -> dict[str, Value]:
    """Return what a screening plan depends on beyond the fields of specs; a share only where not all knobs are drawn.

    So plans of finished studies stay what they are.
    """
    varied = specs.study.sampling.varied
    return {"sampling": sampling_method(specs, case), **({} if varied == 1 else {"varied": varied})}


def plan_screening(
    specs: StudySpecs, case: Case, round_: int, earlier: Mapping[Key, float] | None = None
) -> list[PlanRow]:
    """Return table `plan` for one screening round.

    Unless the sampling method looks at responses, the draw depends on study seed, DBMS and round only: all devices and
    workloads measure the same configurations, and earlier rounds are drawn again first, so that none comes twice. A
    method that does look (`RESPONSIVE`) goes by `earlier`, what earlier rounds of this case have planned and measured.
    UserError: it is missing.
    """
    study, sampling, method = specs.study, specs.study.sampling, sampling_method(specs, case)
    space = case_space(specs, case)
    known_keys = {space.key(space.default)}
    is_responsive = method in RESPONSIVE
    if is_responsive:
        if round_ and not earlier:
            raise UserError(f"sampling {method!r} goes by earlier rounds: name them with --plans and --runs")
        known_keys |= set(earlier or {})
    if method == "narrowing":
        space, method = narrow(space, find_costly(space, earlier or {})), "lhs"
    configurations: list[Configuration] = []
    drawn = count_random(method, sampling.runs_per_round, len(known_keys))
    for index in [round_] if is_responsive else range(round_ + 1):
        rng = np.random.RandomState(seed_of(study.seed, case.dbms, "screen", index))
        configurations = draw_configurations(space, method, sampling.runs_per_round, rng, known_keys, earlier)
    chosen = configurations[drawn:]
    chosen_ids = {config_id_of(case.dbms, configuration) for configuration in chosen}
    rows: list[PlanRow] = []
    for index, part in enumerate(split_into_blocks(configurations, screening_blocks(specs))):
        rows += build_block(case, space.dbms, "screen", round_, index, part, space.default, study.seed, repeat=index)
    return [{**row, "is_chosen": row["config_id"] in chosen_ids} for row in rows]


def plan_sweep(specs: StudySpecs, case: Case, knobs: list[str], pairs: Sequence[tuple[str, str]] = ()) -> list[PlanRow]:
    """Return table `plan` for the one-at-a-time round: each repeat is a complete block of all values.

    Knobs of `pairs` are swept alone, too, and together (`knobscope.stages.plan.pairs`).

    A value that does not count together with the default configuration, or is forbidden there, comes with its own
    reference (`knobscope.stages.plan.dependents`). Where there is none it is left out: `list_left_out` names it.
    """
    study, space = specs.study, case_space(specs, case)
    named = list(dict.fromkeys([*knobs, *(name for pair in pairs for name in pair)]))
    wanted = sweep_configurations(list(swept_values(specs, case, space, named)))
    wanted += pair_configurations(space, study.knobs[case.dbms], pairs)
    rows: list[PlanRow] = []
    for index in range(study.sweep.repeats):
        rows += build_block(case, space.dbms, "sweep", 0, index, wanted, space.default, study.seed, repeat=index)
    return rows


def plan_reinforcement(
    specs: StudySpecs, case: Case, round_: int, more: Mapping[str, int], measured: int
) -> list[PlanRow]:
    """Return table `plan` for a further round of the sweep: block j holds the values that need more than j blocks.

    What a value is compared with comes along, where that is not the default configuration. `more` are blocks by
    `config_id`, as `knobscope reinforce` asks for them; the sweep has had `measured` blocks before, from where
    repetitions go on. Block names hold the round, so none comes twice. UserError: a value that the sweep of this study
    does not have.
    """
    study, space = specs.study, case_space(specs, case)
    values = [swept for swept in swept_values(specs, case, space, list(space.levels)) if swept.reference is not None]
    configurations = {
        config_id_of(case.dbms, configuration): configuration for configuration in sweep_configurations(values)
    }
    references = sweep_references(specs, case)
    if unknown := [config_id for config_id in more if config_id not in configurations]:
        raise UserError(f"the sweep of {case} has no configuration {unknown[0]}, which is to be repeated; plan it anew")
    if not all(0 <= blocks <= _MOST_BLOCKS for blocks in more.values()):
        raise UserError(f"found {max(more.values()):,} further blocks of a value; expected at most {_MOST_BLOCKS:,}")
    rows: list[PlanRow] = []
    for index in range(max(more.values(), default=0)):
        due = {
            config_id: configuration
            for config_id, configuration in configurations.items()
            if more.get(config_id, 0) > index
        }
        due |= {
            references[config_id]: configurations[references[config_id]] for config_id in due if config_id in references
        }
        wanted = list(due.values())
        repeat = measured + index
        rows += build_block(case, space.dbms, "sweep", round_, index, wanted, space.default, study.seed, repeat)
    return rows


def list_left_out(specs: StudySpecs, case: Case) -> list[LeftOutRow]:
    """Return table `left_out_values`: what a sweep of all knobs of the study could not measure, and why.

    That is what the DBMS refuses, alone or together with other values, and what is forbidden, or does not count,
    together with the default configuration and together with every change of one or two other knobs of the study.

    Knobs that `all` leaves out come last; they have no `value`, since none of theirs is measured.
    """
    space = case_space(specs, case)
    names: LeftOutRow = {"dbms": case.dbms, "device": case.device, "workload": case.workload}
    rows: list[LeftOutRow] = [
        {
            **names,
            "knob": swept.knob,
            "value": value_text(swept.value),
            "reason": f"{swept.reason}, and no change of one or two other knobs of the study helps",
        }
        for swept in swept_values(specs, case, space, list(space.levels))
        if swept.reference is None
    ]
    for refused in list_refused(space.dbms, space.levels):
        rows.append({**names, "knob": refused.knob, "value": value_text(refused.value), "reason": refused.reason})
    for knob, reason in specs.left_out.get(case.dbms, {}).items():
        rows.append({**names, "knob": knob, "reason": reason})
    return rows


def list_dependents(specs: StudySpecs, case: Case) -> list[SweptValue]:
    """Return the values that a sweep of all knobs of the study measures together with a change of other knobs."""
    space = case_space(specs, case)
    return [swept for swept in swept_values(specs, case, space, list(space.levels)) if swept.change]


def value_configurations(specs: StudySpecs, case: Case) -> set[str]:
    """Return the `config_id` of all that a sweep of all knobs of the study measures, pairs of knobs not included."""
    space = case_space(specs, case)
    values = list(swept_values(specs, case, space, list(space.levels)))
    return {config_id_of(case.dbms, configuration) for configuration in sweep_configurations(values)}


def sweep_references(specs: StudySpecs, case: Case) -> dict[str, str]:
    """Return what values are compared with, where that is not the default configuration: `config_id` to `config_id`."""
    return {
        config_id_of(case.dbms, swept.configuration): config_id_of(case.dbms, swept.reference)
        for swept in list_dependents(specs, case)
        if swept.reference is not None
    }
