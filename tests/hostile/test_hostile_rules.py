"""Rules of strangers: a query reads and writes no file, a template ends; each limit has a sentence."""

import subprocess
import sys
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
    mine = write_rule(folder, query, sentence)
    with duckdb.connect() as connection:
        create_schema(connection)
        return run_rules(connection, replace(make_specs(), rules={"mine": read_rule(mine)}))


def write_rule(folder: Path, query: str, sentence: str = "No.") -> Path:
    mine = folder / "mine"
    mine.mkdir(exist_ok=True)
    (mine / "rule.sql").write_text(HEADER + query)
    (mine / "rule.yaml").write_text(ABOUT)
    macros = (f"{{% macro if_{name}() %}}{sentence}{{% endmacro %}}" for name in ("mismatch", "none", "insufficient"))
    (mine / "sentence.j2").write_text("\n".join(macros))
    return mine


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


def test_one_call_of_a_function_has_a_limit_of_memory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs more memory than it may have"):
        judge(tmp_path, f"{ROW}, len(range(400_000_000 + a))::DOUBLE AS effect FROM range(1) r(a)")


#: Binds the query of a rule as `validate` does, and prints the memory that this took in MiB.
BIND = """
import resource, sys
from dataclasses import replace
from pathlib import Path
sys.path.append(sys.argv[1])
from canaries import make_specs
from knobscope.specs import read_rule
from knobscope.stages.detect import check_queries, rule_queries

rule_queries._BINDING_SECONDS = float(sys.argv[3])
check_queries(replace(make_specs(), rules={"mine": read_rule(Path(sys.argv[2]))}))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def bind(folder: Path, constant: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    rule = write_rule(folder, f"{ROW}, {constant}::DOUBLE AS effect")
    command = [sys.executable, "-c", BIND, str(Path(__file__).parent), str(rule), str(seconds)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


def test_constants_that_are_calculated_to_bind_a_query_have_limits(tmp_path: Path) -> None:
    large = bind(tmp_path, "len(range(400_000_000))")
    assert (large.returncode, large.stderr) == (0, "")
    assert int(large.stdout) < 2048, "MiB; the list alone has 3,052"
    endless = bind(tmp_path, "abs(levenshtein(repeat('ab', 1_000_000), repeat('ba', 1_000_000)))", seconds=0.3)
    assert endless.returncode == 2
    assert "mine/rule.sql: found a query on which DuckDB works for more than 0.3 s" in endless.stderr


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
