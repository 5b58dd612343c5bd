"""What a server counts of a load that counts no statements itself."""

from collections import Counter
from pathlib import Path

import pytest

from knobscope.devices import find_block_device
from knobscope.specs import Dbms, Workload, read_spec
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.measure.statements import list_statements
from knobscope.stages.prepare import prepare_snapshot
from knobscope.watch import open_watch

ROOT = Path(__file__).parents[3]


@pytest.mark.real
@pytest.mark.long
@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_rows_of_any_load_are_counted_by_the_server(name: str, short_workload: Workload, open_directory: Path) -> None:
    dbms = read_spec(ROOT / f"specs/dbms/{name}.yaml", Dbms, None)[1]
    workload = short_workload.model_copy(update={"measure_s": 5})
    snapshot = prepare_snapshot(dbms, workload, {}, open_directory)
    with open_watch(find_block_device(open_directory), unit=4096, scope="process", prefer="procfs") as watch:
        bench = Bench(dbms, workload, open_directory, watch, counts_statements=True)
        record = measure_run(bench, "run", {}, snapshot)
    assert record["run"]["status"] == "ok", record["run"]
    assert {(row["source"], row["table_name"], row.get("operation")) for row in record["statements"]} == {
        ("server", "usertable", None)
    }
    rows = {row["statement"]: row["rows"] for row in record["statements"]}
    done = {row["operation"]: row["ok"] for row in record["operations"]}
    assert rows["update"] == pytest.approx(done["UPDATE"], rel=0.4)  # PostgreSQL's are up to a second late
    assert rows["select"] >= 0.6 * (done["READ"] + done["UPDATE"])  # a row is fetched to be changed, too
    assert "delete" not in rows


def test_only_tables_of_the_workload_are_taken_from_texts() -> None:
    tpcc = read_spec(ROOT / "specs/workloads/tpcc.yaml", Workload, None)[1]
    sent = [
        {"operation": "Q", "table_name": table, "statement": "select", "calls": calls, "rows": 3}
        for table, calls in (("item", 2), ("l_shipdate", 2), ("stock", 0))
    ]
    before = Counter({("item", "select"): 5, ("item", "update"): 7, ("item", "insert"): 5})
    after = Counter({("item", "select"): 9, ("item", "insert"): 9})
    assert list_statements(sent, before, after, tpcc) == [
        {"source": "client", "operation": "Q", "table_name": "item", "statement": "select", "calls": 2, "rows": 3},
        {"source": "server", "table_name": "item", "statement": "insert", "rows": 4},
    ]
    selected = {"source": "server", "table_name": "item", "statement": "select", "rows": 4}
    assert selected in list_statements([], before, after, tpcc.model_copy(update={"generator": "ycsb"}))
