"""`knobscope measure`: carries out one block of runs."""

import argparse
from pathlib import Path

from knobscope.processes import follow_pipeline
from knobscope.specs import find_case, load_study, parse_case
from knobscope.specs.reading.arguments import add_case_argument, add_study_arguments
from knobscope.stages.measure.block import find_stored, measure_block, write_block
from knobscope.stages.measure.opening import open_measurer
from knobscope.stages.measure.progress import BlockProgress, progress_file
from knobscope.stages.measure.store import RunStore
from knobscope.stages.plan import case_space
from knobscope.tables import read_table


def _run(args: argparse.Namespace) -> int:
    follow_pipeline()
    case = parse_case(args.case)
    specs = load_study(args.study, args.root, runnable={case.dbms, case.device})
    find_case(specs, args.case)
    plan = read_table([args.plan])
    plan = plan[plan["block_id"] == f"{case}/{args.block}"]
    results = args.store.parent
    file = progress_file(results, str(case), args.block)
    progress = BlockProgress(f"{case} {args.block}", len(plan), case_space(specs, case).default, file)
    is_traced = specs.study.trace and args.block.startswith("sweep-")
    traces = results / "traces" if is_traced else None
    store, records = RunStore(args.store), None
    if args.prepared is not None:
        records = find_stored(plan, specs, case, args.prepared, store, progress)
    if records is None:
        with open_measurer(specs, case, args.root, args.profile, args.store, progress, traces) as measurer:
            records = measure_block(plan, measurer)
    write_block(records, args.out)
    progress.finish()
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "measure",
        help="carry out one block of runs",
        description="Measure a block of runs on one device, in its planned order. Every finished run is stored at "
        "once; calling it again measures only what is missing. Nothing it starts survives it.",
    )
    add_study_arguments(parser)
    add_case_argument(parser)
    parser.add_argument("--plan", type=Path, required=True, help="table `plan` of the round (parquet)")
    parser.add_argument("--block", required=True, metavar="PHASE-ROUND-NUMBER", help="which block of the plan")
    parser.add_argument(
        "--prepared",
        type=Path,
        help="what `prepare` wrote for the round: a block whose runs are all stored then does not wait for its device",
    )
    parser.add_argument("--profile", type=Path, required=True, help="device profile (JSON)")
    parser.add_argument("--store", type=Path, required=True, help="directory of the run store")
    parser.add_argument(
        "--out", type=Path, required=True, help="directory to write: one parquet file per table with rows"
    )
    parser.set_defaults(run=_run)
