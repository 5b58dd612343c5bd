"""`knobscope measure`: carries out one block of runs."""

import argparse
import json
import sys
from pathlib import Path
from typing import Literal

from knobscope.devices import device_lock, open_device
from knobscope.measure.block import measure_block, write_block
from knobscope.measure.progress import BlockProgress
from knobscope.measure.run import Bench
from knobscope.measure.store import RunStore
from knobscope.plan import case_space, parse_case
from knobscope.processes import follow_pipeline
from knobscope.specs import load_study
from knobscope.specs.arguments import add_case_argument, add_study_arguments
from knobscope.tables import read_table
from knobscope.watch import open_watch

__all__ = ["add_parser"]


def _run(args: argparse.Namespace) -> int:
    follow_pipeline()
    specs, case = load_study(args.study, args.root), parse_case(args.case)
    study = specs.study
    plan = read_table([args.plan])
    plan = plan[plan["block_id"] == f"{case}/{args.block}"]
    profile = json.loads(args.profile.read_text())
    progress = BlockProgress(f"{case} {args.block}", len(plan), case_space(specs, case).baseline)
    with open_device(specs.devices[case.device], args.root, study.name) as device, device_lock(device.block):
        scope: Literal["device", "process"] = "device" if device.dedicated else "process"
        unit = int(profile["preferred_write_bytes"])
        with open_watch(device.block, unit=unit, scope=scope, prefer=study.monitor) as watch:
            bench = Bench(specs.dbms[case.dbms], specs.workloads[case.workload], device.directory, watch)
            store = RunStore(args.store)
            if watch.reason is not None and not store.knows("monitor_reason", watch.reason):
                print(watch.describe_fallback(), file=sys.stderr)  # once per study, not per block
            records = measure_block(specs, case, plan, bench, profile["tier"], store, progress)
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
    parser.add_argument("--profile", type=Path, required=True, help="device profile (JSON)")
    parser.add_argument("--store", type=Path, required=True, help="directory of the run store")
    parser.add_argument("--out", type=Path, required=True, help="directory to write: one parquet file per table")
    parser.set_defaults(run=_run)
