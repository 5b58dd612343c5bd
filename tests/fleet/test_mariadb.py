"""MariaDB by its spec alone: made, started, asked, stopped, loaded and measured."""

from pathlib import Path

import pytest
from curated_values import new_instance, values_in_force
from measured_runs import load_and_measure
from shipped_specs import shipped_dbms

from knobscope.servers import compare_effective
from knobscope.specs import Dbms, Value, Workload, find_program

MARIADB = shipped_dbms("mariadb")
CONFIGURATION: dict[str, Value] = {
    "innodb_flush_log_at_trx_commit": 2,
    "log_bin": True,
    "sync_binlog": 1,
    "innodb_flush_method": "fsync",
    "innodb_doublewrite": False,
    "innodb_buffer_pool_size": 8388608,
    "innodb_max_dirty_pages_pct_lwm": 12.5,
}

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        any(find_program(one) is None for one in MARIADB.programs.values()), reason="MariaDB is not installed"
    ),
]


def defaults_of(dbms: Dbms) -> dict[str, Value]:
    return {name: knob.default for name, knob in dbms.knobs.items()}


@pytest.mark.long
def test_values_reach_the_server_and_defaults_are_those_of_the_spec(
    short_workload: Workload, open_directory: Path
) -> None:
    with new_instance(MARIADB, open_directory, {}) as instance:
        effective = values_in_force(instance, short_workload, CONFIGURATION)
        assert compare_effective(MARIADB, CONFIGURATION, effective)[1] == {}
        assert list((open_directory / "data").glob("binlog.*"))
        unset = values_in_force(instance, short_workload, {})
        assert compare_effective(MARIADB, defaults_of(MARIADB), unset)[1] == {}


def test_a_run_is_whole(short_workload: Workload, open_directory: Path) -> None:
    record = load_and_measure(MARIADB, short_workload, open_directory, CONFIGURATION)
    assert record["run"]["status"] == "ok", record["run"]
    assert record["run"]["operations"] > 0
    assert {row["knob"] for row in record["effective_values"]} == set(CONFIGURATION)
