"""A study's runs as the CSV files that `knobscope import` reads, all tables that can come along included."""

from pathlib import Path

import duckdb

from knobscope.commands.importing import SIDE_TABLES
from knobscope.specs import StudySpecs
from knobscope.tables import TABLES

#: Which runs of view `sweep_runs`: a table of others cannot tell what a value was measured beside.
EXPORTED = "(is_sentinel OR (knob IS NOT NULL AND beside IS NULL))"
RUNS = f"""
SELECT run_id AS run, block_id AS block, session, position, repeat, dbms, dbms_version, device, r.tier, workload,
    c.workload_class, threads, dedicated, knob, value, baseline, unit, expect, mechanism, durability, status, reason,
    started_at, window_s, operations, failed_operations, throughput_ops, latency_mean_us, latency_p95_us,
    latency_p99_us, cpu_s, cpu_share, monitor, lost_events, unattributed_share
FROM sweep_runs r
JOIN cases c USING (dbms, device, workload)
LEFT JOIN (
    SELECT dbms, knob, any_value(unit) AS unit, any_value(expect) AS expect, any_value(mechanism) AS mechanism,
        bool_or(durability) AS durability
    FROM effects GROUP BY dbms, knob
) USING (dbms, knob)
WHERE {EXPORTED}
ORDER BY block_id, position
"""  # noqa: S608 - no word of anybody else


def export_runs(database: Path, specs: StudySpecs, folder: Path) -> list[str]:
    """Write the sweep of a study below a folder; returns the arguments of `knobscope import` that name the files."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(database), read_only=True) as connection:
        runs = connection.execute(RUNS).df()
        knobs = [specs.dbms[row.dbms].knobs.get(row.knob) for row in runs.itertuples()]
        runs["order"] = ["|".join(map(str, knob.values)) if knob and knob.values else None for knob in knobs]
        runs["special"] = ["|".join(map(str, knob.special)) if knob and knob.special else None for knob in knobs]
        runs.to_csv(folder / "runs.csv", index=False)
        arguments = [str(folder / "runs.csv")]
        for table in SIDE_TABLES:
            query = f"FROM {table}"
            if "run_id" in TABLES[table]:
                columns = "SELECT run_id AS run, t.* EXCLUDE (run_id)"
                query = f"{columns} FROM {table} t SEMI JOIN (FROM sweep_runs WHERE {EXPORTED}) USING (run_id)"
            connection.execute(f"COPY ({query}) TO '{folder / table}.csv' (HEADER)")
            arguments += ["--table", f"{table}={folder / table}.csv"]
    return arguments


def verdicts(database: Path) -> list[tuple[object, ...]]:
    """What the rules say of a study; a CSV does not tell what special values mean (`0 (off)`)."""
    columns = "rule, dbms, device, workload, knob, value, verdict, round(effect, 9), round(penalty, 6)"
    columns += r", regexp_replace(sentence, '(\d) \([a-z]+\)', '\1', 'g')"
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(f"SELECT {columns} FROM findings ORDER BY ALL").fetchall()  # noqa: S608
