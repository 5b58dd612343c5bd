"""`knobscope tune`: runs tuners on a case, through the same measured runs."""

import argparse
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from knobscope.durable_files import read_sealed
from knobscope.errors import UserError
from knobscope.processes import follow_pipeline
from knobscope.specs import find_case, load_study, parse_case
from knobscope.specs.reading.arguments import add_case_argument, add_study_arguments
from knobscope.stages.measure import BlockProgress, cut_case, open_cutter, open_measurer, write_block
from knobscope.stages.tune.session import count_runs, tune_case
from knobscope.stages.tune.tuner import make_tuners
from knobscope.tables import write_table


def _run(args: argparse.Namespace) -> int:
    follow_pipeline()
    case = parse_case(args.case)
    specs = load_study(args.study, args.root, runnable={case.dbms, case.device})
    find_case(specs, args.case)
    tune = specs.study.tune
    if tune is None:
        raise UserError(f"{args.study} has no section `tune`, which says how often to try what")
    ranking = [entry["knob"] for entry in read_sealed(args.fit)["importance"]]
    tuners = make_tuners(specs, case, tune, ranking)
    for space in dict.fromkeys(tuner.name for tuner in tuners):
        knobs = next(tuner.space for tuner in tuners if tuner.name == space).parameters
        print(f"{case} {space}: {', '.join(knob.name for knob in knobs)}", file=sys.stderr)
    progress = BlockProgress(f"{case} tune", count_runs(case, tune), tuners[0].space.default)
    with ExitStack() as stack:
        measurer = stack.enter_context(open_measurer(specs, case, args.root, args.profile, args.store, progress))
        cut = None
        if tune.cuts and not tune.with_durability:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            cutter = stack.enter_context(open_cutter(args.out.parent))
            cut = partial(cut_case, specs, case, default=tuners[0].space.default, cuts=tune.cuts, cutter=cutter)
        records, plan, trials = tune_case(specs, case, tune, tuners, measurer.measure, cut)
    write_table(args.plan_out, "plan", plan)
    write_block(records, args.out, {"trials": trials})
    progress.finish()
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "tune",
        help="run Optuna on the first knobs of the ranking and on all",
        description="Run the tuners of a study's section `tune` on one case: all of them in turns, with the default "
        "configuration between, and the best of each measured again at the end. Every finished run is stored at once; "
        "calling it again goes on where it stopped.",
    )
    add_study_arguments(parser)
    add_case_argument(parser)
    parser.add_argument("--fit", type=Path, required=True, help="the last fit of the case, whose ranking counts (JSON)")
    parser.add_argument("--profile", type=Path, required=True, help="device profile (JSON)")
    parser.add_argument("--store", type=Path, required=True, help="directory of the run store")
    parser.add_argument("--plan-out", type=Path, required=True, help="table `plan` to write (parquet)")
    parser.add_argument(
        "--out", type=Path, required=True, help="directory to write: one parquet file per table with rows"
    )
    parser.set_defaults(run=_run)
