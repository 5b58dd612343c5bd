"""Rules of strangers: a query reads and writes no file, a template ends; each limit has a sentence."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from canaries import SECRET, Canaries, make_specs

from knobscope.errors import UserError
from knobscope.specs import read_rule
from knobscope.stages.detect import create_schema, run_rules
from knobscope.tables import locking
from knobscope.text.sentences import limits

ROW = "SELECT 'd' AS dbms, 'v' AS device, 'w' AS workload, 'none' AS verdict"
HEADER = "-- mine: a claim.\n-- Source: none.\n-- Needs: nothing.\n-- Insufficient: never.\n"
ABOUT = "name: mine\ntitle: Mine\nquestion: Is it?\nneeds: [cases]\n"


def judge(folder: Path, query: str = ROW, sentence: str = "No.") -> list[dict[str, object]]:
    mine = folder / "mine"
    mine.mkdir()
    (mine / "rule.sql").write_text(HEADER + query)
    (mine / "rule.yaml").write_text(ABOUT)
    macros = (f"{{% macro if_{name}() %}}{sentence}{{% endmacro %}}" for name in ("mismatch", "none", "insufficient"))
    (mine / "sentence.j2").write_text("\n".join(macros))
    with duckdb.connect() as connection:
        create_schema(connection)
        return run_rules(connection, replace(make_specs(), rules={"mine": read_rule(mine)}))


@pytest.mark.parametrize(
    "query",
    [
        "{row}, (SELECT content FROM read_text('{file}')) AS knob",
        "{row} FROM glob('{folder}/*')",
        "{row} FROM read_csv('{address}')",
        "{row} FROM '{file}'",
        "{row}; COPY (SELECT 1) TO '{folder}/new'",
        "{row}; SET threads = 1",
        "COPY (SELECT 1) TO '{folder}/new'",
        "ATTACH '{folder}/new'",
        "INSTALL httpfs",
    ],
)
def test_a_query_reaches_no_file_and_no_port(query: str, canaries: Canaries, tmp_path: Path) -> None:
    names = {"row": ROW, "file": canaries.file, "folder": canaries.directory, "address": canaries.address}
    with pytest.raises(UserError, match=r"disabled by configuration|expected one S|does not exist") as refused:
        judge(tmp_path, query.format(**names))
    assert SECRET not in str(refused.value)
    canaries.check()


def test_a_query_has_limits_of_time_and_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(locking.LOCKED, "max_execution_time", "500")
    with pytest.raises(UserError, match="a query took more than 300 s, the limit for a query"):
        judge(tmp_path, f"{ROW}, max(hash(a))::DOUBLE AS effect FROM range(1_000_000_000_000) r(a)")
    monkeypatch.undo()
    with pytest.raises(UserError, match="needs more memory than it may have; the limit is 1GiB"):
        judge_again = tmp_path / "again"
        judge_again.mkdir()
        judge(judge_again, f"{ROW}, len(list(a))::DOUBLE AS effect FROM range(1_000_000_000) r(a)")


@pytest.mark.parametrize(
    ("sentence", "limit"),
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "s of processor time"),
        ("{{ 'x' * 3000000000 }}", "256 MiB of memory"),
        ("{{ 'x'.ljust(3000000000) }}", "256 MiB of memory"),
        ("{{ 'x' * 30000 }}", "20,000 characters"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{% include '/etc/passwd' %}", "passwd"),
        ("{{ 1 // 0 }}", "zero"),
    ],
)
def test_a_template_has_limits(sentence: str, limit: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, "SECONDS", 1.0)
    with pytest.raises(UserError, match=limit):
        judge(tmp_path, sentence=sentence)


def test_a_query_that_is_a_device_is_no_query(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "rule.yaml").write_text(ABOUT)
    (mine / "rule.sql").write_text(HEADER + ROW)
    (mine / "sentence.j2").write_text("x" * (5 << 20))
    with pytest.raises(UserError, match="more than 4 MiB"):
        read_rule(mine)
