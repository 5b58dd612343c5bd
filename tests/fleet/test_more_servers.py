"""Valkey, Cassandra, WiredTiger and DuckDB, for real: they need setup/fleet.sh, or take long."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from shipped_specs import shipped_workload
from short_runs import assert_whole, read_dbms, run_once, unusual_values

from knobscope.specs.models.file_patterns import TableFiles
from knobscope.stages.prepare import prepare_snapshot

pytestmark = [pytest.mark.real, pytest.mark.fleet]
WORKLOADS = {"wiredtiger": "wtperf-mixed"}


@pytest.mark.parametrize("name", ["valkey", "cassandra", "wiredtiger", "duckdb"])
def test_every_knob_is_in_force_with_a_value_of_its_own(name: str, open_directory: Path) -> None:
    dbms = read_dbms(name)
    configuration = unusual_values(dbms)
    assert len(configuration) >= len(dbms.knobs) - 2  # some exclude each other
    record = run_once(dbms, configuration, open_directory, WORKLOADS.get(name, "ycsb-a"), threads=1)
    assert_whole(record, configuration, dbms)


@pytest.mark.parametrize("name", ["valkey", "cassandra", "wiredtiger", "duckdb"])
def test_defaults_are_what_it_says(name: str, open_directory: Path) -> None:
    dbms = read_dbms(name)
    configuration = {knob: one.default for knob, one in dbms.knobs.items()}
    record = run_once(dbms, configuration, open_directory, WORKLOADS.get(name, "ycsb-a"), threads=1)
    assert_whole(record, configuration, dbms)


def test_a_value_out_of_range_does_not_start_and_cassandra_says_why(open_directory: Path) -> None:
    cassandra = read_dbms("cassandra")
    wider = cassandra.knobs["concurrent_reads"].model_copy(update={"range": [1, 64]})
    dbms = cassandra.model_copy(update={"knobs": {**cassandra.knobs, "concurrent_reads": wider}})
    run = run_once(dbms, {"concurrent_reads": 1}, open_directory)["run"]
    assert run["status"] == "failed_start"
    assert "concurrent_reads must be at least 2" in run["log_tail"]


@pytest.mark.skipif(os.geteuid() != 0, reason="BPF needs root")
def test_the_sessions_of_wtperf_are_its_clients_and_no_other_thread(open_directory: Path) -> None:
    wiredtiger = read_dbms("wiredtiger")
    record = run_once(wiredtiger, {}, open_directory, "wtperf-read", ["waits"], threads=3)
    threads = {row["thread_class"]: row["threads"] for row in record["waits"]}
    assert (threads["session"], threads["wtperf"]) == (3, 2)
    lived_s = sum(row["time_us"] for row in record["waits"] if row["thread_class"] == "session") / 3e6
    assert record["run"]["waits_s"] == pytest.approx(lived_s, rel=0.1)  # threads of WiredTiger live longer


def test_the_patience_of_cassandra_is_for_a_page_of_the_count_and_not_for_all_of_it(open_directory: Path) -> None:
    cassandra = read_dbms("cassandra")
    config = cassandra.config_files["cassandra.yaml"]
    assert config.yaml is not None
    hasty = config.model_copy(update={"yaml": {**config.yaml, "range_request_timeout": "500ms"}})
    dbms = cassandra.model_copy(update={"config_files": {**cassandra.config_files, "cassandra.yaml": hasty}})
    workload = shipped_workload("ycsb-a")
    many = workload.model_copy(update={"records": 60000})
    assert prepare_snapshot(dbms, many, {}, open_directory).version.startswith("5")


def test_a_rewrite_of_cassandra_makes_one_file_of_all_and_leaves_the_table_as_it_was(open_directory: Path) -> None:
    cassandra = read_dbms("cassandra")
    options = TableFiles(
        query="select cast(memtable_flush_period_in_ms as text), tojson(compaction) from system_schema.tables "
        "where keyspace_name = 'ycsb'"
    )
    dbms = cassandra.model_copy(update={"files": cassandra.files.model_copy(update={"tables": options})})
    scans = shipped_workload("ycsb-scan")

    def load(*, rewrite: bool, records: int = 25000) -> tuple[int, Mapping[str, str]]:
        parameters = {**scans.parameters, "rewrite": rewrite}
        workload = scans.model_copy(update={"records": records, "parameters": parameters})
        snapshot = prepare_snapshot(dbms, workload, {}, open_directory)
        return len([*snapshot.directory.glob("**/usertable-*/*-Data.db")]), snapshot.tables

    files, as_loaded = load(rewrite=False)
    assert files > 1
    assert load(rewrite=True) == (1, as_loaded)
    assert load(rewrite=True, records=500) == (1, as_loaded)  # nothing to compact
    assert load(rewrite=True, records=90000) == (1, as_loaded)  # files above and below 50 MB
