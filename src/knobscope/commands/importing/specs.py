"""The specs of imported runs: what the table says of its knobs, completed by the DBMS's own spec where there is one."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from knobscope.commands.importing.knobs import ImportedKnob
from knobscope.commands.importing.runs import ImportedTable
from knobscope.specs import Dbms
from knobscope.specs.models.expression import parse_expression

#: Only a machine that measures needs more of a DBMS; these words say so to whoever tries.
_NOT_HERE = "imported-runs-cannot-be-measured-again"


def spec_files(
    name: str, table: ImportedTable, knobs: Mapping[str, Mapping[str, ImportedKnob]], known_dbms: Mapping[str, Dbms]
) -> dict[Path, dict[str, Any]]:
    """Return path below `specs` -> content, for a study of everything in the table."""
    devices = dict.fromkeys(run.case.device for run in table.runs)
    workloads = dict.fromkeys(run.case.workload for run in table.runs)
    files: dict[Path, dict[str, Any]] = {}
    for dbms, dbms_knobs in knobs.items():
        described = {knob: _with_own_risks(imported.spec(), dbms_knobs) for knob, imported in dbms_knobs.items()}
        files[Path("dbms") / f"{dbms}.yaml"] = _dbms(dbms, known_dbms.get(dbms), described)
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
        "knobs": {dbms: {knob: _choice(imported) for knob, imported in of.items()} for dbms, of in knobs.items()},
    }
    return files


def _with_own_risks(about: dict[str, Any], knobs: Collection[str]) -> dict[str, Any]:
    """Return a knob of which a value is a risk in any case where the table lacks a knob that decides."""
    marks = about.get("durability")
    if not isinstance(marks, dict):
        return about
    lacking = {value for value, mark in marks.items() if mark is not True and parse_expression(mark).names - set(knobs)}
    return {**about, "durability": {**marks, **dict.fromkeys(lacking, True)}}


def _choice(knob: ImportedKnob) -> dict[str, Any] | None:
    return None if knob.levels is None else {"values": knob.levels}


def _dbms(name: str, spec: Dbms | None, knobs: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "description": spec.description if spec is not None else "a DBMS that was measured elsewhere",
        "version_sql": _NOT_HERE,
        # A property takes quotes and semicolons as they are; nothing is ever written to the DBMS.
        "writing": {"restart": {"client": f"{_NOT_HERE}.{{knob}}"}},
        "readback": {"each": f"{_NOT_HERE} {{knob}}"},
        "connection": {"binding": _NOT_HERE, "properties": {}},
        "loading": {"tables": [_NOT_HERE]},
        "knobs": knobs,
    }
