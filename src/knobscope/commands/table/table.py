"""A CSV table of results as settings and response: what `rank`, `replay` and `trend` read."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knobscope.cells import Problems, TextTable, read_text_table
from knobscope.commands.table.columns import Spelling, read_columns
from knobscope.documents import add_json_argument
from knobscope.errors import UserError
from knobscope.processes import usable_cores
from knobscope.specs import suggest
from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.response import read_response
from knobscope.statistics.suspicion import find_failure_code, refuse_measured, refuse_outcomes

if TYPE_CHECKING:
    import pandas as pd


#: Seeds are below this: libraries take 32 bits, and some draws count on from there.
_SEEDS = 1 << 31


@dataclass(frozen=True)
class Table:
    """Rows of a table: settings (all factors) and the response, its logarithm if that was asked for.

    `attempted` are the settings of all rows, also of those that failed (marked in `failed`) and are in nothing else.
    """

    settings: Settings
    response: Floats
    raw: Floats  # the response as it is in the table
    attempted: Settings
    failed: NDArray[np.bool_]
    doubt: str | None  # why some of the response may be no measurement


def add_table_parser(
    subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    document: type,
    summary: str,
    description: str,
) -> argparse.ArgumentParser:
    """Add a command on a table, with the arguments that say which columns of which table to read."""
    parser = subparsers.add_parser(name, help=summary, description=description)
    _add_table_arguments(parser, document)
    return parser


def _add_table_arguments(parser: argparse.ArgumentParser, document: type) -> None:
    parser.add_argument("table", type=Path, metavar="TABLE.csv", help="one row per run, one column per knob")
    parser.add_argument("--response", required=True, metavar="COL", help="the measured column, for example throughput")
    parser.add_argument("--factors", metavar="A,B", help="the knob columns (default: all others)")
    parser.add_argument("--ignore", metavar="A,B", help="columns that are neither knob nor response")
    parser.add_argument("--log", action="store_true", help="model the logarithm of the response")
    parser.add_argument(
        "--failed-value",
        action="append",
        default=[],
        metavar="X",
        help="a number or word in the response that stands for a failed run, such as 0, or COL=X where another column "
        "says which runs failed; such rows are left out, as are those with TIMEOUT, ERR, NaN or nothing (may be "
        "repeated)",
    )
    parser.add_argument(
        "--decimal", choices=[".", ","], help="what separates decimals, where a column leaves it open (1,234)"
    )
    parser.add_argument(
        "--value",
        action="append",
        default=[],
        metavar="COL:WORD=X",
        help="what a word in a column of numbers stands for, as cache:default=64MB (may be repeated)",
    )
    parser.add_argument("--category", metavar="A,B", help="knob columns of words, though some of them are numbers")
    add_json_argument(parser, document, may_be_file=True)


def add_jobs_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--jobs`."""
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="processes (default: as many as cores)")


def read_seed(text: str) -> int:
    """Return a seed that all libraries take, for `argparse`."""
    if not text.isascii() or not text.isdigit() or int(text) >= _SEEDS:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 0 to {_SEEDS - 1}")
    return int(text)


def response_name(args: argparse.Namespace) -> str:
    """Return what the figures of the response are called in a table's head."""
    return f"ln({args.response})" if args.log else str(args.response)


def read_table(args: argparse.Namespace, *, may_be_flat: bool = False) -> Table:
    """Read the table that the arguments name, and say on stderr how. UserError: what cannot be read, by line.

    A response that never changes is refused unless it `may_be_flat`.
    """
    table = _open_table(args.table)
    named, ignored, categories = _names(args.factors), _names(args.ignore), _names(args.category)
    _check_names(table, args.response, {"--factors": named, "--ignore": ignored, "--category": categories})
    broken, outcomes, failed_values = table.rows_failed(args.failed_value, args.response)
    factors = named or _other_columns(table, args.response, [*ignored, *outcomes])
    if not named:
        refuse_outcomes({name: table.columns[name].counts() for name in factors})
    spelling = Spelling(args.decimal, _values(args.value, factors), tuple(categories))
    frame, failed = read_columns(table, args.response, factors, spelling, failed_values)
    failed |= broken
    successful = frame[~failed]
    _check_response(args, successful[args.response], may_be_flat=may_be_flat)
    if not named:
        refuse_measured(successful, args.response, factors, known_knobs=[getattr(args, "factor", "")])
    doubt = find_failure_code(successful[args.response].to_numpy(float), some_failed=bool(failed.any()))
    if doubt is not None:
        print(f"{args.response}: {doubt}", file=sys.stderr)
    response = read_response(successful, args.response, args.log)
    settings, attempted = (Settings.from_frame(rows, factors, categories=categories) for rows in (successful, frame))
    return Table(settings, response, successful[args.response].to_numpy(float), attempted, failed, doubt)


