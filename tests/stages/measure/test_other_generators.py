"""Runs with generators that a spec describes, on real servers: the same records as those of YCSB."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from measured_runs import load_and_measure
from shipped_specs import shipped_dbms, shipped_generator, shipped_workload

from knobscope.specs import Dbms
from knobscope.stages.prepare.tables import read_tables

pytestmark = pytest.mark.real


def measure(
    dbms: Dbms, workload: str, scratch: Path, configuration: dict[str, Any], **changes: object
) -> dict[str, Any]:
    changed = {"records": 2000, "threads": 2, "warmup_s": 1, "measure_s": 2, **changes}
    spec = shipped_workload(workload, **changed)
    generator = shipped_generator(spec.generator)
    for program in generator.programs.values():
        if not any(shutil.which(name) for name in program.find):
            pytest.skip(f"no {program.find[-1]}; {program.remedy}")
    return load_and_measure(dbms, spec, scratch, configuration, generator=generator)


def assert_whole(record: dict[str, Any], configuration: dict[str, Any]) -> None:
    run = record["run"]
    assert run["status"] == "ok", run
    assert run["operations"] > 0
    assert run["throughput_ops"] == pytest.approx(run["operations"] / run["window_s"])
    assert sum(row["ops"] for row in record["intervals"]) == pytest.approx(run["operations"], rel=0.01, abs=5)
    of_all_cores = run["cpu_s"] / run["window_s"] / (os.cpu_count() or 1)  # though starting and ending was watched, too
    assert run["cpu_share"] >= 0.999 * of_all_cores
    assert run["latency_p50_us"] <= run["latency_p95_us"] <= run["latency_p99_us"]
    assert {row["knob"] for row in record["effective_values"]} == set(configuration)


@pytest.mark.long
def test_pgbench_on_postgresql(postgresql: Dbms, open_directory: Path) -> None:
    configuration = {"synchronous_commit": "off", "shared_buffers": 4096}
    record = measure(postgresql, "pgbench-tpcb", open_directory, configuration)
    assert_whole(record, configuration)
    assert len(record["intervals"]) == 2


@pytest.mark.long
def test_sysbench_on_postgresql(postgresql: Dbms, open_directory: Path) -> None:
    record = measure(postgresql, "sysbench-write", open_directory, {"fsync": False}, threads=1)
    assert_whole(record, {"fsync": False})


@pytest.mark.long
def test_sysbench_spreads_its_rows_over_tables(postgresql: Dbms, open_directory: Path) -> None:
    parameters = {"test": "oltp_read_only", "tables": 4, "range_size": 10, "ranges": 2, "point_selects": 1}
    record = measure(postgresql, "sysbench-write", open_directory, {"fsync": False}, parameters=parameters)
    assert_whole(record, {"fsync": False})
    (snapshot,) = (open_directory / "snapshots").iterdir()
    assert {f"sbtest{number}" for number in range(1, 5)} <= set(read_tables(snapshot).values())


@pytest.mark.long
def test_redis_benchmark_on_redis(open_directory: Path) -> None:
    configuration = {"appendfsync": "no", "hz": 50}
    record = measure(shipped_dbms("redis"), "redis-set", open_directory, configuration)
    assert_whole(record, configuration)
    assert [row["operation"] for row in record["operations"]] == ["SET"]


def test_a_generator_that_fails_is_a_result_with_its_own_words(open_directory: Path) -> None:
    parameters = {"test": "no-such-test"}
    run = measure(shipped_dbms("redis"), "redis-set", open_directory, {}, parameters=parameters)["run"]
    assert run["status"] == "invalid"
    assert "the output of redis-benchmark cannot be used: no line with the requests" in run["reason"]


def test_a_dbms_inside_its_generator_is_read_back_from_its_own_file(open_directory: Path) -> None:
    configuration = {"block_size": 16384, "write_buffer_size": 4194304}
    record = measure(shipped_dbms("rocksdb-bench"), "db-bench-mixed", open_directory, configuration)
    assert_whole(record, configuration)
    assert {row["operation"] for row in record["operations"]} == {"READ", "WRITE"}
