"""Runs mismatch rules: one query each, whose rows become findings with a sentence.

A query reads the study's database and the thresholds of the study as variables: getvariable('fdr'), 'min_effect', and
those that rules have of their own. It returns dbms, device, workload and verdict, and where it can: knob, value, effect
(with effect_low and effect_high, relative changes), penalty and evidence (a struct). It cannot write, and reads no
files.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from knobscope.errors import UserError
from knobscope.specs import VERDICTS, Case, Rule, SpecErrors, StudySpecs, is_factor
from knobscope.specs.reading.source import SpecProblem, read_text, show_path
from knobscope.stages.detect.interactions import read_interactions
from knobscope.stages.detect.layouts import leave_open, read_other_devices
from knobscope.stages.detect.pauses import read_pauses
from knobscope.stages.detect.penalties import limit_penalty
from knobscope.stages.detect.rule_queries import (
    RULE_COLUMNS,
    check_columns,
    check_needs,
    describe_error,
    open_to_rules,
)
from knobscope.stages.detect.shares import add_shares, leave_open_excluded
from knobscope.tables import bounded, fetch_rows, insert_rows
from knobscope.tables.detection import FindingRow, ReturnedRow
from knobscope.text.sentences import Sentences

if TYPE_CHECKING:
    import duckdb


#: What tells a swept value.
_SWEPT = ("dbms", "device", "workload", "knob", "value")
#: Why what knobs of these mechanisms do is no mismatch. Those that limit I/O were nine false positives of the PVLDB
#: 2023 study.
_EXCUSES: dict[str | None, str] = {
    "throttle": "is there to hold I/O back, so that it does is no mismatch.",
    "workload": "is part of the load and no choice of the DBMS, so that it matters is no mismatch.",
    "kernel": "is a setting of the kernel below the DBMS, so that it matters is no mismatch of the DBMS.",
}


def run_rules(
    connection: "duckdb.DuckDBPyConnection", specs: StudySpecs, tested: Sequence[FindingRow] = ()
) -> list[FindingRow]:
    """Return the findings of the study's rules, in this order; mismatches of a rule come first, the costliest on top.

    Knobs whose mechanism is `throttle` are not mismatched: what they hold back they hold back on purpose. Nor are
    settings of the workload and of the kernel's queues: they are no choice of the DBMS. That needs no evidence, so no
    verdict on them is *insufficient*.

    Where other devices of a layout served requests, too, what a rule concludes from those to the device of the data is
    *insufficient*.

    Where a value was compared together with a change of other knobs, evidence `beside` says which (knob -> value).

    Rules that judge what others found run after those, whatever their order. `tested`: findings of an earlier call that
    experiments have tested since; they are returned as they are, but for those of rules that judge what others found,
    which are made anew, and mismatches that explain the same effect say their shares of it, unless experiments measured
    these. The connection can reach no files afterwards. Raises UserError for a rule that needs a table
    that is not there, is no valid query, or returns something other than findings.
    """
    judge = _Judge(connection, specs)
    wanted = [rule for rule in specs.rules.values() if rule.about.reads_findings or not tested]
    names = {rule.name for rule in wanted}
    findings = [row for row in tested if row["rule"] not in names]
    insert_rows(connection, "findings", findings, into="earlier_findings")
    for rule in sorted(wanted, key=lambda rule: rule.about.reads_findings):
        rows = judge(rule)
        insert_rows(connection, "findings", rows, into="earlier_findings")
        findings += rows
    add_shares(findings, _list_tested(connection, "share IS NOT NULL"))
    leave_open_excluded(findings, _list_tested(connection, "is_gone AND other_device IS NULL"))
    order = list(dict.fromkeys([*(row["rule"] for row in tested), *specs.rules]))
    return sorted(findings, key=lambda row: order.index(row["rule"]))


class _Judge:
    """Makes the findings of a rule from what its query returns."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> None:
        self._connection, self._specs = connection, specs
        self._tables = open_to_rules(connection, specs)
        self._sentences, self._besides = Sentences(specs.dbms), _read_besides(connection)
        self._pauses, self._interactions = read_pauses(connection), read_interactions(connection)
        self._others = read_other_devices(connection)

    def __call__(self, rule: Rule) -> list[FindingRow]:
        rows = _run_rule(self._connection, rule, self._tables)
        for row in rows:
            leave_open(row, rule.about.needs, self._others.get((*Case.of(row), row["knob"], row["value"])))
        limits = [(row, limit_penalty(self._connection, rule, row)) for row in rows]
        limits.sort(key=lambda limit: _order(limit[0]))
        findings: list[FindingRow] = []
        for row, limit in limits:
            swept = (*Case.of(row), row["knob"], row["value"])
            if (beside := self._besides.get(swept)) is not None:
                row["evidence"]["beside"] = beside
            sentence = self._sentences.say(rule, row) + limit
            pause = self._pauses.get(swept)
            if pause is not None and (row["verdict"] == "mismatch" or pause.is_of_value):
                sentence += pause.sentence
            if row["verdict"] == "mismatch":
                sentence += self._interactions.get(swept, "")
            excuse = find_excuse(self._specs, row["dbms"], row["knob"])
            if excuse is not None and row["verdict"] in ("mismatch", "insufficient"):  # whatever could still be seen
                row["verdict"], row["penalty"] = "none", None
                sentence = f"{row['knob']} {excuse} {sentence}"
            cause = rule.about.cause.factor if rule.about.cause else None
            findings.append(
                {
                    "rule": rule.name,
                    **row,
                    "evidence": json.dumps(row["evidence"]),
                    "cause": cause,
                    "sentence": sentence,
                    "confirmed": "not_tested",  # nobody has tested its cause yet
                    "confirmation": None,
                }
            )
        return findings


