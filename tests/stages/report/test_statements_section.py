"""What the page says of statements by table: the client's shares, the server's rows, the bytes of the files."""

import re
from collections.abc import Callable

from pages import Page

_RUNS = (
    "CREATE TEMP TABLE chosen AS SELECT run_id FROM runs WHERE device = 'fast-flash' AND is_sentinel AND status = 'ok'"
)
_CLIENT = """
    INSERT INTO statements (run_id, source, operation, table_name, statement, calls, rows)
    SELECT run_id, 'client', operation, table_name, statement, calls, rows FROM chosen, (VALUES
        ('NEW_ORDER', 'item', 'select', 600, 594), ('NEW_ORDER', 'stock', 'update', 300, 300),
        ('PAYMENT', 'history', 'insert', 100, 100)) t (operation, table_name, statement, calls, rows)
"""
_SERVER = """
    INSERT INTO statements (run_id, source, table_name, statement, rows)
    SELECT run_id, 'server', table_name, statement, rows FROM chosen, (VALUES
        ('item', 'select', 700), ('stock', 'select', 350), ('stock', 'update', 350)) t (table_name, statement, rows)
"""
_OPERATIONS = """
    INSERT INTO operations (run_id, operation, ok)
    SELECT run_id, operation, ok FROM chosen, (VALUES ('NEW_ORDER', 60), ('PAYMENT', 100)) t (operation, ok)
"""
_FILES = """
    INSERT INTO files (run_id, file, role, table_name, op, requests, bytes)
    SELECT run_id, 'base/1', 'data', 'stock', op, 10, bytes
    FROM chosen, (VALUES ('read', 3_000_000), ('write', 1_048_576)) t (op, bytes)
"""


def test_shares_rows_and_bytes_of_each_table(render_changed: Callable[..., Page]) -> None:
    text = render_changed("DELETE FROM files", _RUNS, _CLIENT, _SERVER, _OPERATIONS, _FILES).section("files")
    text = text[text.index("Statements by table") :]
    assert "Of the statements, 60 % select, 30 % update and 10 % insert. Only read: item." in text
    assert "stock takes 30 % of the statements, 100 % of the bytes read and 100 % of the bytes written" in text
    assert re.search(r"item\s*60 %\s*0 %\s*0 %\s*0 %\s*700\s*0", text), text
    assert re.search(r"stock\s*0 %\s*0 %\s*30 %\s*0 %\s*350\s*350\s*2.86 MiB\s*1 MiB", text), text
    assert "Rows fetched (server)" in text
    assert re.search(r"item\s*10 select\s*–\s*stock\s*5 update\s*–\s*history\s*–\s*1 insert", text), text


def test_rows_of_the_server_alone(render_changed: Callable[..., Page]) -> None:
    text = render_changed(_RUNS, _SERVER).section("files")
    assert "Of the rows, 75 % select and 25 % update." in text
    assert "Select, of all rows" in text
    assert "Statements per transaction" not in text


def test_without_statements_nothing_is_said(page: Page) -> None:
    assert "Statements by table" not in page.section("files")


def test_of_few_statements_and_requests_numbers_are_said(render_changed: Callable[..., Page]) -> None:
    """One more of seven would change a share by more than the share says."""
    statements = _CLIENT.replace("600, 594", "6, 6").replace("300, 300", "3, 3").replace("100, 100", "1, 1")
    page = render_changed("DELETE FROM files", f"{_RUNS} ORDER BY run_id LIMIT 1", statements, _OPERATIONS, _FILES)
    text = page.section("files").replace("\u00a0", " ")
    text = text[text.index("Statements by table") :]
    assert "Of the 10 statements, 6 select, 3 update and 1 insert." in text
    assert "stock takes 3 of 10 statements, 10 of 10 reads and 10 of 10 writes of all tables." in text
    assert re.search(r"item\s*6 of 10\s*0 of 10\s*0 of 10\s*0 of 10", text), text
