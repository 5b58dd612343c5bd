"""Compares what a configuration asks for with what the DBMS says is in force."""

from collections.abc import Mapping
from typing import Any

from knobscope.servers.instance import Configuration
from knobscope.specs import Dbms, Knob, Value

__all__ = ["compare_effective", "readback_request"]


def readback_request(dbms: Dbms, knobs: list[str]) -> dict[str, Any]:
    """Return the question the load client asks on each of its connections, in the client's form."""
    readback = dbms.readback
    if readback.query is not None:
        return {"query": readback.query}
    names = {knob: dbms.knobs[knob].alias or knob for knob in knobs}
    return {"each": {knob: (readback.each or "").format(knob=name) for knob, name in names.items()}}


def compare_effective(
    dbms: Dbms, configuration: Configuration, effective: Mapping[str, str]
) -> tuple[list[dict[str, str | None]], list[str]]:
    """Return rows (knob, requested, effective), and the knobs whose value is not in force.

    Numbers are compared as numbers, booleans in any spelling, and a value that the DBMS writes differently
    through the knob's `reads_back`.
    """
    rows: list[dict[str, str | None]] = []
    differing = []
    for name, value in configuration.items():
        answer = effective.get(name)
        rows.append({"knob": name, "requested": dbms.write(name, value), "effective": answer})
        if answer is None or not _is_same(dbms, dbms.knobs[name], value, answer):
            differing.append(name)
    return rows, differing


def _is_same(dbms: Dbms, knob: Knob, value: Value, answer: str) -> bool:
    expected = knob.reads_back.get(value, value)
    if isinstance(expected, bool):
        spellings = (
            {"0", "off", "false", "no", dbms.booleans[0]},
            {"1", "on", "true", "yes", dbms.booleans[1]},
        )
        return answer.lower() in spellings[int(expected)]
    if isinstance(expected, int | float):
        try:
            return float(answer) == float(expected)
        except ValueError:
            return False
    return answer.lower() == expected.lower()
