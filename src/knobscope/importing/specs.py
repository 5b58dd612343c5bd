"""The specs of imported runs: what the table says of its knobs, completed by the DBMS's own spec where there is one."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from knobscope.importing.runs import ImportedTable
from knobscope.specs import Dbms, Knob, Value

__all__ = ["ImportedKnob", "imported_knobs", "spec_files"]

#: Only a machine that measures needs more of a DBMS; these words say so to whoever tries.
_NOT_HERE = "imported-runs-cannot-be-measured-again"
_SOURCE = "https://example.org/imported"


class ImportedKnob:
    """The values of one knob in the table, of one type, in the order that counts as raising it."""

    def __init__(self, texts: Sequence[str], known: Knob | None, facts: Mapping[str, Any]) -> None:
        self.order = _split(facts.get("order"))
        every = list(dict.fromkeys([*([facts["baseline"]] if "baseline" in facts else []), *texts]))
        self.special = _split(facts.get("special")) or list(map(str, known.special if known is not None else ()))
        self.type = (
            "enum" if self.order else _common_type([text for text in every if text not in self.special] or every)
        )
        if known is not None and _fits(known, self.type):
            self.type = known.type
        self.known = known if known is not None and known.type == self.type else None
        self.facts = facts
        self.values = {text: _convert(text, self.type, self.known) for text in every}
        default = self.known.default if self.known is not None else None
        self.reference = self.values[facts["baseline"]] if "baseline" in facts else default

    @property
    def is_unordered(self) -> bool:
        """Whether nobody said which of its words is more."""
        return self.type == "enum" and not self.order and (self.known is None or self.known.values is None)

    def spec(self) -> dict[str, Any]:
        """Return the knob as a spec has it."""
        about: dict[str, Any] = {"mechanism": "other", "source": _SOURCE}
        if self.known is not None:
            about |= self.known.model_dump(
                exclude_unset=True, exclude={"requires", "when", "writing", "alias", "reads_back"}
            )
        about |= {key: self.facts[key] for key in ("unit", "expect", "mechanism", "durability") if key in self.facts}
        if self.is_unordered:
            about.pop("expect", None)  # raising it means nothing
        if (about["mechanism"], about.get("expect")) != ("other", "none"):
            about.pop("control", None)  # the table knows better than the spec
        values = [*self.values.values(), *([] if self.reference is None else [self.reference])]
        about |= {
            "type": self.type,
            "apply": "restart",
            "default": values[0] if self.reference is None else self.reference,
        }
        if self.type in ("integer", "real"):
            self._add_range(about, values)
        elif self.type == "enum":
            words = dict.fromkeys([*(self.order or about.get("values") or []), *values])
            about["values"] = [*words, *(["other"] if len(words) < 2 else [])]
        return about

    def _add_range(self, about: dict[str, Any], values: Sequence[Value]) -> None:
        """Add the range that the numbers span, special ones apart."""
        special = {_convert(text, self.type, self.known): "special" for text in self.special}
        about["special"] = {**special, **about.get("special", {})}
        ends: list[Any] = [value for value in values if value not in about["special"]] + (about.get("range") or [])
        low, high = min(ends, default=0), max(ends, default=1)
        about["range"] = [low, high if high > low else low + 1]
        if low <= 0:
            about.pop("scale", None)


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in text.split("|")] if text is not None else []


def imported_knobs(table: ImportedTable, known: Mapping[str, Dbms]) -> dict[str, dict[str, ImportedKnob]]:
    """Return DBMS -> knob -> its values; `known` are the specs of DBMSs that there are."""
    texts: dict[str, dict[str, list[str]]] = {}
    for run in table.runs:
        knobs = texts.setdefault(run.case.dbms, {})
        if run.knob is not None and run.value is not None:
            knobs.setdefault(run.knob, []).append(run.value)
    found: dict[str, dict[str, ImportedKnob]] = {}
    for dbms, knobs in texts.items():
        specs = known[dbms].knobs if dbms in known else {}
        found[dbms] = {}
        for knob, values in knobs.items():
            facts = table.knob_facts.get((dbms, knob), {})
            found[dbms][knob] = ImportedKnob(values, specs.get(knob), facts)
    return found


def spec_files(
    name: str, table: ImportedTable, knobs: Mapping[str, Mapping[str, ImportedKnob]], known: Mapping[str, Dbms]
) -> dict[Path, dict[str, Any]]:
    """Return path below `specs` -> content, for a study of everything in the table."""
    devices = dict.fromkeys(run.case.device for run in table.runs)
    workloads = dict.fromkeys(run.case.workload for run in table.runs)
    files: dict[Path, dict[str, Any]] = {}
    for dbms, found in knobs.items():
        content = _dbms(dbms, known.get(dbms), {knob: one.spec() for knob, one in found.items()})
        files[Path("dbms") / f"{dbms}.yaml"] = content
    for device in devices:
        facts = table.case_facts[("device", device)]
        about = {"name": device, "description": f"device of imported runs ({facts['tier']})", "path": "."}
        files[Path("devices") / f"{device}.yaml"] = {**about, **facts}
    for workload in workloads:
        facts = table.case_facts[("workload", workload)]
        files[Path("workloads") / f"{workload}.yaml"] = {
            "name": workload,
            "description": "workload of imported runs",
            "generator": "ycsb",
            "class": facts.get("workload_class", "write"),
            "records": 1,
            **({"threads": facts["threads"]} if facts.get("threads") else {}),
            "parameters": {},
        }
    files[Path("studies") / f"{name}.yaml"] = {
        "name": name,
        "description": f"{len(table.runs)} runs that were measured elsewhere",
        "dbms": list(knobs),
        "devices": list(devices),
        "workloads": dict.fromkeys(workloads),
        "knobs": {dbms: dict.fromkeys(found) for dbms, found in knobs.items()},
    }
    return files


def _dbms(name: str, known: Dbms | None, knobs: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "description": known.description if known is not None else "a DBMS that was measured elsewhere",
        "version_sql": _NOT_HERE,
        "writing": {"restart": {"sql": f"{_NOT_HERE} {{knob}} {{value}}"}},
        "readback": {"each": f"{_NOT_HERE} {{knob}}"},
        "connection": {"binding": _NOT_HERE, "properties": {}},
        "loading": {"tables": [_NOT_HERE]},
        "knobs": knobs,
    }


def _fits(known: Knob, kind: str) -> bool:
    """Whether values of this type are values of the type that the spec gives the knob."""
    return known.type in (kind, "enum") or (kind, known.type) == ("integer", "real")


def _common_type(texts: Sequence[str]) -> str:
    if all(re.fullmatch(r"[-+]?\d+", text) for text in texts):
        return "integer"
    if all(_is_number(text) for text in texts):
        return "real"
    return "boolean" if set(texts) <= {"true", "false"} else "enum"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", text) is not None


def _convert(text: str, kind: str, known: Knob | None) -> Value:
    if kind == "enum":
        listed = {str(value): value for value in (known.values if known is not None else None) or []}
        return listed.get(text, text)
    if kind == "boolean":
        return text == "true"
    if known is not None and not _is_number(text):
        return text  # a special value that is a word
    return float(f"{float(text):.6g}") if kind == "real" else int(text)
