"""`knobscope select`: fits all screening runs so far, says whether to go on, and ranks the knobs."""

import argparse
import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.specs import Case, Knob, Study, StudySpecs, Value, find_case, is_factor, load_study, value_text
from knobscope.specs.reading.arguments import (
    add_case_argument,
    add_measured_study,
    choose_study,
    list_results,
    read_round,
)
from knobscope.stages.plan import (
    DesignSpace,
    case_space,
    draw_configurations,
    find_costly,
    find_failing,
    narrow,
    read_earlier,
    sampling_method,
)
from knobscope.stages.plan.narrowing import CostlySetting
from knobscope.stages.select.noise import measure_noise
from knobscope.stages.select.selection import Selection, mark_selected, select_knobs
from knobscope.stages.select.warm_start import WarmStart, find_warm_start
from knobscope.tables import read_table
from knobscope.tables.responses import RESPONSES, Response
from knobscope.text.formats import join_words

if TYPE_CHECKING:
    import pandas as pd

_CANDIDATES = 5000


def screening_table(
    runs: list[Path],
    plans: list[Path],
    levels: Mapping[str, Sequence[Value]],
    response: Response,
    special: Mapping[str, Collection[Value]],
) -> "pd.DataFrame":
    """Return one row per ok run that has a response.

    It has a column per knob, in which numbers that are no level of the study count as the nearest one that is not
    `special`, `response`, `block`, `round`, `is_chosen`, `started_at` and `dbms_version`.

    `runs` are block directories, `plans` the tables they were planned in.
    """
    import pandas as pd

    measured = read_table([directory / "runs.parquet" for directory in runs])
    measured = measured[(measured["status"] == "ok") & (measured[response.column] > 0)]
    planned = read_table(plans).drop_duplicates("config_id").set_index("config_id").loc[measured["config_id"]]
    configurations = [json.loads(text) for text in planned["configuration"]]
    settings = {
        knob: [_nearest(configuration[knob], usual, special.get(knob, ())) for configuration in configurations]
        for knob, usual in levels.items()
    }
    columns = {"round": "round", "started_at": "started_at", "dbms_version": "dbms_version"}
    outcomes = {name: list(measured[column]) for name, column in columns.items()}
    outcomes["response"] = [response.of(figure) for figure in measured[response.column]]
    # Between two sessions of a block the machine may have changed, as between two blocks.
    outcomes["block"] = (measured["block_id"] + " " + measured["session"].fillna("")).tolist()
    return pd.DataFrame({**settings, **outcomes, "is_chosen": planned["is_chosen"].to_numpy(bool)})


def _nearest(value: Any, levels: Sequence[Any], special: Collection[Any]) -> Any:
    if value in levels or isinstance(value, str | bool):
        return value
    numbers = [level for level in levels if not isinstance(level, str | bool) and level not in special]
    if not numbers:
        return value
    # What spans orders of magnitude is near by its ratio.
    is_wide = min(*numbers, value) > 0 and max(numbers) >= 10 * min(numbers)
    return min(numbers, key=lambda level: abs(math.log(level / value)) if is_wide else abs(level - value))


def _run(args: argparse.Namespace) -> int:
    study = choose_study(args)
    specs = load_study(study, args.root, runnable=False)
    case = _complete(args, specs)
    space, response = case_space(specs, case), RESPONSES[specs.study.screening.response]
    table = _read_runs(args, case, space, response)
    tried = read_earlier(space, args.plans, args.runs, response)
    costly = find_costly(space, tried) if sampling_method(specs, case) == "narrowing" else []
    failing = find_failing(space, tried)
    start = _find_start(study, specs, case, space, table)
    selection = _select(specs.study, space, table, [*costly, *failing], start)
    unknown = [f"{knob} = {value_text(value)}" for setting in failing for knob, value in setting.values.items()]
    reasons = [selection.reason_trust]
    reasons += [f"nothing is known of {join_words(unknown)}, with which no configuration succeeded"] if unknown else []
    fit = {
        **selection.to_json(),
        "reason_trust": "; ".join(filter(None, reasons)),
        "importance": mark_selected(selection, specs.study.screening.top),
        "worst_predicted": [
            {**row, **{name: response.of(row[name]) for name in ("measured", "predicted")}}
            for row in selection.worst_predicted
        ],
        "warm_start": start.priors if selection.expected else [],
        "noise": measure_noise(args.runs),
        "costly_settings": [asdict(setting) for setting in costly],
    }
    write_sealed(args.out, fit)
    verdict = "stop" if selection.stopped else "go on"
    print(f"select {case} round {args.round}: {verdict} after {len(table)} runs: {selection.reason}", file=sys.stderr)
    return 0


