"""Writes tables as CSV that a spreadsheet shows and does not calculate."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: What spreadsheets take for a formula, unless it is a number: at the start of a cell or, where the language of the
#: system separates cells by something other than a comma, behind that. Some languages have these signs in full width.
_FORMULA = re.compile(
    r"(?:\A|(?<=[;\t]))(?![-+][0-9.]+(?:[eE][-+]?[0-9]+)?(?:\Z|[;\t]))[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]+"
)


def to_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as a CSV table with a head; names that a stranger chose are no formulas.

    A text that a spreadsheet would calculate gets an apostrophe before it; numbers stay as they are.
    """
    records = list(rows)
    columns = list(dict.fromkeys(name for row in records for name in row))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(map(_disarm, columns))
    writer.writerows([_disarm(row.get(name)) for name in columns] for row in records)
    return text.getvalue()


def _disarm(cell: Any) -> Any:
    return _FORMULA.sub(r"'\g<0>", cell) if isinstance(cell, str) else cell
