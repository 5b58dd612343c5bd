"""Reads what a comparison needs from a study's database, also from one that an earlier version of knobscope wrote."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs import Case
from knobscope.specs.reading.arguments import find_results
from knobscope.study_data.opening import open_study
from knobscope.study_data.study import Row, without_nan
from knobscope.tables import fetch_rows
from knobscope.thread_classes import SESSION

#: Metrics that are compared: columns of `runs`, and values of `effects.metric`.
METRICS = ("throughput_ops", "latency_p95_us")
#: Waits of threads that serve clients, in runs of the default configuration.
_OF_SESSIONS = f"WHERE thread_class = '{SESSION}' AND run_id IN (SELECT run_id FROM runs WHERE is_sentinel)"  # noqa: S608
#: Table -> what is read of it; a condition keeps large tables small.
_WANTED = {
    "runs": "SELECT run_id, study, dbms, device, workload, block_id, session, phase, is_sentinel, config_id, status, "
    "started_at, machine, dbms_version, tier, monitor, operations, waits_s, throughput_ops, latency_mean_us, "
    "latency_p95_us FROM runs",
    # An effect on throughput that did not show again in new runs is what chance made of it, in the sweep.
    "effects": "SELECT *, metric = 'throughput_ops' AND EXISTS (FROM what_ifs w WHERE is_gone AND other_device IS NULL "  # noqa: S608
    "AND (w.dbms, w.device, w.workload, w.knob, w.value) = (e.dbms, e.device, e.workload, e.knob, e.value)) AS is_gone "
    f"FROM effects e WHERE metric IN {METRICS}",
    "waits": f"SELECT run_id, thread_class, reason, time_us, through_us FROM waits {_OF_SESSIONS}",  # noqa: S608
    "wait_chains": f"SELECT run_id, thread_class, via_class, reason, time_us FROM wait_chains {_OF_SESSIONS}",  # noqa: S608
    "blocks": "FROM blocks",
    "knob_values": "SELECT config_id, dbms, knob, value FROM knob_values "
    "WHERE config_id IN (SELECT config_id FROM runs WHERE is_sentinel)",
    "device_profile": "FROM device_profile",
    "cases": "FROM cases",
    "importance": "FROM importance",
    "fits": "FROM fits",
    "important_points": "FROM important_points",
    "findings": "FROM findings",
    "setup": "FROM setup",
}


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
        return sorted({Case.of(run) for run in self.rows["runs"]}, key=str)

    @cached_property
    def is_imported(self) -> bool:
        """Whether others measured the runs, so that the specs of workload and device are made up."""
        return all(str(run["session"]).startswith("imported") for run in self.rows["runs"])

    def of_case(self, table: str, case: Case) -> list[Row]:
        """Return the rows of a table that belong to a case."""
        return [row for row in self.rows[table] if Case.of(row) == case]


def find_database(text: str) -> Path:
    """Return the database of a study that is given as results folder, DuckDB file, study spec or name.

    UserError: there is none.
    """
    is_database = Path(text).is_file() and not text.endswith(".yaml")
    return Path(text) if is_database else find_results(text, "study.duckdb")


def read_study(letter: str, database: Path) -> StudyTables:
    """Read the tables of a study, which is not written to. UserError: the file is damaged, or no study's database."""
    with open_study(database) as connection:  # which completes tables and columns that the database lacks
        stored = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()")
        missing = _WANTED.keys() - {name for (name,) in stored.fetchall()}
        rows = {table: [*map(without_nan, fetch_rows(connection.execute(query)))] for table, query in _WANTED.items()}
    if not rows["runs"]:
        raise UserError(f"{database}: found no run in table `runs`; expected a study that has been measured")
    return StudyTables(letter, database, rows, [table for table in _WANTED if table in missing])