def _read_runs(args: argparse.Namespace, case: Case, space: DesignSpace, response: Response) -> "pd.DataFrame":
    """Return the runs to select from. UserError: there are none."""
    special = {name: knob.special for name, knob in space.dbms.knobs.items()}
    table = screening_table(args.runs, args.plans, space.levels, response, special)
    if not table.empty:
        return table
    if (read_table([path / "runs.parquet" for path in args.runs])["status"] == "ok").any():
        raise UserError(
            f"runs of {case} succeeded, but none tells its {response.words}: expected a load generator that does, "
            "or another `response` in `screening`"
        )
    raise UserError(f"no run of {case} succeeded, so there is nothing to select from; see the logs of its blocks")


def _find_start(study: Path, specs: StudySpecs, case: Case, space: DesignSpace, table: "pd.DataFrame") -> WarmStart:
    """Return what is known from elsewhere about the knobs; nothing for runs without a time, as imported ones may be."""
    if not table["started_at"].notna().any():
        return WarmStart([], [])
    models, first = study.absolute().parent.parent.parent / "models", table.loc[table["started_at"].idxmin()]
    moment = first["started_at"].to_pydatetime()
    return find_warm_start(models, specs, case, list(space.levels), first["dbms_version"], moment)


def _select(
    study: Study, space: DesignSpace, table: "pd.DataFrame", left_out: Sequence[CostlySetting], start: WarmStart
) -> Selection:
    screening, knobs = study.screening, list(space.levels)
    is_whole = not left_out and not space.is_restricted and space.varied == 1
    return select_knobs(
        table,
        knobs,
        "response",
        screening.model,
        screening.threshold,
        screening.splits,
        study.seed,
        levels=space.levels,
        candidates=None if is_whole else _candidates(narrow(space, left_out)),
        axes={knob: space.dbms.knobs[knob].scale for knob in knobs},
        special={knob: _list_unplaced(space.dbms.knobs[knob]) for knob in knobs},
        stop=screening.stop,
        stable_rounds=screening.stable_rounds,
        default={knob: space.default[knob] for knob in knobs},
        tunable=tunable_values(space),
        expected=start.knobs,
    )


def _complete(args: argparse.Namespace, specs: StudySpecs) -> Case:
    """Return the case, of several the one that is named, and take what is not given from the results of the study."""
    if args.case is None and len(specs.cases) > 1:
        raise UserError(f"expected one of {', '.join(map(str, specs.cases))} as --case")
    case = find_case(specs, args.case or str(specs.cases[0]))
    if args.plans is None:
        plans = list_results(specs.study.name, f"{case}/plan/screen-*.parquet")
        rounds = {int(plan.stem.rpartition("-")[2]): plan for plan in plans}
        args.round = max(rounds) if args.round is None else args.round
        args.plans = [plan for number, plan in sorted(rounds.items()) if number <= args.round]
    args.round = args.round or 0
    if args.runs is None:
        blocks = [f"{case}/runs/screen-{number}-*" for number in range(args.round + 1)]
        args.runs = list_results(specs.study.name, *blocks)
    args.out = args.out or Path(f"{specs.study.name}-fit-{args.round}.json")
    return case


def _candidates(space: DesignSpace) -> "pd.DataFrame":
    """Return configurations that the plan may still use.

    A large random draw stands for all of them: what it never shows holds too small a part of the space to matter.
    """
    import pandas as pd

    rng = np.random.RandomState(0)
    return pd.DataFrame(draw_configurations(space, "random", _CANDIDATES, rng, set()))[list(space.levels)]


def tunable_values(space: DesignSpace) -> dict[str, list[Value]]:
    """Return the values that somebody might set each knob to, all others at their defaults.

    Left out is what risks committed data, which no gain is worth unasked, what does not count or is forbidden together
    with the defaults, and the load and the system below, which are given.
    """
    tunable = {}
    for name, levels in space.levels.items():
        changed = {level: {**space.default, name: level} for level in levels if level != space.default[name]}
        values = [
            level
            for level, configuration in changed.items()
            if not space.dbms.list_risks(configuration, [name])
            and space.counts(name, configuration)
            and space.allows(configuration)
        ]
        if values and not is_factor(name):
            tunable[name] = values
    return tunable


def _list_unplaced(knob: Knob) -> list[Value]:
    """Return what has no place on an axis: special values, and numbers of an enum in an order of its own."""
    numbers = [value for value in knob.values or [] if not isinstance(value, str | bool)]
    is_ordered = numbers in (sorted(numbers), sorted(numbers, reverse=True))
    return [*knob.special, *([] if is_ordered else numbers)]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "select",
        help="fit the screening runs, decide whether to stop, rank the knobs",
        description="Fit all screening runs of a case so far, decide whether to stop (R2 on all splits), and rank the "
        "knobs. The runs of all rounds come together.",
    )
    add_measured_study(parser)
    add_case_argument(parser, is_required=False)
    parser.add_argument("--round", type=read_round, help="screening round, from 0 (default: the last one)")
    parser.add_argument("--runs", type=Path, nargs="+", help="block directories of all rounds so far")
    parser.add_argument("--plans", type=Path, nargs="+", help="plans of all rounds so far (parquet)")
    parser.add_argument("--out", type=Path, help="JSON file to write (default: STUDY-fit-ROUND.json)")
    parser.set_defaults(run=_run)
