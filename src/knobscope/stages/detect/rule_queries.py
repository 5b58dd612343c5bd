"""Queries of rules: what they may name and must return, checked against a database or, before any run, an empty one.

What their sentences name is checked against what the query returns.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from knobscope.specs import Rule, SpecErrors, StudySpecs, suggest
from knobscope.specs.models.rule import line_of
from knobscope.specs.reading.source import SpecProblem, load_document, read_text, show_path
from knobscope.stages.detect.database import create_schema
from knobscope.tables import TABLES, bounded, describe_refusal, lock
from knobscope.text.sentences.rendering import find_unknown

if TYPE_CHECKING:
    import duckdb

#: What the query of a rule returns, in any order.
RULE_COLUMNS = {
    name: kind
    for name, kind in TABLES["findings"].items()
    if name not in ("rule", "cause", "sentence", "confirmed", "confirmation")
}
_REQUIRED = ("dbms", "device", "workload", "verdict")
#: The slowest of the shipped queries is bound in 0.2 s.
_BINDING_SECONDS = 10


def check_queries(specs: StudySpecs) -> None:
    """Raise SpecErrors for what is wrong in the queries of a study's own rules: what they name, and what they return.

    They are bound to the tables, views and macros of an empty database, and not run; they reach no files. DuckDB
    calculates constants meanwhile, which have their own limits of time and memory.
    """
    import duckdb

    if not specs.own_rules:
        return
    with duckdb.connect() as connection:
        create_schema(connection)
        tables = open_to_rules(connection, specs)
        rules = (_check_query(connection, rule, tables, specs.thresholds) for rule in specs.own_rules)
        if problems := [problem for found in rules for problem in found]:
            raise SpecErrors(problems)


def open_to_rules(connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> set[str]:
    """Lock a connection, and give it what queries of rules read apart from the study's database.

    Returns the tables and views that they may read.
    """
    lock(connection)
    for name, value in specs.thresholds.items():
        connection.execute(f"SET VARIABLE {name} = ?", [float(value)])
    connection.execute("CREATE OR REPLACE TEMP TABLE earlier_findings AS FROM findings LIMIT 0")
    return {row[0] for row in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}


def _check_query(
    connection: "duckdb.DuckDBPyConnection", rule: Rule, tables: Collection[str], thresholds: Collection[str]
) -> Iterator[SpecProblem]:
    import duckdb

    yield from check_needs(rule, tables)
    text = read_text(rule.query_file)
    for match in re.finditer(r"getvariable\('(\w+)'\)", text):
        if match[1] not in thresholds:  # it would be NULL, and so would what it decides
            line = text.count("\n", 0, match.start()) + 1
            expected = f"one of {', '.join(sorted(thresholds))}"
            yield SpecProblem(show_path(rule.query_file), line, "", f"no threshold {match[1]!r}", expected)
    try:
        with bounded(show_path(rule.query_file), _BINDING_SECONDS):
            columns = connection.execute(f"DESCRIBE {text}").fetchall()
    except duckdb.Error as error:
        yield describe_error(rule, error)
    else:
        yield from check_columns(rule, [row[0] for row in columns])
        yield from check_sentences(rule, {row[0]: row[1] for row in columns})


def check_needs(rule: Rule, tables: Collection[str]) -> Iterator[SpecProblem]:
    """Yield the tables that a rule says it needs, and that are not there."""
    for index, name in enumerate(rule.about.needs):
        if name not in tables:
            expected = f"one of {', '.join(sorted(tables))}"
            yield load_document(rule.about_file).problem(("needs", index), repr(name), expected)


def check_columns(rule: Rule, returned: Collection[str]) -> Iterator[SpecProblem]:
    """Yield the columns that a query returns and must not, or does not and must."""
    path = show_path(rule.query_file)
    for name in returned:
        if name not in RULE_COLUMNS:
            yield SpecProblem(path, 1, "", f"a column {name!r}", f"some of {', '.join(RULE_COLUMNS)}")
    for name in _REQUIRED:
        if name not in returned:
            yield SpecProblem(path, 1, "", f"no column {name!r}", f"at least {', '.join(_REQUIRED)}")


def check_sentences(rule: Rule, returned: Mapping[str, str]) -> Iterator[SpecProblem]:
    """Yield the names in a rule's sentences that no finding has, of a query that returns columns of these types."""
    import duckdb

    kind = returned.get("evidence", "")
    keys = [name for name, _ in duckdb.sqltype(kind).children] if kind.startswith("STRUCT") else None
    for line, name, names in find_unknown(read_text(rule.sentence_file), RULE_COLUMNS, keys):
        yield SpecProblem(show_path(rule.sentence_file), line, "", f"no {name!r}", suggest(name, names))


def describe_error(rule: Rule, error: "duckdb.Error") -> SpecProblem:
    """Return what DuckDB refused in a query, with the names that it suggests instead."""
    message = str(error)
    hints = [line for line in message.splitlines() if line.startswith(("Did you mean", "Candidate bindings"))]
    found = " ".join([describe_refusal(error), *hints])
    expected = "a query that DuckDB can run on a study's database"
    return SpecProblem(show_path(rule.query_file), line_of(message), "", found, expected)
