"""`knobscope export`: hands the knobs that matter to a tuner."""

import argparse
import sys
from pathlib import Path

from knobscope.commands.export.formats import FORMATS
from knobscope.commands.export.ranking import chosen_case, ranked_knobs
from knobscope.durable_files import write_json
from knobscope.errors import UserError
from knobscope.specs import load_study, value_text
from knobscope.specs.reading.arguments import add_study_name, find_study
from knobscope.stages.plan.search_space import search_space


def _run(args: argparse.Namespace) -> int:
    if args.top is not None and args.top < 1:
        raise UserError(f"--top is {args.top}; expected at least 1")
    specs = load_study(find_study(args.study), args.root, runnable=False)
    case = chosen_case(specs, args.case)
    database = args.database or Path("results") / specs.study.name / "study.duckdb"
    ranking, doubt = ranked_knobs(database, specs, case)
    space = search_space(specs, case, ranking, args.top, with_durability=args.with_durability)
    if not space.parameters:
        raise UserError(
            "every value but the defaults risks committed data; --with-durability keeps them all the same"
            if space.risky
            else f"no knob of {case.dbms} is varied in {case}; expected one or more under `knobs`"
        )
    write_json(args.out, FORMATS[args.to](space))
    print(f"{args.out}: {', '.join(parameter.name for parameter in space.parameters)}", file=sys.stderr)
    if doubt and args.top is not None:
        why = f"the ranking cannot be trusted, so other knobs may belong to the first {args.top}: {doubt}"
        print(why, file=sys.stderr)
    if space.risky:
        shown = (f"{knob} = {', '.join(map(value_text, values))}" for knob, values in space.risky.items())
        print(f"left out, since they risk committed data: {'; '.join(shown)}", file=sys.stderr)
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "export",
        help="write the knobs that matter as a search space for a tuner",
        description="Write the first K knobs of a study's ranking with ranges, scales, special values and constraints "
        "as JSON: distributions of Optuna, a ConfigSpace for SMAC, or tunable parameters of MLOS. Values that risk "
        "committed data are left out, and a knob with them where only its default remains.",
    )
    add_study_name(parser)
    parser.add_argument("--to", choices=list(FORMATS), required=True, help="the tuner")
    parser.add_argument("--top", type=int, metavar="K", help="so many knobs (default: all that the study varies)")
    parser.add_argument(
        "--with-durability", action="store_true", help="keep values that risk committed data; a tuner will use them"
    )
    parser.add_argument("--case", metavar="DBMS/DEVICE/WORKLOAD", help="whose ranking, where a study has several cases")
    parser.add_argument(
        "--database", type=Path, metavar="FILE", help="the study's DuckDB file (default: results/STUDY/study.duckdb)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON file to write")
    parser.set_defaults(run=_run)
