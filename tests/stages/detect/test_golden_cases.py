"""Golden cases: tables of a few rows with the verdict that a rule must give, and a copy in which one value differs.

`golden/RULE.yaml` holds the rows that all cases of a rule start from (table -> name of the row -> columns), and cases:
what they `set`, their `verdict`, what the sentence `says` then, and the one value (`but`) with which the verdict is
another one (`then`). Rows whose columns hold `margin` have an interval of that half-width around their estimate. Dbms,
device, workload and the columns under `common` are those of all rows. The rules' own queries judge, with their default
thresholds.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from knobscope.specs import VERDICTS, Rule, read_shipped_rule, shipped_rules
from knobscope.stages.detect import RULE_COLUMNS, VIEWS
from knobscope.stages.detect.database import create_schema
from knobscope.text.formats import loosen_units
from knobscope.text.sentences import Sentences

GOLDEN = Path(__file__).parent / "golden"
RULES = shipped_rules()
#: Rules that say where to look, and never that something is at fault.
ONLY_POINTING = {"cross_check"}
CASE = {"dbms": "d", "device": "v", "workload": "w"}
STUDY = {"fdr": 0.05, "min_effect": 0.05}

Tables = dict[str, dict[str, dict[str, Any]]]


@cache
def read_golden(rule: str) -> dict[str, Any]:
    """Return what a file says; libyaml reads it in a tenth of the time."""
    content: dict[str, Any] = yaml.load((GOLDEN / f"{rule}.yaml").read_text(), yaml.CSafeLoader)
    return content


def list_cases() -> list[Any]:
    goldens = {rule: read_golden(rule) for rule in RULES}
    return [
        pytest.param(rule, golden, case, id=f"{rule}: {case['case']}")
        for rule, golden in goldens.items()
        for case in golden["cases"]
    ]


def change(tables: Tables, changes: dict[str, Any]) -> Tables:
    """Return a copy with other values: `table.row.column: value`; `table.row: null` takes a row away."""
    changed = deepcopy(tables)
    for path, value in changes.items():
        table, row, *column = path.split(".")
        if column:
            changed[table][row][column[0]] = value
        else:
            assert value is None
            del changed[table][row]
    return changed


read_rule_once = cache(read_shipped_rule)


@cache
def columns_of(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, str]:
    """Return the columns of a table or view, with their types."""
    return {row[0]: row[1] for row in connection.execute(f"DESCRIBE {name}").fetchall()}


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """All tables, empty, and tables instead of the views: a case says what these show."""
    with duckdb.connect() as connection:
        create_schema(connection)
        columns = {name: columns_of(connection, name) for name in VIEWS}
        for name in VIEWS:
            connection.execute(f"DROP VIEW {name}")
        for name, kinds in columns.items():
            connection.execute(
                f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in kinds.items())})"
            )
        yield connection


@pytest.fixture
def empty(database: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    database.begin()
    yield database
    database.rollback()


def fill(connection: duckdb.DuckDBPyConnection, name: str, rows: list[dict[str, Any]], common: dict[str, Any]) -> None:
    """Put rows into a table; a column that no row names is NULL."""
    columns, known = columns_of(connection, name), []
    for row in rows:
        whole = {**CASE, **common, **row}
        if "margin" in row:
            margin = whole.pop("margin")
            whole |= {"low": whole["estimate"] - margin, "high": whole["estimate"] + margin}
        assert set(row) - {"margin"} <= set(columns), f"{name} has no such column"
        known.append([whole.get(column) for column in columns])
    if known:
        marks = ", ".join([f"({', '.join('?' * len(columns))})"] * len(known))
        connection.execute(f"INSERT INTO {name} VALUES {marks}", [value for row in known for value in row])  # noqa: S608


def judge(connection: duckdb.DuckDBPyConnection, rule: Rule, golden: dict[str, Any], tables: Tables) -> tuple[str, str]:
    """Return the verdict of a rule about these tables, and its sentence, which must be one."""
    connection.execute("CREATE OR REPLACE TEMP TABLE earlier_findings AS FROM findings")
    for name in rule.about.needs:
        fill(connection, name, list(tables.get(name, {}).values()), golden.get("common", {}))
    thresholds = {**STUDY, **{name: one.default for name, one in rule.about.thresholds.items()}}
    for name, value in thresholds.items():
        connection.execute(f"SET VARIABLE {name} = ?", [float(value)])
    wanted = golden.get("judged", {})
    condition = " AND ".join(["true", *(f"{column} = ?" for column in wanted)])
    query = f"FROM ({rule.query_file.read_text()}) SELECT *, to_json(evidence)::VARCHAR AS told WHERE {condition}"
    cursor = connection.execute(query, list(wanted.values()))
    ((*values,),) = cursor.fetchall()
    row = {**dict.fromkeys(RULE_COLUMNS), **dict(zip([one[0] for one in cursor.description], values, strict=True))}
    row["evidence"] = json.loads(row.pop("told"))
    sentence = Sentences({}).say(rule, row)
    assert sentence.endswith(".")
    assert "None" not in sentence
    if any(str(effect.get("metric")).startswith("wait_") for effect in tables.get("effects", {}).values()):
        assert "watch: [waits]" not in sentence, "they were watched"
    return str(row["verdict"]), sentence


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_ten_cases_that_differ_from_their_copies_in_one_value(rule: str) -> None:
    golden = read_golden(rule)
    assert len(golden["cases"]) >= 10
    assert len({case["case"] for case in golden["cases"]}) == len(golden["cases"])
    for case in golden["cases"]:
        before = change(golden["usual"], case.get("set", {}))
        ((path, after),) = case["but"].items()
        table, row, column = path.split(".")
        assert after != {**golden.get("common", {}), **before[table][row]}.get(column)
        assert case["then"] != case["verdict"]
    shown = {case[key] for case in golden["cases"] for key in ("verdict", "then")}
    assert shown == set(VERDICTS) - ({"mismatch"} if rule in ONLY_POINTING else set()), "each verdict is shown"


@pytest.mark.parametrize(("rule", "golden", "case"), list_cases())
def test_a_golden_case_has_its_verdict(
    empty: duckdb.DuckDBPyConnection, rule: str, golden: dict[str, Any], case: dict[str, Any]
) -> None:
    tables = change(golden["usual"], case.get("set", {}))
    verdict, sentence = judge(empty, read_rule_once(rule), golden, tables)
    assert verdict == case["verdict"]
    assert case.get("says", "") in loosen_units(sentence)


@pytest.mark.parametrize(("rule", "golden", "case"), list_cases())
def test_a_golden_case_with_another_value_has_another_verdict(
    empty: duckdb.DuckDBPyConnection, rule: str, golden: dict[str, Any], case: dict[str, Any]
) -> None:
    tables = change(change(golden["usual"], case.get("set", {})), case["but"])
    assert judge(empty, read_rule_once(rule), golden, tables)[0] == case["then"]
