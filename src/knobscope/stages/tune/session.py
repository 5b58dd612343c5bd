"""A tuning session of one case: tuners and measured runs, side by side, and at the end the winners once more.

The best of many noisy runs looks better than it is. So the best configuration of each tuner is measured again, in
complete blocks with the default configuration, and only those runs say how good it is. Before that the power is cut:
a configuration that loses what it acknowledged is none to recommend, however fast.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import cast

from knobscope.specs import Case, StudySpecs
from knobscope.specs.models.study import Tune
from knobscope.stages.plan.blocks import build_block, config_id_of, load_id_of
from knobscope.stages.plan.search_space import Configuration
from knobscope.stages.tune.schedule import Step, tuning_blocks
from knobscope.stages.tune.tuner import Tuner
from knobscope.tables import CutColumns, PlanRow, RunRecord, TrialRow

Measure = Callable[[PlanRow], RunRecord]
#: What power cuts say of a configuration.
Cut = Callable[[Configuration], CutColumns]
_Session = tuple[int, str | None]


@dataclass(frozen=True)
class _Trial:
    """A configuration that was tried, and its row; `session`: number of its block, and when that was measured."""

    row: TrialRow
    configuration: Configuration
    session: _Session
    throughput: float


def tune_case(
    specs: StudySpecs, case: Case, tune: Tune, tuners: Sequence[Tuner], measure: Measure, cut: Cut | None = None
) -> tuple[list[RunRecord], list[PlanRow], list[TrialRow]]:
    """Run all tuners; returns records of runs, rows of table `plan`, and rows of table `trials`.

    `measure` returns the record of a planned run, as `Measurer.measure` does; `cut` what power cuts say of a
    configuration, None where none is cut.
    """
    tried: dict[Tuner, list[_Trial]] = defaultdict(list)
    records: list[RunRecord] = []
    plan: list[PlanRow] = []
    trials: list[TrialRow] = []
    defaults: dict[_Session, list[float]] = defaultdict(list)
    for index, steps in enumerate(tuning_blocks(case, specs.study.seed, len(tuners), tune.trials)):
        for position, step in enumerate(steps):
            tuner = tuners[step.tuner] if step.tuner is not None else None
            configuration = tuner.ask() if tuner is not None else tuners[0].space.default
            row = _plan_row(tuners, case, index, position, step, configuration)
            record = measure(row)
            plan.append(row)
            records.append(record)
            session = index, record["run"].get("session")
            throughput = record["run"]["throughput_ops"] if record["run"]["status"] == "ok" else None
            if tuner is not None:
                tuner.tell(throughput)
                trials.append(_trial_row(case, tuner, step.trial, record, row))
                tried[tuner].append(_Trial(trials[-1], configuration, session, throughput or 0.0))
            elif throughput:
                defaults[session].append(throughput)
            if len(records) == 1:  # the first of all runs, without which there is no session
                for fresh_tuner in tuners:
                    fresh_tuner.begin(record["run"]["throughput_ops"])
    known: dict[str, CutColumns] = {}
    usual = {session: geometric_mean(throughputs) for session, throughputs in defaults.items()}
    best = [_choose_winner(tuner, tried[tuner], usual, cut, known) for tuner in tuners]
    winners = _confirmation(specs, case, tune, tuners, [configuration for configuration in best if configuration])
    return [*records, *(measure(row) for row in winners)], [*plan, *winners], trials


def _choose_winner(
    tuner: Tuner,
    trials: Sequence[_Trial],
    usual: Mapping[_Session, float],
    cut: Cut | None,
    known: dict[str, CutColumns],
) -> Configuration | None:
    """Mark the fastest trial of a tuner that loses nothing, or no more than the default; return its configuration.

    None: none was faster than the default of its session, whose throughput is in `usual`. `known` are the cuts of
    configurations, which grow; each is cut once.
    """
    compared = [(trial.throughput / usual[trial.session], trial) for trial in trials if trial.session in usual]
    for ratio, trial in sorted(compared, key=lambda pair: -pair[0]):
        if ratio <= 1:
            return None
        if trial.configuration == tuner.space.default:
            continue  # it was faster than itself by chance
        config_id = trial.row["config_id"]
        if cut is not None and config_id not in known:
            known[config_id] = cut(trial.configuration)
        columns = known.get(config_id, {})
        trial.row.update(cast("TrialRow", columns))
        # A default that loses rows itself cannot ask more of others.
        if not columns.get("cuts_lost") or (columns.get("default_cuts_lost") and not columns.get("loses_more")):
            trial.row["is_winner"] = True
            return trial.configuration
    return None


def _plan_row(
    tuners: Sequence[Tuner], case: Case, block: int, position: int, step: Step, configuration: Configuration
) -> PlanRow:
    dbms = tuners[0].space.dbms
    return {
        "block_id": f"{case}/tune-0-{block}",
        "phase": "tune",
        "round": 0,
        "position": position,
        "config_id": config_id_of(case.dbms, configuration),
        "is_sentinel": step.tuner is None,
        # A number of its own: two tuners may ask for the same configuration, and each gets a run of its own.
        "repeat": 0 if step.tuner is None else (step.trial - 1) * len(tuners) + step.tuner,
        "load_id": load_id_of(dbms, configuration),
        "configuration": json.dumps(configuration, sort_keys=True),
        "is_chosen": step.tuner is not None,
    }


def _trial_row(case: Case, tuner: Tuner, trial: int, record: RunRecord, row: PlanRow) -> TrialRow:
    return {
        "dbms": case.dbms,
        "device": case.device,
        "workload": case.workload,
        "space": tuner.name,
        "knobs": len(tuner.space.parameters),
        "seed": tuner.seed,
        "trial": trial,
        "run_id": record["run"]["run_id"],
        "config_id": row["config_id"],
        "is_winner": False,
    }


def _confirmation(
    specs: StudySpecs, case: Case, tune: Tune, tuners: Sequence[Tuner], best: Sequence[Configuration]
) -> list[PlanRow]:
    """Return the plan of the last blocks: every winner once in each, in random order."""
    dbms, default = tuners[0].space.dbms, tuners[0].space.default
    winners = {config_id_of(case.dbms, values): values for values in best if values != default}
    rows: list[PlanRow] = []
    for repeat in range(tune.repeats if winners else 0):
        rows += build_block(
            case, dbms, "tune", 1, repeat, list(winners.values()), default, specs.study.seed, repeat=repeat
        )
    return rows


def count_runs(case: Case, tune: Tune) -> int:
    """Return how many runs a session takes, at most."""
    tuners = tune.seeds * len(tune.spaces)
    searching = sum(len(steps) for steps in tuning_blocks(case, 0, tuners, tune.trials))
    return searching + tune.repeats * (tuners + max(3, 2 + tuners // 12))
