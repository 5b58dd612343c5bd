"""`knobscope judge`: what one profile of one configuration says, without a study."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from knobscope.errors import UserError
from knobscope.specs import Rule, StudySpecs, read_shipped_rule
from knobscope.specs.models.study import Study
from knobscope.specs.reading.source import read_text
from knobscope.stages.detect.database import create_schema
from knobscope.stages.detect.rules import run_rules
from knobscope.storage import read_sealed
from knobscope.tables import insert_rows

__all__ = ["add_parser", "judge_profile"]

#: Rules that look at one configuration.
_RULES = ("default_profile",)
#: Columns of `runs` that a profile has, under their names.
_FACTS = ("monitor", "lost_events", "unattributed_share", "machine_cpu_share")
#: Tables that a profile may hold, under their names.
_TABLES = ("io_profile", "io_latency", "io_modes", "queue_depth")


def judge_profile(profile: dict[str, Any], device: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings about a profile that `knobscope watch --json` wrote, on a device that was characterised.

    Raises UserError for something other than a profile.
    """
    import duckdb

    missing = [key for key in ("command", "monitor", "duration_s", "io_profile", "queue_depth") if key not in profile]
    if missing:
        raise UserError(f"found no {missing[0]!r}; expected a profile that `knobscope watch --json` wrote")
    command = Path(str(profile["command"][0])).name
    case = {"dbms": command, "device": device["device"], "workload": command}
    run = {
        **case,
        **{name: profile.get(name) for name in _FACTS},
        "run_id": "watched", "block_id": "watched", "phase": "sweep", "status": "ok", "is_sentinel": True,
        "window_s": profile["duration_s"],
    }  # fmt: skip
    with duckdb.connect() as connection:
        create_schema(connection)
        insert_rows(connection, "runs", [run])
        insert_rows(connection, "cases", [{**case, "dedicated": profile.get("scope") == "device"}])
        for table in _TABLES:
            insert_rows(connection, table, [{**row, "run_id": "watched"} for row in profile.get(table) or ()])
        if _has_other_unit(profile, device):  # then nobody knows how many writes fill the device's units in part
            connection.execute("UPDATE io_profile SET aligned_requests = NULL")
        insert_rows(connection, "device_profile", [device])
        curves = [{**point, "device": device["device"]} for point in device.get("curves", [])]
        insert_rows(connection, "device_curve", curves)
        return run_rules(connection, _specs({name: read_shipped_rule(name) for name in _RULES}))


def _has_other_unit(profile: dict[str, Any], device: dict[str, Any]) -> bool:
    """Whether the device stores in another unit than that whose multiples were counted as aligned."""
    unit = device.get("write_unit_bytes")
    return unit is not None and profile.get("unit") != unit


def _specs(rules: dict[str, Rule]) -> StudySpecs:
    """Return the least that rules ask of a study: their thresholds."""
    study = Study(
        name="watched",
        description="one profile",
        dbms=["command"],
        devices=["device"],
        workloads={"command": None},
        knobs={},
        rules=list(rules),
    )
    return StudySpecs(study, {}, {}, {}, rules=rules)


def _run(args: argparse.Namespace) -> int:
    try:
        profile = json.loads(read_text(args.watched))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{args.watched}: {error}; expected a profile that `knobscope watch --json` wrote") from error
    try:
        device = read_sealed(args.profile)
        findings = judge_profile(profile, device)
    except UserError as error:
        raise UserError(f"{args.watched}: {error}") from error
    for row in findings:
        print(f"{row['rule']}: {row['verdict']}: {row['sentence']}")
    if _has_other_unit(profile, device):
        unit = device["write_unit_bytes"]
        print(
            f"knobscope: {device['device']} stores in units of {unit} bytes; how many writes fill them in part, and "
            f"what flushes take for that, shows a profile of `knobscope watch --unit {unit}`",
            file=sys.stderr,
        )
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "judge",
        help="say what share of a device's ability a watched command used, and what held it back",
        description="Judge a profile that `knobscope watch --json` wrote by the rules that need no study: what share "
        "of the device's ability was used, and by what it was held back.",
    )
    parser.add_argument("watched", type=Path, metavar="WATCHED", help="profile of a command (JSON)")
    parser.add_argument(
        "--profile",
        type=Path,
        required=True,
        help="profile of the device (JSON), as `knobscope characterise` writes it",
    )
    parser.set_defaults(run=_run)
