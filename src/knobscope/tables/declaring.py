"""How a table is declared: a type of its rows, whose keys are the columns.

The annotation of a key holds the Python type, for the type checker, DuckDB's type, and what the column means. A row is
a plain `dict` with these keys; a key that is missing is NULL in the table.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, TypeVar, cast, get_args, get_type_hints


@dataclass(frozen=True)
class SqlType:
    """DuckDB's type of a column."""

    name: str


Text = Annotated[str, SqlType("VARCHAR")]
Count = Annotated[int, SqlType("BIGINT")]
Unsigned = Annotated[int, SqlType("UBIGINT")]
Integer = Annotated[int, SqlType("INTEGER")]
Real = Annotated[float, SqlType("DOUBLE")]
Truth = Annotated[bool, SqlType("BOOLEAN")]
#: Without a time zone; all are UTC. Rows hold them as text (ISO 8601).
Time = Annotated[str, SqlType("TIMESTAMP")]


class CaseColumns(TypedDict, total=False):
    """What a case is in a table."""

    dbms: Annotated[Text, "DBMS, by the name of its spec."]
    device: Annotated[Text, "Device, by the name of its spec."]
    workload: Annotated[Text, "Workload, by the name of its spec."]


class CutColumns(TypedDict, total=False):
    """What power cuts say of a configuration."""

    cuts: Annotated[
        Integer | None,
        "Power cuts while it wrote rows, of a configuration without values that risk committed data. NULL: none.",
    ]
    cuts_lost: Annotated[
        Integer | None, "After how many of them acknowledged rows were gone, or the DBMS did not come back."
    ]
    rows_lost: Annotated[
        Integer | None,
        "Acknowledged rows that were gone after one of them, at most. NULL where the DBMS did not come back after one.",
    ]
    default_cuts_lost: Annotated[
        Integer | None,
        "`cuts_lost` of the default configuration, cut as often. NULL where this one lost nothing.",
    ]
    loses_more: Annotated[
        Truth | None,
        "Whether it loses more rows than the default configuration, beyond chance (one-sided Mann-Whitney test, 5 %).",
    ]
    uncut: Annotated[Text | None, "Why no power was cut, or not as often as asked for."]


class RunColumns(TypedDict, total=False):
    """What every table about single runs begins with."""

    run_id: Annotated[Text, "The run, as in `runs`."]


@dataclass(frozen=True)
class Column:
    """A column of a table: name, DuckDB type, and what it means."""

    name: str
    type: str
    meaning: str

    @property
    def unit(self) -> str:
        """The unit, which the end of the name tells; empty for texts, counts and plain numbers."""
        return next((unit for end, unit in _UNITS.items() if f"_{self.name}".endswith(end)), "")


#: End of a column's name -> unit. Earlier ones win.
_UNITS = {
    "_per_minute": "1/min",
    "_per_s": "1/s",
    "_ops": "operations/s",
    "_iops": "requests/s",
    "_rate": "1/s",
    "_us": "µs",
    "_ns": "ns",
    "_s": "s",
    "bytes": "bytes",
    "_share": "0 to 1",
}


def columns_of(row: type) -> dict[str, Column]:
    """Return the columns that a type of rows declares, by name, in their order."""
    return {name: _column(name, hint) for name, hint in get_type_hints(row, include_extras=True).items()}


Row = TypeVar("Row")


def empty_row(row: type[Row]) -> Row:
    """Return a row with NULL in all columns of a type of rows but `run_id`."""
    return cast(Row, {name: None for name in row.__annotations__ if name != "run_id"})


def select_columns(row: type[Row], names: Iterable[str], values: Mapping[str, object]) -> Row:
    """Return a row with these columns, out of a mapping that has them and more."""
    return cast(Row, {name: values[name] for name in names})


def _column(name: str, hint: Any) -> Column:
    kinds = [note.name for note in notes_of(hint) if isinstance(note, SqlType)]
    meanings = [note for note in notes_of(hint) if isinstance(note, str)]
    if len(kinds) != 1 or len(meanings) != 1:
        raise TypeError(f"column {name}: expected one type and one meaning, found {kinds} and {meanings}")
    return Column(name, kinds[0], meanings[0])


def notes_of(hint: Any) -> list[object]:
    """Return what annotations of a type and of the types in it say."""
    inner = [note for part in get_args(hint) for note in notes_of(part)]
    return [*getattr(hint, "__metadata__", ()), *inner]
