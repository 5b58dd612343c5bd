"""Arguments that the commands of all stages share."""

import argparse
from pathlib import Path

from knobscope.errors import UserError

__all__ = ["add_case_argument", "add_study_arguments", "add_study_name", "find_dbms", "find_study"]


def add_study_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--study`` and ``--root``."""
    parser.add_argument("--study", type=Path, required=True, help="study YAML")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")


def add_case_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--case``."""
    parser.add_argument("--case", required=True, metavar="DBMS/DEVICE/WORKLOAD", help="which case of the study")


def add_study_name(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument STUDY, which `find_study` understands, and ``--root``."""
    parser.add_argument("study", metavar="STUDY", help="study YAML, or its name in specs/studies")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")


def find_study(text: str) -> Path:
    """Return the file of a study that is given by path or by name. UserError: there is none."""
    named = Path("specs/studies") / f"{text}.yaml"
    if Path(text).is_file() or not named.is_file():
        if text.endswith(".yaml"):
            return Path(text)  # reading it says what is wrong with it
        have = ", ".join(sorted(path.stem for path in named.parent.glob("*.yaml"))) or "none"
        raise UserError(f"no study {text!r}; expected a YAML file, or one of those in specs/studies: {have}")
    return named


def find_dbms(text: str, root: Path) -> Path:
    """Return the DBMS spec that is given by path or by name. UserError: there is none."""
    folder = root / "specs/dbms"
    path = Path(text) if text.endswith(".yaml") else folder / f"{text}.yaml"
    if not path.is_file():
        have = ", ".join(sorted(one.stem for one in folder.glob("*.yaml"))) or "none"
        raise UserError(f"no DBMS {text!r}; expected a YAML file, or one of those in {folder}: {have}")
    return path
