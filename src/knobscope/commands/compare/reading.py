"""Reads what a comparison needs from a study's database, also from one that an earlier version of knobscope wrote."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knobscope.errors import UserError
from knobscope.specs import Case
from knobscope.specs.reading.arguments import find_results
from knobscope.study_data.opening import open_study
from knobscope.study_data.study import without_nan
from knobscope.tables import TABLES, fetch_limited
from knobscope.thread_classes import SESSION

if TYPE_CHECKING:
    import duckdb

Row = dict[str, Any]

#: Metrics that are compared: columns of `runs`, and values of `effects.metric`.
METRICS = ("throughput_ops", "latency_p95_us")
#: Waits of threads that serve clients, in runs of the default configuration.
_OF_SESSIONS = f"WHERE thread_class = '{SESSION}' AND run_id IN (SELECT run_id FROM runs WHERE is_sentinel)"  # noqa: S608
#: Table -> what is read of it; a condition keeps large tables small.
_WANTED: dict[str, tuple[tuple[str, ...], str]] = {
    "runs": (
        ("run_id", "study", "dbms", "device", "workload", "block_id", "session", "phase", "is_sentinel", "config_id",
         "status", "started_at", "machine", "dbms_version", "tier", "monitor", "operations", "waits_s",
         *METRICS),
        "",
    ),
    "effects": (tuple(TABLES["effects"]), f"WHERE metric IN {METRICS}"),
    "waits": (("run_id", "thread_class", "reason", "time_us", "through_us"), _OF_SESSIONS),
    "wait_chains": (("run_id", "thread_class", "via_class", "reason", "time_us"), _OF_SESSIONS),
    "blocks": (tuple(TABLES["blocks"]), ""),
    "knob_values": (("config_id", "dbms", "knob", "value"),
                    "WHERE config_id IN (SELECT config_id FROM runs WHERE is_sentinel)"),
    "device_profile": (tuple(TABLES["device_profile"]), ""),
    "cases": (tuple(TABLES["cases"]), ""),
    "importance": (tuple(TABLES["importance"]), ""),
    "fits": (tuple(TABLES["fits"]), ""),
    "important_points": (tuple(TABLES["important_points"]), ""),
    "findings": (tuple(TABLES["findings"]), ""),
    "setup": (tuple(TABLES["setup"]), ""),
}  # fmt: skip


@dataclass(frozen=True)
class StudyTables:
    """One of the two studies: rows by table as in `knobscope.tables`; `missing` are tables that its database lacks.

    A column that the database lacks is None in every row.
    """

    letter: str  # A or B
    database: Path
    rows: dict[str, list[Row]]
    missing: list[str]

    @property
    def name(self) -> str:
        """Name of the study, as its runs tell it."""
        return next((str(run["study"]) for run in self.rows["runs"] if run["study"]), self.database.parent.name)

    @cached_property
    def cases(self) -> list[Case]:
        """The cases that have a run, in the order of their names."""
        return sorted({Case(run["dbms"], run["device"], run["workload"]) for run in self.rows["runs"]}, key=str)

    @cached_property
    def is_imported(self) -> bool:
        """Whether others measured the runs, so that the specs of workload and device are made up."""
        return all(str(run["session"]).startswith("imported") for run in self.rows["runs"])

    def of_case(self, table: str, case: Case) -> list[Row]:
        """Return the rows of a table that belong to a case."""
        return [row for row in self.rows[table] if (row["dbms"], row["device"], row["workload"]) == case_names(case)]


def case_names(case: Case) -> tuple[str, str, str]:
    """Return the names of a case."""
    return case.dbms, case.device, case.workload


def find_database(text: str) -> Path:
    """Return the database of a study that is given as results folder, DuckDB file, study spec or name.

    UserError: there is none.
    """
    is_database = Path(text).is_file() and not text.endswith(".yaml")
    return Path(text) if is_database else find_results(text, "study.duckdb")


def read_study(letter: str, database: Path) -> StudyTables:
    """Read the tables of a study, which is not written to. UserError: the file is damaged, or no study's database."""
    with open_study(database) as connection:
        return _read(letter, database, connection)


def _read(letter: str, database: Path, connection: "duckdb.DuckDBPyConnection") -> StudyTables:
    present: dict[str, set[str]] = {}
    for table, column in connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = current_database()"
    ).fetchall():
        present.setdefault(table, set()).add(column)
    rows = {
        table: _select(connection, table, columns, condition, present[table]) if table in present else []
        for table, (columns, condition) in _WANTED.items()
    }
    if not rows["runs"]:
        raise UserError(f"{database}: found no run in table `runs`; expected a study that has been measured")
    return StudyTables(letter, database, rows, [table for table in _WANTED if table not in present])


def _select(
    connection: "duckdb.DuckDBPyConnection", table: str, columns: Sequence[str], condition: str, present: set[str]
) -> list[Row]:
    named = [name for name in columns if name in present]
    select_list = ", ".join(f'"{name}"' for name in named)
    rows = fetch_limited(connection.execute(f'SELECT {select_list} FROM "{table}" {condition}'))  # noqa: S608
    absent = dict.fromkeys(name for name in columns if name not in present)
    return [{**absent, **dict(zip(named, map(without_nan, row), strict=True))} for row in rows]
