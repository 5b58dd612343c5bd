"""One cause, one mismatch: findings of several rules, values, devices and workloads that a knob brings about together.

He et al. (PVLDB 16(7), 2023) count 123 symptoms of 17 causes in the same way.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from knobscope.tables.detection import FindingRow

Column = Literal["rule", "dbms", "device", "workload"]


@dataclass(frozen=True)
class Mismatch:
    """Findings with one cause, those whose rules name it first, each the costliest first; `number` counts from 1."""

    number: int
    findings: list[FindingRow]

    @property
    def worst(self) -> FindingRow:
        """The costliest finding, of a rule that names the cause if there is one."""
        return self.findings[0]

    @property
    def knob(self) -> str | None:
        """The knob; None: the default configuration itself, whatever the knobs are set to."""
        return self.worst["knob"]

    @property
    def cause(self) -> str | None:
        """What the rules blame, or an experiment found; None where nobody named a cause."""
        return next((row["cause"] for row in self.findings if row["cause"]), None)

    def names(self, column: Column) -> list[str]:
        """Return what its findings have in a column, each once, in their order."""
        return list(dict.fromkeys(row[column] for row in self.findings))


def merge_findings(findings: Iterable[FindingRow]) -> list[Mismatch]:
    """Return the mismatches of a study, the costliest first, without those whose cause an experiment refuted.

    Findings belong together when they have DBMS, knob and cause in common, and none contradicts another: the same
    change makes no case of a mismatch faster and another one slower. One whose rule names no cause joins those of its
    knob if they all have the same one; otherwise findings without a cause stand for themselves, rule by rule.
    """
    mismatches = [row for row in findings if row["verdict"] == "mismatch" and row["confirmed"] != "no"]
    mismatches.sort(key=lambda row: (-(row["penalty"] or 0), *_case_of(row)))
    causes: dict[tuple[str, str | None], set[str]] = {}
    for row in mismatches:
        if (cause := row["cause"]) is not None:
            causes.setdefault((row["dbms"], row["knob"]), set()).add(cause)
    groups: list[tuple[tuple[str | None, ...], list[FindingRow]]] = []
    for row in mismatches:
        named = causes.get((row["dbms"], row["knob"]), set()) if row["knob"] else set()
        joined = row["cause"] or (next(iter(named)) if len(named) == 1 else None)
        key = (row["dbms"], row["knob"], joined or f"rule {row['rule']}")
        own = [
            rows
            for group_key, rows in groups
            if group_key == key and not any(_contradict(row, member) for member in rows)
        ]
        if own:  # where its case is, if it is anywhere
            max(own, key=lambda rows: any(_is_same_case(row, member) for member in rows)).append(row)
        else:
            groups.append((key, [row]))
    return [
        Mismatch(number, sorted(rows, key=lambda row: row["cause"] is None or row["confirmed"] == "found"))
        for number, (_, rows) in enumerate(groups, 1)
    ]


def _contradict(row: FindingRow, other: FindingRow) -> bool:
    """Whether two cases go opposite ways: with the same value, or with values on one scale."""
    if _is_same_case(row, other):
        return False
    (change, step), (other_change, other_step) = _direction(row), _direction(other)
    if row["value"] == other["value"]:
        return change * other_change < 0
    return change * step * other_change * other_step < 0


def _is_same_case(row: FindingRow, other: FindingRow) -> bool:
    return (row["device"], row["workload"]) == (other["device"], other["workload"])


def _direction(row: FindingRow) -> tuple[float, int]:
    """Return which way the change moves throughput (0: not known), and the knob (0: no direction)."""
    evidence = json.loads(row.get("evidence") or "{}")
    ratio = evidence.get("throughput_ratio")
    return (math.log(ratio) if ratio else 0.0), evidence.get("step") or 0


def _case_of(row: FindingRow) -> tuple[str, ...]:
    return row["rule"], row["dbms"], row["device"], row["workload"], row["knob"] or "", row["value"] or ""
