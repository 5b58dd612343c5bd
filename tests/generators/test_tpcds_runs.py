"""TPC-DS on real DBMSs: rows are those of the generator, DuckDB and PostgreSQL give the same answers, wrong ones are seen."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knobscope.devices import find_block_device
from knobscope.generators import DSDGEN, TPCDS_TABLES, read_back
from knobscope.measure.run import Bench, copied_data, measure_run
from knobscope.prepare import Snapshot, load_session, prepare_snapshot
from knobscope.servers import Server, open_instance
from knobscope.specs import Dbms, Value, Workload, find_program, read_spec
from knobscope.watch import open_watch

pytestmark = [
    pytest.mark.real,
    pytest.mark.fleet,
    pytest.mark.skipif(find_program(DSDGEN) is None, reason=f"no {DSDGEN.find[0]}; {DSDGEN.remedy}"),
]
SPECS = Path(__file__).parents[2] / "specs"
QUERIES = {f"Q{number}" for number in range(1, 100)}


def tpcds(**changes: object) -> Workload:
    small = {"records": 10, "threads": 1, "warmup_s": 0.2, "measure_s": 20}
    return read_spec(SPECS / "workloads/tpcds.yaml", Workload, None)[1].model_copy(update={**small, **changes})


def measure(
    dbms: Dbms, scratch: Path, snapshot: Snapshot, configuration: dict[str, Value], **changes: object
) -> dict[str, Any]:
    with open_watch(find_block_device(scratch), unit=4096, scope="process", prefer="procfs") as watch:
        return measure_run(Bench(dbms, tpcds(**changes), scratch, watch), "run", configuration, snapshot)


def assert_sound(record: dict[str, Any]) -> None:
    run = record["run"]
    assert run["status"] == "ok", run
    assert {check["condition"] for check in record["checks"] if check["holds"]} == {f"TPC-DS {q}" for q in QUERIES}
    operations = {row["operation"]: row for row in record["operations"]}
    assert set(operations) == QUERIES
    assert all(row["ok"] > 0 and row["failed"] == 0 and row["latency_p50_us"] > 0 for row in operations.values())


def ask(dbms: Dbms, snapshot: Snapshot, scratch: Path, question: str) -> dict[str, str]:
    """Names and values that a loaded database answers, through the load client."""
    with ExitStack() as stack:
        data = stack.enter_context(copied_data(snapshot, scratch / "asked", cold=False))
        instance = stack.enter_context(open_instance(dbms, data, snapshot.password))
        if dbms.lifecycle is not None:
            log = instance.runtime / "server.log"
            stack.enter_context(Server(instance, dbms.lifecycle, {}, log)).wait_ready()
        session = load_session(instance, tpcds(), [], [], threads=1)
        return read_back(replace(session, readback={"query": question})).effective


@pytest.fixture(scope="module")
def duckdb() -> Dbms:
    return read_spec(SPECS / "dbms/duckdb.yaml", Dbms, None)[1]


@pytest.fixture(scope="module")
def loaded(duckdb: Dbms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    return prepare_snapshot(duckdb, tpcds(), {}, tmp_path_factory.mktemp("tpcds"))
