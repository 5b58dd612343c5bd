"""Arguments that the commands of all stages share."""

import argparse
import re
from difflib import get_close_matches
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs.reading.base import check_name

#: So many names are listed on a line.
_MOST_NAMES = 12


def add_study_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--study`` and ``--root``."""
    parser.add_argument("--study", type=Path, required=True, help="study YAML")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")


def add_measured_study(parser: argparse.ArgumentParser) -> None:
    """Add STUDY, ``--study`` and ``--root``, of which `choose_study` makes one file."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="STUDY",
        help="a study by its YAML or its name in specs/studies; what is not given below is read from its results, and "
        "what is written goes into the current directory",
    )
    parser.add_argument("--study", type=Path, help="study YAML, instead of STUDY")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")


def choose_study(args: argparse.Namespace) -> Path:
    """Return the study's file. UserError: it is given twice, or not at all."""
    if (args.name is None) == (args.study is None):
        raise UserError("expected the study once: as STUDY or as --study")
    return Path(args.study) if args.name is None else find_study(args.name)


def list_results(study: str, *patterns: str, may_be_none: bool = False) -> list[Path]:
    """Return the files in a study's results that match one of the patterns. UserError: there are none, and must be."""
    folder = Path("results") / study
    found = (path for pattern in patterns for path in folder.glob(pattern))
    files = sorted(path for path in found if not _is_set_aside(path.relative_to(folder)))
    if not files and not may_be_none:
        raise UserError(f"{folder}: found no {' or '.join(patterns)} in it; expected the results of study {study}")
    return files


def _is_set_aside(path: Path) -> bool:
    """Whether a path is that of a damaged output, or of a block that was measured again, or in one."""
    return any(re.search(r"\.damaged[0-9]*$", part) or part.startswith(".") for part in path.parts)


def read_round(text: str) -> int:
    """Return the number of a round, for `argparse`."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 0 on")
    return int(text)


def add_case_argument(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    """Add ``--case``."""
    parser.add_argument("--case", required=is_required, metavar="DBMS/DEVICE/WORKLOAD", help="which case of the study")


def add_study_name(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument STUDY, which `find_study` understands, and ``--root``."""
    parser.add_argument("study", metavar="STUDY", help="study YAML, or its name in specs/studies")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")


def find_study(text: str) -> Path:
    """Return the file of a study that is given by path or by name, or was imported. UserError: there is none."""
    folders = [Path("specs/studies"), Path("results") / text / "specs/studies"]
    return find_spec("study", text, next((one for one in folders if (one / f"{text}.yaml").is_file()), folders[0]))


def find_spec(kind: str, text: str, folder: Path) -> Path:
    """Return the file of a spec that is given as a YAML file or by its name in a folder. UserError: there is none."""
    path = Path(text) if text.endswith(".yaml") else folder / f"{text}.yaml"
    if not path.is_file():
        raise UserError(f"no {kind} {text!r}; expected a YAML file, or {_name_some(text, folder)}")
    return path


def _name_some(text: str, folder: Path) -> str:
    """Return what a name in a folder may have been: all there are, or the nearest of many."""
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if len(names) <= _MOST_NAMES:
        return f"one of those in {folder}: {', '.join(names) or 'none'}"
    near = get_close_matches(text, names, n=3) or [name for name in names if text in name][:3]
    guess = f": {' or '.join(near)} (did you mean that?)" if near else ""
    return f"one of the {len(names)} in {folder}{guess}"


def find_results(text: str, content: str) -> Path:
    """Return a file or directory of a study's results: the study is given by their folder, its YAML file or its name.

    UserError: there are no results, or `content` is not among them.
    """
    results = Path("results")
    folders = [Path(text), results / Path(text).stem if text.endswith(".yaml") else results / text]
    existing = [folder for folder in folders if folder.is_dir()]
    for folder in existing:
        if (folder / content).exists():
            return folder / content
    have = ", ".join(sorted(path.parent.name for path in results.glob(f"*/{content}"))) or "none"
    problem = f"{existing[0]}: found no {content} in it" if existing else f"no results of a study {text!r}"
    raise UserError(f"{problem}; expected a folder with {content} in it, or one of those in {results}: {have}")


def require_name(option: str, text: str) -> None:
    """Raise UserError unless what an option gives can be the name of a spec."""
    try:
        check_name(text)
    except ValueError as error:
        raise UserError(f"{option} is {text!r}; expected {error}") from error
