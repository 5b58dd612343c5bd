"""A run whose study watches system calls and page faults too: its tables are filled, with the names of its files."""

import os
from pathlib import Path

import pytest

from knobscope.devices import find_block_device
from knobscope.specs import Dbms, Workload
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.prepare import prepare_snapshot
from knobscope.tables import write_table
from knobscope.watch import open_watch

pytestmark = [pytest.mark.real, pytest.mark.long]

_TABLES = ("syscalls", "file_access", "io_modes", "faults")


def test_calls_and_files_of_postgresql(
    postgresql: Dbms, short_workload: Workload, open_directory: Path, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    snapshot = prepare_snapshot(postgresql, short_workload, {}, open_directory)
    block = find_block_device(open_directory)
    with open_watch(block, 4096, "process", probes=["syscalls", "faults"], files="device") as watch:
        if watch.reason or watch.missing_probes:
            pytest.skip(str(watch.reason or dict(watch.missing_probes)))
        bench = Bench(postgresql, short_workload, open_directory, watch)
        record = measure_run(bench, "run", {"fsync": True, "synchronous_commit": "on"}, snapshot)
    assert record["run"]["status"] == "ok", record["run"]
    for table in _TABLES:
        write_table(tmp_path / f"{table}.parquet", table, ({"run_id": "run", **row} for row in record[table]))
    commits = next(row for row in record["syscalls"] if row["syscall"] == "fdatasync")
    assert 0 < commits["calls"] <= record["run"]["operations"]
    log = [row for row in record["file_access"] if row["role"] == "log"]
    assert {row["op"] for row in log} == {"write"}
    assert all(row["file"].startswith("pg_wal/") and row["bytes"] % 8192 == 0 for row in log)
    ways = {(row["op"], row["mode"], row["batch_mean"]) for row in record["io_modes"]}
    assert ways & {("write", "sync", 1.0), ("sync", "sync", 1.0)} == {("write", "sync", 1.0), ("sync", "sync", 1.0)}
    assert not {row["mode"] for row in record["io_modes"]} & {"libaio", "io_uring"}
