"""A CSV table of results as settings and response: what `rank`, `replay` and `trend` read."""

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from knobscope.errors import UserError
from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.response import read_response
from knobscope.storage import write_json

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Table",
    "add_jobs_argument",
    "add_table_parser",
    "read_frame",
    "read_table",
    "response_name",
    "write_result",
]


@dataclass(frozen=True)
class Table:
    """Rows of a table: settings (all factors) and the response, its logarithm if that was asked for.

    `attempted` are the settings of all rows, also of those that failed (marked in `failed`) and are in nothing else.
    """

    settings: Settings
    response: Floats
    attempted: Settings
    failed: NDArray[np.bool_]


def add_table_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, summary: str, description: str
) -> argparse.ArgumentParser:
    """Add a command on a table, with the arguments that say which columns of which table to read."""
    parser = subparsers.add_parser(name, help=summary, description=description)
    _add_table_arguments(parser)
    return parser


def _add_table_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", type=Path, metavar="TABLE.csv", help="one row per run, one column per knob")
    parser.add_argument("--response", required=True, metavar="COL", help="the measured column, for example throughput")
    parser.add_argument("--factors", metavar="A,B", help="the knob columns (default: all others)")
    parser.add_argument("--ignore", metavar="A,B", help="columns that are neither knob nor response")
    parser.add_argument("--log", action="store_true", help="model the logarithm of the response")
    parser.add_argument(
        "--failed-value",
        action="append",
        type=float,
        default=[],
        metavar="X",
        help="a response that stands for a failed run, such as 0; such rows are left out (may be repeated)",
    )
    parser.add_argument(
        "--json",
        metavar="OUT",
        help="also write the document (docs/schemas) here; -: on standard output, instead of the table",
    )


def add_jobs_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--jobs`."""
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="processes (default: as many as cores, %(default)s)")


def response_name(args: argparse.Namespace) -> str:
    """Return what the figures of the response are called in a table's head."""
    return f"ln({args.response})" if args.log else str(args.response)


def write_result(args: argparse.Namespace, document: dict[str, Any], text: str) -> int:
    """Print the text and write the document as `--json` says; returns the exit code."""
    if args.json == "-":
        print(json.dumps(document, indent=1))
        return 0
    if args.json:
        write_json(Path(args.json), document)
    print(text)
    return 0


def read_frame(path: Path) -> "pd.DataFrame":
    """Read a CSV with header. UserError: no such file, or not a table."""
    import pandas as pd

    if not path.is_file():
        raise UserError(f"no file {path}; expected a CSV table with a header line")
    try:
        frame = pd.read_csv(path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a CSV table with a header line: {error}") from error
    if frame.empty:
        raise UserError(f"{path} has no rows below its header")
    return frame


def read_table(args: argparse.Namespace) -> Table:
    """Read the table that the arguments name. UserError: missing file or columns, values that are no numbers."""
    frame = read_frame(args.table)
    if args.response not in frame.columns:
        columns = ", ".join(map(str, frame.columns))
        raise UserError(f"{args.table} has no column {args.response!r}; its columns are {columns}")
    failed = frame[args.response].isin(args.failed_value).to_numpy()
    if failed.all():
        raise UserError(f"every row of {args.table} has a failed value in {args.response!r}")
    if failed.any():
        print(f"{failed.sum()} rows with a failed value are left out", file=sys.stderr)
    kept = frame[~failed]
    factors = _factors(kept, args.response, _names(args.factors), _names(args.ignore))
    response = read_response(kept, args.response, args.log)
    return Table(Settings.from_frame(kept, factors), response, Settings.from_frame(frame, factors), failed)


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] if text else None


def _factors(frame: "pd.DataFrame", response: str, named: list[str] | None, ignored: list[str] | None) -> list[str]:
    """Return the named columns, or all others but row numbers and columns with a single value (said on stderr)."""
    columns = [str(column) for column in frame.columns]
    if missing := [name for name in (named or []) + (ignored or []) if name not in columns]:
        raise UserError(f"no columns {', '.join(missing)}; the table has {', '.join(columns)}")
    if named is not None:
        if response in named:
            raise UserError(f"{response!r} is the response and cannot be a factor")
        return named
    wanted = [name for name in columns if name != response and name not in (ignored or [])]
    # A column without a name is what pandas and R write for row numbers.
    skipped = [name for name in wanted if name.startswith("Unnamed:") or frame[name].nunique() < 2]
    if skipped:
        print(f"not used as knobs (row number or a single value): {', '.join(skipped)}", file=sys.stderr)
    if not (factors := [name for name in wanted if name not in skipped]):
        raise UserError(f"no column with two or more values besides {response!r}: nothing to vary")
    return factors
