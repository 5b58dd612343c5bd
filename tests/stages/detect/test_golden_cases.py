"""Golden cases: tables of a few rows with the verdict that a rule must give, and a copy in which one value differs.

`golden/RULE.yaml` holds the rows that all cases of a rule start from (table -> name of the row -> columns), and cases:
what they `set`, their `verdict`, what the sentence `says` then, and the one value (`but`) with which the verdict is
another one (`then`). Rows whose columns hold `margin` have an interval of that half-width around their estimate. Dbms,
device, workload and the columns under `common` are those of all rows. The rules' own queries judge, with their default
thresholds.
"""

import json
import re
from collections.abc import Callable, Iterator
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

#: Columns that name what a case has, and the sign between such a name and the number of the case.
NAMES, MARK = ("dbms", "device", "lower_device", "higher_device", "workload", "run_id"), "@"
#: Rules that count the DBMSs of the whole study.
OF_THE_STUDY = {"cross_check"}

Tables = dict[str, dict[str, dict[str, Any]]]
VerdictOf = Callable[[str, dict[str, Any], str], tuple[str, str]]


@cache
def read_golden(rule: str) -> dict[str, Any]:
    """Return what a file says; libyaml reads it in a tenth of the time."""
    content: dict[str, Any] = yaml.load((GOLDEN / f"{rule}.yaml").read_text(), yaml.CSafeLoader)
    return content


def list_cases() -> list[Any]:
    goldens = {rule: read_golden(rule) for rule in RULES}
    return [
        pytest.param(rule, case, id=f"{rule}: {case['case']}")
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


def fill(connection: duckdb.DuckDBPyConnection, name: str, numbered: dict[int, Tables], common: dict[str, Any]) -> None:
    """Put what cases have of a table into it, under names of their own; a column that no row names is NULL."""
    columns, known = columns_of(connection, name), []
    for number, tables in numbered.items():
        for row in tables.get(name, {}).values():
            whole = {**CASE, **common, **row}
            if "margin" in row:
                margin = whole.pop("margin")
                whole |= {"low": whole["estimate"] - margin, "high": whole["estimate"] + margin}
            assert set(row) - {"margin"} <= set(columns), f"{name} has no such column"
            whole |= {column: f"{whole[column]}{MARK}{number}" for column in NAMES if whole.get(column)}
            known.append([whole.get(column) for column in columns])
    connection.execute(f"DELETE FROM {name}")  # noqa: S608
    if known:
        marks = ", ".join([f"({', '.join('?' * len(columns))})"] * len(known))
        connection.execute(f"INSERT INTO {name} VALUES {marks}", [value for row in known for value in row])  # noqa: S608


def judge(
    connection: duckdb.DuckDBPyConnection, rule: Rule, golden: dict[str, Any], numbered: dict[int, Tables]
) -> dict[int, tuple[str, str]]:
    """Return the verdict of a rule about each of these cases, which must be one, and its sentence."""
    connection.execute("CREATE OR REPLACE TEMP TABLE earlier_findings AS FROM findings")
    for name in rule.about.needs:
        fill(connection, name, numbered, golden.get("common", {}))
    thresholds = {**STUDY, **{name: one.default for name, one in rule.about.thresholds.items()}}
    for name, value in thresholds.items():
        connection.execute(f"SET VARIABLE {name} = ?", [float(value)])
    wanted = golden.get("judged", {})
    condition = " AND ".join(["true", *(f"starts_with({column}, ?)" for column in wanted)])
    query = f"FROM ({rule.query_file.read_text()}) SELECT *, to_json(evidence)::VARCHAR AS told WHERE {condition}"
    cursor = connection.execute(query, [f"{name}{MARK}" for name in wanted.values()])
    columns = [one[0] for one in cursor.description]
    judged: dict[int, tuple[str, str]] = {}
    for values in cursor.fetchall():
        row = {**dict.fromkeys(RULE_COLUMNS), **dict(zip(columns, values, strict=True))}
        row["evidence"] = json.loads(row.pop("told"))
        number = int(row["workload"].partition(MARK)[2])
        assert number not in judged, "a case has one finding"
        sentence = re.sub(rf"{MARK}\d+", "", Sentences({}).say(rule, row))
        assert not re.search(r"\w\(", sentence), sentence  # a tag of the template takes the end of its line away
        judged[number] = row["verdict"], sentence
    return judged


@pytest.fixture(scope="module")
def verdict_of(database: duckdb.DuckDBPyConnection) -> VerdictOf:
    """Return a function that gives verdict and sentence about a case of a rule, or about its copy (`but`).

    To plan the query of a rule takes nearly all of the time that it takes, so it judges all cases at once: they share
    no name. A rule of `OF_THE_STUDY` judges each in a study of its own.
    """

    @cache
    def judge_all(rule: str) -> dict[int, tuple[str, str]]:
        golden = read_golden(rule)
        numbered = {}
        for number, case in enumerate(golden["cases"]):
            numbered[2 * number] = change(golden["usual"], case.get("set", {}))
            numbered[2 * number + 1] = change(numbered[2 * number], case["but"])
        groups = [{number: numbered[number]} for number in numbered] if rule in OF_THE_STUDY else [numbered]
        read, judged = read_shipped_rule(rule), {}
        for group in groups:
            judged |= judge(database, read, golden, group)
        for number, (_, sentence) in judged.items():
            assert sentence.endswith(".")
            assert "None" not in sentence
            effects = numbered[number].get("effects", {}).values()
            if any(str(effect.get("metric")).startswith("wait_") for effect in effects):
                assert "watch: [waits]" not in sentence, "they were watched"
        return judged

    return lambda rule, case, key: judge_all(rule)[2 * read_golden(rule)["cases"].index(case) + (key == "then")]


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


@pytest.mark.parametrize(("rule", "case"), list_cases())
def test_a_golden_case_has_its_verdict(verdict_of: VerdictOf, rule: str, case: dict[str, Any]) -> None:
    verdict, sentence = verdict_of(rule, case, "verdict")
    assert verdict == case["verdict"]
    assert case.get("says", "") in loosen_units(sentence)


@pytest.mark.parametrize(("rule", "case"), list_cases())
def test_a_golden_case_with_another_value_has_another_verdict(
    verdict_of: VerdictOf, rule: str, case: dict[str, Any]
) -> None:
    assert verdict_of(rule, case, "then")[0] == case["then"]
