"""`knobscope reinforce`: says whether the sweep of a case needs more blocks, and for which values."""

import argparse
import sys
from pathlib import Path

from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.specs import find_case, load_study
from knobscope.specs.reading.arguments import add_case_argument, add_study_arguments, read_round
from knobscope.stages.plan import aim_of, describe_aim, sweep_references, value_configurations
from knobscope.stages.reinforce.decision import decide
from knobscope.tables import read_table


def _run(args: argparse.Namespace) -> int:
    specs = load_study(args.study, args.root, runnable=False)
    case = find_case(specs, args.case)
    sweep = specs.study.sweep
    if sweep.most is None:
        raise UserError(f"{args.study} says nothing under `sweep.most`, so that its sweep is not repeated")
    plan = read_table(args.plans)
    plan = plan[plan["is_sentinel"] | plan["config_id"].isin(value_configurations(specs, case))]
    runs = read_table([directory / "runs.parquet" for directory in args.runs])
    aim = aim_of(specs, plan.loc[~plan["is_sentinel"], "config_id"].nunique())
    decision = decide(plan, runs, aim, sweep.repeats, sweep.most, sweep_references(specs, case))
    write_sealed(args.out, {"round": args.round, **decision})
    verdict = "stop" if decision["done"] else "go on"
    summary = f"{verdict} after {decision['blocks']} blocks: {decision['reason']} ({describe_aim(specs, aim)})"
    print(f"reinforce {case} round {args.round}: {summary}", file=sys.stderr)
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "reinforce",
        help="say whether the sweep needs more blocks, and for which values",
        description="Say from the noise of a case's sweep which values would still hide an effect of the size that the "
        "study asks for (`sweep.effect`), and how many blocks more they need, up to `sweep.most`. What the effects are "
        "is not looked at, so that repeating raises no false alarms.",
    )
    add_study_arguments(parser)
    add_case_argument(parser)
    parser.add_argument("--round", type=read_round, default=0, help="round of the sweep that is done, from 0")
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="block directories of the sweep so far")
    parser.add_argument("--plans", type=Path, nargs="+", required=True, help="plans of the sweep so far (parquet)")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.set_defaults(run=_run)
