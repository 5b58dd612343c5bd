"""`knobscope plan`: writes the runs of one round as a table."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from knobscope.durable_files import blame_content, read_sealed
from knobscope.errors import UserError
from knobscope.specs import Case, StudySpecs, find_case, load_study, value_text
from knobscope.specs.reading.arguments import add_case_argument, add_study_arguments, read_round
from knobscope.stages.plan.aims import foretell
from knobscope.stages.plan.earlier import read_earlier
from knobscope.stages.plan.narrowing import find_costly
from knobscope.stages.plan.pairs import interacting_pairs
from knobscope.stages.plan.rounds import case_space, plan_reinforcement, plan_screening, plan_sweep, sampling_method
from knobscope.stages.plan.sampling import Key
from knobscope.tables import PlanRow, write_table
from knobscope.tables.responses import RESPONSES
from knobscope.text.formats import format_number, loosen_units, plural


def selected_knobs(specs: StudySpecs, case: Case, fits: list[Path]) -> list[str]:
    """Return the knobs to sweep: what the fits of this DBMS selected, the strongest first, and `sweep.always`."""
    best: dict[str, int] = {}
    for path in fits:
        with blame_content(path, expected="a file that `knobscope select` wrote"):
            for entry in read_sealed(path)["importance"]:
                if entry["selected"]:
                    best[entry["knob"]] = min(entry["rank"], best.get(entry["knob"], entry["rank"]))
    chosen = sorted(best, key=lambda knob: (best[knob], knob))
    always = [knob for knob in specs.study.sweep.always if knob in specs.study.knobs[case.dbms]]
    return list(dict.fromkeys([*chosen, *always]))


def _run(args: argparse.Namespace) -> int:
    specs = load_study(args.study, args.root, runnable=False)
    case = find_case(specs, args.case)
    if args.phase == "screen":
        response = RESPONSES[specs.study.screening.response]
        earlier = read_earlier(case_space(specs, case), args.plans, args.runs, response)
        rows = plan_screening(specs, case, args.round, earlier)
        _tell_costly(specs, case, earlier)
    elif args.reinforce is not None:
        with blame_content(args.reinforce, expected="a file that `knobscope reinforce` wrote"):
            decision = read_sealed(args.reinforce)
            more = {value["config_id"]: value["more"] for value in decision["values"]}
            rows = plan_reinforcement(specs, case, args.round, more, decision["blocks"])
            print(f"sweep of {case} again: {decision['reason']}", file=sys.stderr)
    else:
        rows = _plan_first_sweep(specs, case, args)
    write_table(args.out, "plan", rows)
    blocks = len({row["block_id"] for row in rows})
    planned = f"planned {plural(len(rows), 'run')} in {plural(blocks, 'block')} for {case}"
    print(loosen_units(planned), file=sys.stderr)
    return 0


def _tell_costly(specs: StudySpecs, case: Case, earlier: Mapping[Key, float]) -> None:
    if sampling_method(specs, case) == "narrowing":
        for costly_setting in find_costly(case_space(specs, case), earlier):
            setting = " with ".join(f"{knob} = {value_text(value)}" for knob, value in costly_setting.values.items())
            slower = f"{format_number(costly_setting.times_slower)} times slower"
            where = f"in {costly_setting.configurations} configurations"
            print(f"from now on without {setting}: {slower} {where}", file=sys.stderr)


def _plan_first_sweep(specs: StudySpecs, case: Case, args: argparse.Namespace) -> list[PlanRow]:
    if args.round:
        source = "what `knobscope reinforce` asked for after the round before"
        raise UserError(f"round {args.round} of a sweep is {source}: name that file with --reinforce")
    knobs = selected_knobs(specs, case, args.fits)
    pairs = interacting_pairs(map(read_sealed, args.fits), specs.study.sweep.pairs)
    rows = plan_sweep(specs, case, knobs, pairs)
    parts = [", ".join(knobs) or "no knob was selected", *(f"{first} with {second}" for first, second in pairs)]
    print(f"sweep of {case}: {'; '.join(parts)}", file=sys.stderr)
    values = len({row["config_id"] for row in rows if not row["is_sentinel"]})
    if values:
        print(f"sweep of {case}: {foretell(specs, values, _screening_noise(case, args.fits))}", file=sys.stderr)
    return rows


def _screening_noise(case: Case, fits: list[Path]) -> tuple[float, int] | None:
    """Return noise and its number of runs, as the case's own fit tells them; None where it does not."""
    own = [path for path in fits if path.resolve().parts[-5:-2] == case]
    noise = read_sealed(own[0]).get("noise") if own else None
    return (noise["sd"], noise["runs"]) if noise else None


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "plan",
        help="write the runs of one round of a study",
        description="Write the runs of one round (table `plan`): configurations in random order, in blocks, with the "
        "default configuration (sentinel) at start, middle and end of each block.",
    )
    add_study_arguments(parser)
    add_case_argument(parser)
    parser.add_argument("--phase", choices=["screen", "sweep"], required=True)
    parser.add_argument("--round", type=read_round, default=0, help="round of the phase, from 0")
    parser.add_argument(
        "--plans", type=Path, nargs="*", default=[], help="plans of earlier rounds, for methods that go by them"
    )
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="block directories of earlier rounds")
    parser.add_argument("--fits", type=Path, nargs="*", default=[], help="fit files whose selected knobs are swept")
    parser.add_argument(
        "--reinforce", type=Path, help="what `knobscope reinforce` asked for after the round before; for the sweep"
    )
    parser.add_argument("--out", type=Path, required=True, help="parquet file to write")
    parser.set_defaults(run=_run)
