"""`knobscope judge`: what one profile of one configuration says, without a study."""

import argparse
import json
import sys
from pathlib import Path
from typing import Literal

from pydantic import Field

from knobscope.document_part import Part
from knobscope.documents import add_json_argument, write_document
from knobscope.errors import UserError
from knobscope.specs.reading.source import read_text
from knobscope.stages.detect import WatchedProfile, has_other_unit, judge_profile
from knobscope.tables import DeviceProfile, check_document, read_document

#: A row per operation and tenth of a second: that of a day has 300 MB.
_MOST_BYTES = 1 << 30
_EXPECTED = "a profile that `knobscope watch --json` wrote"


class Judgement(Part):
    """The answer of one rule."""

    rule: str
    verdict: Literal["mismatch", "none", "insufficient"]
    sentence: str


class JudgeDocument(Part):
    """What `knobscope judge` writes."""

    findings: list[Judgement] = Field(description="One for each rule that needs no study.")


def _run(args: argparse.Namespace) -> int:
    if not args.watched.is_file():
        raise UserError(f"no file {args.watched}; expected {_EXPECTED}")
    try:
        content = json.loads(read_text(args.watched, _EXPECTED, _MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{args.watched}: {error}; expected {_EXPECTED}") from error
    if not args.profile.is_file():
        raise UserError(f"no file {args.profile}; expected a profile of the device that `knobscope characterise` wrote")
    device = read_document(args.profile, DeviceProfile)
    try:
        profile = check_document(WatchedProfile, content, _EXPECTED)
        findings = judge_profile(profile, device)
    except UserError as error:
        raise UserError(f"{args.watched}: {error}") from error
    answers = [{key: row[key] for key in ("rule", "verdict", "sentence")} for row in findings]
    is_printed = write_document(args, {"findings": answers})
    for row in [] if is_printed else findings:
        print(f"{row['rule']}: {row['verdict']}: {row['sentence']}")
    if has_other_unit(profile, device):
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
    add_json_argument(parser, JudgeDocument)
    parser.set_defaults(run=_run)
