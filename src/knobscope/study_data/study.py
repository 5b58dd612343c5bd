"""The tables of a study as a report reads them: the database is never written to."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from knobscope.durable_files import blame_content
from knobscope.errors import UserError
from knobscope.specs import Case, Knob, StudySpecs
from knobscope.study_data.opening import open_study
from knobscope.study_data.rows import Row, Rows, write_query
from knobscope.tables import fetch_rows
from knobscope.text.formats import list_names

if TYPE_CHECKING:
    import duckdb

TableRow = TypeVar("TableRow")

#: Of more cases than this some are shown: a case takes a quarter of a megabyte, and the page has to open and be sent.
MOST_CASES = 12
_MOST_ANSWERS = 256


class StudyData:
    """Asks the tables of one study; all columns and units as in `knobscope.tables`."""

    def __init__(
        self, connection: "duckdb.DuckDBPyConnection", specs: StudySpecs, requested_cases: Sequence[str] | None = None
    ) -> None:
        self._connection = connection
        self.specs = specs
        self.requested_cases = requested_cases
        self._answers: dict[str, Rows] = {}  # the last ones: findings of one case ask the same of its default runs

    @classmethod
    @contextmanager
    def open(cls, database: Path, specs: StudySpecs, cases: Sequence[str] | None = None) -> Iterator["StudyData"]:
        """Open a study's DuckDB file; `cases` are those to be shown, as DBMS/DEVICE/WORKLOAD (default: the worst).

        UserError: the file is missing, or not a study's database; it is of other specs; the study has no such case.
        """
        with open_study(database) as connection, blame_content(database):
            data = cls(connection, specs, cases)
            data.require_known_names(database)
            names = [str(case) for case in data.measured_cases]
            if unknown := [name for name in cases or () if name not in names]:
                raise UserError(f"{database} has no case {unknown[0]!r}; expected some of {', '.join(names)}")
            yield data

    def require_known_names(self, database: Path) -> None:
        """Raise UserError for what runs have and the specs do not: units, risks and conditions of it are unknown."""
        specs = self.specs
        kinds: dict[str, Mapping[str, object]] = {"DBMS": specs.dbms, "workload": specs.workloads}
        unknown = [
            f"the {kind} {name!r}"
            for kind, known in kinds.items()
            for name in sorted({getattr(case, kind.lower()) for case in self.measured_cases} - known.keys())
        ]
        unknown += [
            f"the knob {row['knob']!r} of {row['dbms']}"
            for row in self.rows("SELECT DISTINCT dbms, knob FROM knob_values ORDER BY ALL")
            if row["dbms"] in specs.dbms and row["knob"] not in specs.dbms[row["dbms"]].knobs
        ]
        if unknown:
            raise UserError(
                f"{database}: found runs of {list_names(unknown)}; expected names that the specs of study "
                f"{specs.study.name} have. If they were renamed or removed since, change them back, or call "
                "`snakemake`, which makes the database anew"
            )

    def rows(self, query: str, *parameters: object) -> Rows:
        """Return the rows of a query, each as column -> value, with that query."""
        text = write_query(query, parameters)
        if text not in self._answers:
            rows = fetch_rows(self._connection.execute(query, list(parameters)))
            self._answers[text] = Rows(map(without_nan, rows), text)
            if len(self._answers) > _MOST_ANSWERS:
                del self._answers[next(iter(self._answers))]
        return Rows(self._answers[text], text)

    def table(self, kind: type[TableRow], query: str, *parameters: object) -> list[TableRow]:
        """Return the rows of a query that asks for whole rows of a table, which `kind` declares."""
        return cast("list[TableRow]", self.rows(query, *parameters))

    def of_case(self, table: str, case: Case, order: str) -> Rows:
        """Return the rows of a table that belong to a case."""
        query = f"SELECT * FROM {table} WHERE dbms = ? AND device = ? AND workload = ? ORDER BY {order}"  # noqa: S608
        return self.rows(query, *case)

    def value(self, query: str, *parameters: object) -> Any:
        """Return the first column of the first row, or None when there is none."""
        rows = self.rows(query, *parameters)
        return next(iter(rows[0].values())) if rows else None

    @property
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """The database itself, for questions that other stages ask of it."""
        return self._connection

    @cached_property
    def measured_cases(self) -> list[Case]:
        """The cases that have a run: in the order of the study, then those that only the runs know."""
        rows = self.rows("SELECT DISTINCT dbms, device, workload FROM runs")
        measured = {Case.of(row) for row in rows}
        planned = self.specs.cases
        return [*(case for case in planned if case in measured), *sorted(measured - set(planned), key=str)]

    @cached_property
    def shown_cases(self) -> list[Case]:
        """The cases that are shown with pictures: those asked for, else all, or some of many.

        Of many, those with the costliest mismatches.
        """
        if self.requested_cases is not None:
            return [case for case in self.measured_cases if str(case) in self.requested_cases]
        if len(self.measured_cases) <= MOST_CASES:
            return self.measured_cases
        costs = self.rows(
            "SELECT dbms, device, workload, max(coalesce(penalty, 1)) AS cost FROM findings "
            "WHERE verdict = 'mismatch' AND confirmed <> 'no' GROUP BY ALL"
        )
        cost = {Case.of(row): row["cost"] for row in costs}
        worst = sorted(self.measured_cases, key=lambda case: -cost.get(case, 0))[:MOST_CASES]
        return [case for case in self.measured_cases if case in worst]

    @cached_property
    def gone_effects(self) -> frozenset[tuple[str, ...]]:
        """Effects on throughput that did not show again in new runs: DBMS, device, workload, knob and value of each."""
        rows = self.rows(
            "SELECT dbms, device, workload, knob, value FROM what_ifs WHERE is_gone AND other_device IS NULL"
        )
        return frozenset(tuple(row.values()) for row in rows)

    @property
    def is_imported(self) -> bool:
        """Whether others measured the runs: what a table of theirs does not tell, the specs do not know either."""
        return bool(self.value("SELECT count(*) > 0 AND bool_and(starts_with(session, 'imported')) FROM runs"))

    @property
    def missing_cases(self) -> list[Case]:
        """The cases of the study that have no run."""
        measured = self.measured_cases
        return [case for case in self.specs.cases if case not in measured]

    def knob(self, dbms: str, name: str | None) -> Knob | None:
        """Return what the specs know of a knob."""
        spec = self.specs.dbms.get(dbms)
        return spec.knobs.get(name or "") if spec else None


def without_nan(row: Row) -> Row:
    """Return a row with NULL for NaN: both mean that there is no number."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def name_case(case: Case) -> str:
    """Return a case as people say it."""
    return f"{case.dbms} · {case.device} · {case.workload}"