def _open_table(path: Path) -> TextTable:
    if not path.is_file():
        raise UserError(f"no file {path}; expected a CSV table with a header line")
    problems = Problems()
    table = read_text_table(path, problems)
    if table is not None and not len(table):
        problems.add_column(path, "", "a header and no rows", "a row per run")
    problems.raise_if_any()
    assert table is not None  # noqa: S101 - that would be a problem
    return table


def _check_response(args: argparse.Namespace, response: "pd.Series[float]", *, may_be_flat: bool) -> None:
    """Raise UserError for a response that nothing can be said of, with the reason."""
    if response.empty:
        raise UserError(f"every row of {args.table} has a failed value in {args.response!r}")
    if response.nunique() == 1 and not may_be_flat:
        raise UserError(
            f"{args.response!r} is {response.iloc[0]:g} in all {len(response)} rows that did not fail: a response that "
            "never changes depends on no knob"
        )
    if args.log and (response < 0).all():
        raise UserError(
            f"every value of {args.response!r} is negative ({response.min():g} to {response.max():g}), as costs are "
            "that a tuner maximises: leave --log out, or change their sign"
        )


def _names(text: str | None) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))


def _check_names(table: TextTable, response: str, named: Mapping[str, Sequence[str]]) -> None:
    """Raise UserError for columns that the command line names and the table lacks, or that it calls two things."""
    wanted = [("--response", response), *((option, name) for option, names in named.items() for name in names)]
    problems = [
        f"{option}: found no column {name!r} in {table.path}; expected {suggest(name, list(table.columns))}"
        for option, name in wanted
        if name not in table.columns
    ]
    problems += [
        f"{option}: found {name!r}, which is the response; expected other columns"
        for option, name in wanted[1:]
        if name == response
    ]
    problems += [
        f"--ignore: found {name!r}, which --factors names as a knob; expected it in one of them"
        for name in named["--ignore"]
        if name in named["--factors"]
    ]
    if problems:
        raise UserError("\n".join(problems))


def _values(texts: list[str], factors: list[str]) -> dict[str, dict[str, str]]:
    """Return column -> word -> value, of texts COLUMN:WORD=VALUE."""
    values: dict[str, dict[str, str]] = {}
    for text in texts:
        name = next(
            (factor for factor in sorted(factors, key=len, reverse=True) if text.startswith(f"{factor}:")), None
        )
        word, equals, value = text.removeprefix(f"{name}:").partition("=")
        if name is None or not equals:
            raise UserError(f"--value is {text!r}; expected COLUMN:WORD=VALUE with one of {', '.join(factors)}")
        values.setdefault(name, {})[word.strip()] = value.strip()
    return values


def _other_columns(table: TextTable, response: str, ignored: list[str]) -> list[str]:
    """Return all columns that may be knobs: not row numbers, nor columns with a single value (said on stderr)."""
    wanted = [name for name in table.columns if name != response and name not in ignored]
    # A column without a name is what pandas and R write for row numbers.
    skipped = [name for name in wanted if name.startswith("Unnamed:") or len(table.columns[name].texts) < 2]
    if skipped:
        print(f"not used as knobs (row number or a single value): {', '.join(skipped)}", file=sys.stderr)
    if not (factors := [name for name in wanted if name not in skipped]):
        raise UserError(f"no column with two or more values besides {response!r}: nothing to vary")
    return factors
