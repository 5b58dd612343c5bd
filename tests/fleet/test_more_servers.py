"""Valkey, Cassandra, WiredTiger and DuckDB, for real: they need setup/fleet.sh, or take long."""

from pathlib import Path

import pytest
from short_runs import assert_whole, read_dbms, run_once, unusual_values

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
