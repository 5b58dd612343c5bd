"""What the page says of requests by transaction: shares, requests per transaction, and where they were over time."""

import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from pages import SVG, Page, render
from simulated_study import write_trace

from knobscope.specs import StudySpecs

_RUNS = (
    "CREATE TEMP TABLE chosen AS SELECT run_id FROM runs WHERE device = 'fast-flash' AND is_sentinel AND status = 'ok'"
)
_OPERATIONS = """
    INSERT INTO operations (run_id, operation, ok)
    SELECT run_id, operation, ok FROM chosen, (VALUES ('NEW_ORDER', 60), ('PAYMENT', 140)) t (operation, ok)
"""
_REQUESTS = """
    INSERT INTO operation_io (run_id, operation, transactions, file, role, table_name, op, requests, bytes)
    SELECT run_id, t.* FROM chosen, (VALUES
        ('NEW_ORDER', 60, 'ycsb.db', 'data', 'stock', 'read', 300, 3_000_000),
        ('PAYMENT', 140, 'ycsb.db', 'data', 'stock', 'read', 70, 1_000_000),
        ('PAYMENT', 140, 'ycsb.db-wal', 'log', NULL, 'write', 28, 100_000),
        ('background', 200, 'journal', 'journal', NULL, 'write', 400, 900_000),
        ('background', 200, NULL, NULL, NULL, 'flush', 50, 0)) t
"""


@pytest.fixture
def traced(changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path) -> Page:
    database = changed_study("DELETE FROM operations", _RUNS, _OPERATIONS, _REQUESTS)
    with duckdb.connect(str(database), read_only=True) as connection:
        query = "SELECT run_id FROM runs WHERE device = 'fast-flash' AND is_sentinel ORDER BY started_at LIMIT 1"
        ((run_id,),) = connection.execute(query).fetchall()
    write_trace(tmp_path / "traces", run_id)
    return render(database, specs, tmp_path, traces=tmp_path / "traces")


def test_shares_and_requests_per_transaction(traced: Page) -> None:
    text = traced.section("files")
    text = text[text.index("Requests by transaction") :]
    assert (
        "Bytes read: 75 % by NEW_ORDER (30 % of the transactions) and 25 % by PAYMENT (70 %). "
        "Bytes written: 10 % by PAYMENT (70 % of the transactions) and 90 % in the background."
    ) in text
    # Table, direction, NEW_ORDER, PAYMENT, background, requests and size of a run.
    assert re.search(r"all\s*read\s*5\s*0\.5\s*–\s*370\s*3\.81 MiB", text), text
    assert re.search(r"all\s*flush\s*–\s*–\s*0\.25\s*50\s*–", text), text
    assert re.search(r"log files\s*write\s*–\s*0\.2\s*–\s*28", text), text
    assert re.search(r"file system journal\s*write\s*–\s*–\s*2\s*400", text), text


def test_of_few_requests_numbers_are_said(
    changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path
) -> None:
    requests = _REQUESTS
    for many, few in (("300, 3_", "3, 3_"), ("70, 1_", "1, 1_"), ("28, ", "2, "), ("400, ", "4, ")):
        requests = requests.replace(many, few)
    database = changed_study(
        "DELETE FROM operations",
        f"{_RUNS} ORDER BY run_id LIMIT 1",
        _OPERATIONS.replace("60", "6").replace("140", "14"),
        requests,
    )
    text = render(database, specs, tmp_path).section("files")
    assert (
        "Reads: 3 of 4 by NEW_ORDER (6 of 20 transactions) and 1 of 4 by PAYMENT (14 of 20). "
        "Writes: 2 of 6 by PAYMENT (14 of 20 transactions) and 4 of 6 in the background."
    ) in text


def test_points_are_coloured_by_transaction_above_the_background(traced: Page) -> None:
    words = "1,600 requests over the seconds of a run, by transaction, a panel for each file: stock (ycsb.db): offset"
    wide, narrow = (
        svg for svg in traced.root.iter(SVG + "svg") if words in (svg.get("aria-label") or "").replace("\u00a0", " ")
    )
    for picture in (wide, narrow):
        drawn = [path for path in picture.iter(SVG + "path") if "points" in str(path.get("class"))]
        assert [path.get("class") for path in drawn] == ["points base-bar", "points line-e", "points line-a"]
        counts = [(path.get("d") or "").count("M") for path in drawn]
        assert counts[0] > counts[1] > counts[2] > 0
        assert {"NEW_ORDER", "PAYMENT", "background"} <= {text.text for text in picture.iter(SVG + "text")}


def test_without_transactions_nothing_is_said(page: Page) -> None:
    assert "Requests by transaction" not in page.section("files")