def _read_besides(connection: "duckdb.DuckDBPyConnection") -> dict[tuple[str | None, ...], dict[str, str]]:
    """Return what other knobs are changed to where a value was measured, for values of which that is so."""
    names = ", ".join(_SWEPT)
    rows = connection.execute(f"SELECT DISTINCT {names}, beside FROM effects WHERE beside IS NOT NULL")  # noqa: S608
    return {key: json.loads(beside) for *key_, beside in rows.fetchall() if (key := tuple(key_))}


def _list_tested(connection: "duckdb.DuckDBPyConnection", condition: str) -> set[tuple[str | None, ...]]:
    """Return the effects that experiments say something of, as a condition on table `what_ifs`, by what tells them."""
    query = f"SELECT DISTINCT {', '.join(_SWEPT)} FROM what_ifs WHERE {condition}"  # noqa: S608 - words of ours
    return set(connection.execute(query).fetchall())


def is_own_knob(specs: StudySpecs, dbms: str, knob: str) -> bool:
    """Whether a factor is a knob of the DBMS: nothing of the load or the kernel, and no control."""
    known = specs.dbms[dbms].knobs.get(knob) if dbms in specs.dbms else None
    return not is_factor(knob) and not (known is not None and known.control)


def find_excuse(specs: StudySpecs, dbms: str, knob: str | None) -> str | None:
    """Return why what a knob does is no mismatch, as the end of a sentence that begins with it; None: it may be one."""
    known = specs.dbms[dbms].knobs.get(knob or "") if dbms in specs.dbms else None
    return _EXCUSES.get(known.mechanism) if known is not None else None


def _order(row: ReturnedRow) -> tuple[Any, ...]:
    """Mismatches first, the costliest on top; then by case, knob and value."""
    names = (row["dbms"], row["device"], row["workload"], row["knob"] or "", row["value"] or "")
    penalty = -row["penalty"] if row["penalty"] is not None else math.inf
    return (VERDICTS.index(row["verdict"]), penalty, *names)


def _run_rule(connection: "duckdb.DuckDBPyConnection", rule: Rule, tables: set[str]) -> list[ReturnedRow]:
    """Return what the query of a rule returns, with all columns and the evidence decoded."""
    import duckdb

    _refuse(check_needs(rule, tables))
    path = show_path(rule.query_file)
    try:
        with bounded(path):
            connection.execute(f"CREATE OR REPLACE TEMP TABLE returned AS {read_text(rule.query_file)}")
    except duckdb.Error as error:
        raise SpecErrors([describe_error(rule, error)]) from error
    returned = [row[0] for row in connection.execute("DESCRIBE returned").fetchall()]
    _refuse(check_columns(rule, returned))
    columns = ", ".join(_cast(name, kind) for name, kind in RULE_COLUMNS.items() if name in returned)
    result = connection.execute(f"SELECT {columns} FROM returned")  # noqa: S608 - columns of ours
    empty: dict[str, Any] = dict.fromkeys(RULE_COLUMNS)
    rows = [empty | {name: _known(value) for name, value in row.items()} for row in fetch_rows(result)]
    for row in rows:
        row["evidence"] = json.loads(row["evidence"] or "{}")
        if row["verdict"] not in VERDICTS:
            raise UserError(f"{path} returns verdict {row['verdict']!r}; expected one of {', '.join(VERDICTS)}")
        if row["penalty"] is not None and row["penalty"] <= 0:
            raise UserError(f"{path} returns penalty {row['penalty']:g}; expected a factor: 1.5 for half as much again")
    return cast("list[ReturnedRow]", rows)


def _cast(name: str, kind: str) -> str:
    return 'to_json("evidence")::VARCHAR AS evidence' if name == "evidence" else f'"{name}"::{kind} AS "{name}"'


def _known(value: Any) -> Any:
    """Return None for a number that is none, or not finite: nothing of the kind was measured."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _refuse(problems: Iterable[SpecProblem]) -> None:
    if found := list(problems):
        raise SpecErrors(found)
