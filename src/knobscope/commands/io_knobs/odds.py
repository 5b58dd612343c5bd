"""How likely a knob is to steer I/O: by text and code of the DBMS, and by what pairs of runs have shown."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from knobscope.commands.io_knobs.pairs import Comparison
from knobscope.knob_texts import MechanismModel, list_strangers, read_labelled
from knobscope.machine_code import Program, find_server, read_code
from knobscope.specs import Dbms

#: Log odds of a change of I/O, and of none; see docs/evidence/introspect.md.
_BY_CHANGE, _BY_NO_CHANGE = 2.0, -0.3


def judge_texts(dbms: Dbms, names: Iterable[str], specs: Path) -> dict[str, float]:
    """Return log odds by name, description and code; learned from other DBMSs, without relatives of this one.

    So what is marked about the DBMS itself can serve as a check.
    """
    labelled = read_labelled(specs)
    texts = labelled.get(dbms.name, {})
    knobs = {name: {**dbms.knobs[name].model_dump(), **_described(texts.get(name, {}))} for name in names}
    server = find_server(dbms)
    code = read_code(Program(server), knobs) if server is not None else None
    return MechanismModel(list_strangers(dbms.name, texts or knobs, labelled)).odds(knobs, code)


def _described(text: Mapping[str, Any]) -> dict[str, Any]:
    return {key: text[key] for key in ("description", "unit") if text.get(key)}


def order_by_doubt(odds: Mapping[str, float]) -> list[str]:
    """Return the knobs, those first of which text and code say least."""
    return sorted(odds, key=lambda name: abs(odds[name]))


def add_runs(odds: Mapping[str, float], comparisons: Iterable[Comparison]) -> dict[str, float]:
    """Return log odds with what runs have shown: that any value changes the I/O, or that none did."""
    shown: dict[str, bool] = {}
    for comparison in comparisons:
        if comparison.verdict != "failed":
            shown[comparison.knob] = shown.get(comparison.knob, False) or comparison.verdict == "related"
    evidence = {name: _BY_CHANGE if is_related else _BY_NO_CHANGE for name, is_related in shown.items()}
    return {name: value + evidence.get(name, 0.0) for name, value in odds.items()}
