"""Fills table `io_related`: which knobs change what reaches the device, from the screening runs of each case."""

from typing import TYPE_CHECKING

from knobscope.stages.detect.effects import add_frame
from knobscope.statistics.io_responses import Comparison, compare_with_marks, find_io_related

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

#: Responses of the I/O profile and what they are, in words.
IO_RESPONSES = {
    "reads_per_op": "read requests per operation",
    "read_bytes_per_op": "bytes read per operation",
    "writes_per_op": "write requests per operation",
    "write_bytes_per_op": "bytes written per operation",
    "flushes_per_op": "flushes per operation",
    "fua_per_op": "writes through the cache (FUA) per operation",
    "read_size": "mean size of a read",
    "write_size": "mean size of a write",
    "unaligned_write_share": "share of writes off the preferred size",
    "read_sequential_share": "sequential share of reads",
    "write_sequential_share": "sequential share of writes",
    "busy_depth": "mean queue depth while busy",
    "read_calls_per_op": "read calls per operation",
    "write_calls_per_op": "write calls per operation",
    "read_call_size": "mean size of a read call",
    "write_call_size": "mean size of a write call",
    "sync_calls_per_op": "sync calls per operation",
    "syscalls_per_op": "system calls on files per operation",
    "storage_waits_per_op": "waits for storage per operation",
}

#: Counts are known from totals too; shares, order and depth only from runs that BPF watched without losing events.
_RUNS = """
    WITH profile AS (
        SELECT run_id,
            coalesce(sum(requests) FILTER (op = 'read'), 0)::DOUBLE AS reads,
            coalesce(sum(bytes) FILTER (op = 'read'), 0)::DOUBLE AS read_bytes,
            coalesce(sum(requests) FILTER (op = 'write'), 0)::DOUBLE AS writes,
            coalesce(sum(bytes) FILTER (op = 'write'), 0)::DOUBLE AS write_bytes,
            (sum(fua) FILTER (op = 'write'))::DOUBLE AS fua
        FROM io_profile GROUP BY run_id
    ), calls AS (
        SELECT run_id,
            coalesce(sum(calls) FILTER (op = 'read'), 0)::DOUBLE AS read_calls,
            coalesce(sum(calls) FILTER (op = 'write'), 0)::DOUBLE AS write_calls,
            (sum(bytes) FILTER (op = 'read'))::DOUBLE AS read_call_bytes,
            (sum(bytes) FILTER (op = 'write'))::DOUBLE AS write_call_bytes
        FROM file_access GROUP BY run_id
    ), syncs AS (
        SELECT run_id, coalesce(sum(calls) FILTER (op = 'sync'), 0)::DOUBLE AS syncs FROM io_modes GROUP BY run_id
    ), all_calls AS (
        SELECT run_id, sum(calls)::DOUBLE AS syscalls FROM syscalls GROUP BY run_id
    ), storage_waits AS (
        SELECT run_id,
            coalesce(sum(waits) FILTER (reason IN ('flush', 'write', 'read', 'fault', 'journal')), 0)::DOUBLE AS waits
        FROM waits GROUP BY run_id
    )
    SELECT r.run_id, r.dbms, r.device, r.workload, r.config_id, operations::DOUBLE AS operations,
        reads / nullif(operations, 0) AS reads_per_op,
        read_bytes / nullif(operations, 0) AS read_bytes_per_op,
        m.writes_per_op, m.write_bytes_per_op, m.flushes_per_op,
        fua / nullif(operations, 0) AS fua_per_op,
        read_bytes / nullif(reads, 0) AS read_size,
        write_bytes / nullif(writes, 0) AS write_size,
        m.unaligned_write_share, m.read_sequential_share, m.write_sequential_share, m.busy_depth,
        read_calls / nullif(operations, 0) AS read_calls_per_op,
        write_calls / nullif(operations, 0) AS write_calls_per_op,
        read_call_bytes / nullif(read_calls, 0) AS read_call_size,
        write_call_bytes / nullif(write_calls, 0) AS write_call_size,
        syncs / nullif(operations, 0) AS sync_calls_per_op,
        syscalls / nullif(operations, 0) AS syscalls_per_op,
        waits / nullif(operations, 0) AS storage_waits_per_op
    FROM ok_runs r
    LEFT JOIN run_metrics m USING (run_id)
    LEFT JOIN profile USING (run_id)
    LEFT JOIN calls USING (run_id)
    LEFT JOIN syncs USING (run_id)
    LEFT JOIN all_calls USING (run_id)
    LEFT JOIN storage_waits USING (run_id)
    WHERE phase = ?
    ORDER BY r.run_id
"""

_SETTINGS = """
    SELECT DISTINCT config_id, knob, value FROM knob_values
    WHERE dbms = ? AND config_id IN (SELECT config_id FROM ok_runs WHERE phase = 'screen')
"""


def add_io_related(connection: "duckdb.DuckDBPyConnection", fdr: float) -> None:
    """Fill the table from the runs and knob values of a study's database."""
    import pandas as pd

    runs = read_io_profiles(connection, "screen")
    varied = connection.execute("SELECT dbms, knob FROM knobs WHERE in_study ORDER BY ALL").df()
    tables = []
    for dbms, of_dbms in runs.groupby("dbms", sort=True):
        values = connection.execute(_SETTINGS, [dbms]).df()
        settings = values.pivot(index="config_id", columns="knob", values="value")
        knobs = [knob for knob in varied.loc[varied["dbms"] == dbms, "knob"] if knob in settings.columns]
        for (device, workload), case in of_dbms.groupby(["device", "workload"], sort=True):
            table = case.merge(settings[knobs], left_on="config_id", right_index=True)
            measured = [name for name in IO_RESPONSES if table[name].notna().any()]
            relations = find_io_related(table, knobs, measured, fdr)
            tables.append(relations.assign(dbms=dbms, device=device, workload=workload))
    if tables:
        add_frame(connection, "io_related", pd.concat(tables, ignore_index=True))


def read_io_profiles(connection: "duckdb.DuckDBPyConnection", phase: str) -> "pd.DataFrame":
    """Return a row for each run of a phase that is ok: its case, operations and IO_RESPONSES."""
    return connection.execute(_RUNS, [phase]).df()


def io_marks_comparison(connection: "duckdb.DuckDBPyConnection") -> dict[str, Comparison]:
    """Return per DBMS how the verdicts compare with the mechanisms that the specs curate.

    A knob is found when any case calls it related, and marked when its mechanism is another than `other`. Knobs that
    could be tested nowhere are left out, and settings of the workload.
    """
    rows = connection.execute(
        """
        SELECT dbms, knob, bool_or(i.verdict = 'related') AS related, any_value(k.mechanism) <> 'other' AS marked
        FROM io_related i JOIN knobs k USING (dbms, knob)
        WHERE i.verdict <> 'insufficient' AND k.mechanism NOT IN ('workload', 'kernel')
        GROUP BY dbms, knob ORDER BY dbms, knob
        """
    ).fetchall()
    return {
        dbms: compare_with_marks(
            {knob: related for name, knob, related, _ in rows if name == dbms},
            {knob: marked for name, knob, _, marked in rows if name == dbms},
        )
        for dbms in dict.fromkeys(row[0] for row in rows)
    }
