"""The layout of a table of runs: which column is the throughput, what holds in all rows, and which columns are knobs.

A row of a study names the one knob that it changes (columns `knob` and `value`). A row of a *designed* table, such as a
screening sample, has the values of all knobs, each in a column of its own.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from knobscope.cells import Column, Problems, TextTable
from knobscope.commands.importing.columns import CASE_COLUMNS, REQUIRED, RUN_COLUMNS
from knobscope.errors import UserError
from knobscope.statistics.suspicion import refuse_outcomes
from knobscope.text.formats import list_names

_RESPONSE, _FAILED = "throughput_ops", "failed"
_OF_ONE_KNOB = ("knob", "value")


@dataclass(frozen=True)
class Layout:
    """What the command line says of a table's columns."""

    response: str = _RESPONSE
    same: Mapping[str, str] = field(default_factory=dict)  # column that the table lacks -> its value in every row
    ignored: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()  # the knob columns; nothing: all columns that are nothing else
    failed: tuple[str, ...] = ()  # texts of the response that stand for a failed run
    baseline: Mapping[str, str] = field(default_factory=dict)  # knob -> its value in the default configuration

    def apply(self, table: TextTable, problems: Problems) -> tuple[TextTable, list[str]]:
        """Return the table with the columns that runs have, and the names of its knob columns; none: rows name a knob.

        Columns that the command line names and the table lacks, or has twice, are problems.
        """
        for name in (*self.ignored, *self.factors, *([self.response] if self.response != _RESPONSE else [])):
            if name not in table.columns:
                problems.add_column(table.path, name, "no such column", f"one of {', '.join(table.columns)}")
        if self.response != _RESPONSE and _RESPONSE in table.columns and _RESPONSE not in self.ignored:
            problems.add_column(
                table.path, _RESPONSE, f"this column, and --response {self.response}", f"--ignore {_RESPONSE}"
            )
        for name in self.same:
            if name in table.columns:
                problems.add_column(
                    table.path, name, "a column of the table", "--set for columns that it does not have"
                )
        broken, outcomes, failed = table.rows_failed(self.failed, self.response)
        if absent := [text for text in failed if text not in table.columns.get(self.response, Column()).texts]:
            print(f"{self.response}: no run has the failed value {' or '.join(absent)}", file=sys.stderr)
        columns = {
            _RESPONSE if name == self.response else name: column
            for name, column in table.columns.items()
            if name not in (*self.ignored, *outcomes)
        }
        columns |= {name: table.uniform(value) for name, value in self.same.items()}
        if _RESPONSE in columns:
            response = columns[_RESPONSE]
            rows = np.isin(response.codes, [response.texts.index(text) for text in failed if text in response.texts])
            columns[_RESPONSE] = response.replaced(broken | rows, _FAILED) if (broken | rows).any() else response
        knobs = self._knobs(columns)
        used = {*knobs, *_known_of(designed=bool(knobs))}
        return TextTable(table.path, {n: c for n, c in columns.items() if not knobs or n in used}, table.lines), knobs

    def _knobs(self, columns: Mapping[str, Column]) -> list[str]:
        """Return the columns that are knobs, where a row has the values of all; says on stderr what is left out."""
        if self.factors:
            return [name for name in self.factors if name in columns]
        known = _known_of(designed=True)
        others = [name for name in columns if name not in known]
        if any(name in columns for name in _OF_ONE_KNOB) or not others:
            return []
        idle = [name for name in others if name.startswith("Unnamed:") or len(columns[name].texts) < 2]
        if idle:
            print(f"not used as knobs (row number or a single value): {', '.join(idle)}", file=sys.stderr)
        if not (knobs := [name for name in others if name not in idle]):
            found = f"found no knob of two or more values among {list_names(others)}"
            raise UserError(f"{found}; expected one or more, or the columns {' and '.join(_OF_ONE_KNOB)}")
        refuse_outcomes({name: columns[name].counts() for name in knobs})
        return knobs

    @staticmethod
    def required(knobs: list[str]) -> dict[str, str]:
        """Return the columns that a table has to have, and what is expected where one is missing."""
        names = [name for name in REQUIRED if not (knobs and name in _OF_ONE_KNOB)]
        constant = "this column, which is required (--set {}=VALUE where it is the same in all rows)"
        expected = {
            name: constant.format(name) if name in CASE_COLUMNS else "this column, which is required" for name in names
        }
        response = "this column, which is required (--response COLUMN where operations per second have another name)"
        return expected | {_RESPONSE: response}


def _known_of(*, designed: bool) -> set[str]:
    return {*CASE_COLUMNS, *(name for name in RUN_COLUMNS if not (designed and name in _OF_ONE_KNOB))}
