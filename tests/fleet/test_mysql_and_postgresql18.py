"""MySQL 9, PostgreSQL 18 and MariaDB: each value of each curated knob starts a server, and is in force there."""

from pathlib import Path

import pytest
from curated_values import diagonal, new_instance, values_in_force
from measured_runs import load_and_measure
from shipped_specs import shipped_dbms

from knobscope.servers import compare_effective
from knobscope.specs import Value, Workload, find_program
from knobscope.stages.prepare import load_values_of

NAMES = ["mariadb", "mysql", "postgresql", "postgresql18"]
#: What the distribution's kernel has to be prepared for.
NOT_HERE: dict[str, Value] = {"huge_pages": "on"}
RUNS: dict[str, dict[str, Value]] = {
    "mysql": {"innodb_flush_log_at_trx_commit": 0, "log_bin": True, "sync_binlog": 0, "innodb_page_size": 8192},
    "postgresql18": {"io_method": "worker", "io_workers": 2, "synchronous_commit": "off", "data_checksums": False},
}

pytestmark = [pytest.mark.real, pytest.mark.fleet]


def require(name: str) -> None:
    missing = [one for one in shipped_dbms(name).programs.values() if find_program(one) is None]
    if missing:
        pytest.skip(f"{name} is not installed: {missing[0].remedy}")


@pytest.mark.parametrize("name", NAMES)
def test_every_value_starts_and_is_in_force(name: str, short_workload: Workload, open_directory: Path) -> None:
    require(name)
    dbms = shipped_dbms(name)
    for configuration in diagonal(dbms):
        tried = {knob: value for knob, value in configuration.items() if NOT_HERE.get(knob) != value}
        with new_instance(dbms, open_directory, load_values_of(dbms, tried)) as instance:
            effective = values_in_force(instance, short_workload, tried)
        assert compare_effective(dbms, tried, effective)[1] == {}


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_those_of_the_spec(name: str, short_workload: Workload, open_directory: Path) -> None:
    require(name)
    dbms = shipped_dbms(name)
    with new_instance(dbms, open_directory, {}) as instance:
        unset = values_in_force(instance, short_workload, {})
    assert compare_effective(dbms, {k: knob.default for k, knob in dbms.knobs.items()}, unset)[1] == {}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_whole(name: str, short_workload: Workload, open_directory: Path) -> None:
    require(name)
    record = load_and_measure(shipped_dbms(name), short_workload, open_directory, RUNS[name])
    assert record["run"]["status"] == "ok", record["run"]
    assert {row["knob"] for row in record["effective_values"]} == set(RUNS[name])


@pytest.mark.parametrize("method", ["sync", "worker", "io_uring"])
def test_postgresql_18_reads_in_each_way(method: str, short_workload: Workload, open_directory: Path) -> None:
    require("postgresql18")
    dbms = shipped_dbms("postgresql18")
    record = load_and_measure(dbms, short_workload, open_directory, {"io_method": method, "shared_buffers": 128})
    assert record["run"]["status"] == "ok", record["run"]
