"""What a server counts of a load that counts no statements itself."""

from collections import Counter
from pathlib import Path

import pytest
from measured_runs import load_and_measure
from shipped_specs import shipped_dbms, shipped_workload

from knobscope.specs import Workload
from knobscope.stages.measure.statements import list_statements


@pytest.mark.real
@pytest.mark.long
@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_rows_of_any_load_are_counted_by_the_server(name: str, short_workload: Workload, open_directory: Path) -> None:
    dbms = shipped_dbms(name)
    workload = short_workload.model_copy(update={"measure_s": 5})
    record = load_and_measure(dbms, workload, open_directory, {}, counts_statements=True)
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
    tpcc = shipped_workload("tpcc")
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
