"""`knobscope prepare`: loads data for every load-time setting that a plan needs."""

import argparse
import json
import sys
import time
from pathlib import Path

from knobscope.devices import open_device, open_locked
from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.processes import follow_pipeline
from knobscope.specs import Dbms, Study, Value, find_case, load_study, parse_case, split_kernel, with_filesystem
from knobscope.specs.checks.check import find_version_misfits
from knobscope.specs.reading.arguments import add_case_argument, add_study_arguments
from knobscope.stages.prepare.room import DiskRoom
from knobscope.stages.prepare.snapshot import SnapshotFailedError, prepare_snapshot, remove_leftovers
from knobscope.tables import read_table


def load_values_of(dbms: Dbms, configuration: dict[str, Value]) -> dict[str, Value]:
    """Return the part of a configuration that takes effect when data is loaded."""
    return {name: value for name, value in configuration.items() if dbms.knobs[name].apply == "load"}


def _run(args: argparse.Namespace) -> int:
    follow_pipeline()
    case = parse_case(args.case)
    specs = load_study(args.study, args.root, runnable={case.dbms, case.device}, ask_versions=True)
    find_case(specs, args.case)
    dbms, workload = specs.dbms[case.dbms], specs.workloads[case.workload]
    plan = read_table([args.plan]).drop_duplicates("load_id")
    snapshots, rooms = {}, dict[Path, DiskRoom]()
    with open_locked([specs.devices[case.device]], args.root, specs.study.name):
        for number, row in enumerate(plan.itertuples(), start=1):
            values = load_values_of(dbms, json.loads(str(row.configuration)))
            shown = " ".join(f"{name}={value}" for name, value in values.items()) or "defaults"
            begin = time.monotonic()
            filesystem = split_kernel(values)[0].get("filesystem", {})
            variant = with_filesystem(specs.devices[case.device], filesystem)
            try:
                with open_device(variant, args.root, specs.study.name) as opened:
                    remove_leftovers(opened.directory)
                    study, results = specs.study, args.root / "results" / specs.study.name
                    of_directory = DiskRoom(study.name, study.budget.disk_gb, opened.directory, results)
                    room = rooms.setdefault(opened.directory, of_directory)  # which knows what it has to keep
                    snapshot = prepare_snapshot(
                        dbms, workload, values, opened.directory, specs.generators.get(workload.generator), room
                    )
                _check_version(specs.study, dbms, snapshot.version)
                snapshots[str(row.load_id)] = {"directory": str(snapshot.directory), "version": snapshot.version}
                outcome = f"ready ({time.monotonic() - begin:.1f} s)"
            except SnapshotFailedError as error:
                snapshots[str(row.load_id)] = {"error": str(error), "log_tail": error.log_tail}
                outcome = f"refused: {error}"
            print(f"prepare {case}: {number}/{len(plan)} {shown}: {outcome}", file=sys.stderr, flush=True)
    write_sealed(args.out, snapshots)
    return 0


def _check_version(study: Study, dbms: Dbms, version: str) -> None:
    """Raise UserError for what a study asks of another version than the one that answered after loading."""
    for location, limits in find_version_misfits(study, dbms, version):
        shown = ".".join(map(str, location))
        raise UserError(f"study {study.name}: {shown}: found {dbms.name} {version}, expected {limits}")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "prepare",
        help="load data once per load-time setting",
        description="Initialise and load a data directory for every load-time setting that a plan needs. What is there "
        "already stays. A setting that the DBMS refuses is recorded; its runs will say so.",
    )
    add_study_arguments(parser)
    add_case_argument(parser)
    parser.add_argument("--plan", type=Path, required=True, help="table `plan` of the round (parquet)")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write: load id -> snapshot")
    parser.set_defaults(run=_run)
