"""Table `setup`: what the specs said when a database was made; a comparison of two studies begins with it.

Specs change, and results are copied elsewhere, so a database that is compared with another one has to tell by itself
what was asked.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from knobscope import __version__
from knobscope.identity import hash_identity
from knobscope.specs import Dbms, Device, StudySpecs, Workload, select_fields

#: What names a spec or tells where a device is on this machine says nothing about what it is.
_NAMES = ("name", "path")


def setup_rows(specs: StudySpecs) -> list[dict[str, Any]]:
    """Return the rows of table `setup`."""
    study = specs.study
    settings = {
        "thresholds": {"fdr": study.thresholds.fdr, "min_effect": study.thresholds.min_effect},
        "monitor": study.monitor,
        "watch": study.watch,
        "trace": study.trace,
        "client": select_fields(study.client, "run") if study.client else None,
    }
    parts: list[tuple[str, str, Mapping[str, Any]]] = [
        ("knobscope", "knobscope", {"version": __version__}),
        ("study", study.name, settings),
        *(("dbms", name, {"digest": _digest(dbms)}) for name, dbms in specs.dbms.items()),
        *(("device", name, _of_device(device)) for name, device in specs.devices.items()),
        *(("workload", name, _of_workload(workload)) for name, workload in specs.workloads.items()),
    ]
    return [
        {"part": part, "name": name, "property": field, "value": value}
        for part, name, content in parts
        for field, value in _flatten(content)
    ]


def _digest(dbms: Dbms) -> str:
    """Return a digest of how a DBMS is started, set and loaded, its knobs apart."""
    bare = dbms.model_copy(update={"knobs": {}, "name": ""})
    return hash_identity({"data": select_fields(bare, "data"), "run": select_fields(bare, "run")}, 8)


def _of_device(device: Device) -> dict[str, Any]:
    wanted = device.precondition
    properties = {"tier": device.tier, **select_fields(device, "run")}
    precondition = {"precondition": wanted.model_dump(mode="json")} if wanted else {}
    return {name: value for name, value in {**properties, **precondition}.items() if name not in _NAMES}


def _of_workload(workload: Workload) -> dict[str, Any]:
    properties = {"class": workload.class_, **select_fields(workload, "data"), **select_fields(workload, "run")}
    properties["measure_operations"] = workload.measure_operations
    return {name: value for name, value in properties.items() if name not in (*_NAMES, "class_")}


def _flatten(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, value as text) of all that is stated: fields within fields get names with dots."""
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{before}{name}.")
        elif value is not None:
            # A default of 5 and a stated 5.0 are the same.
            plain = int(value) if isinstance(value, float) and value.is_integer() else value
            yield f"{before}{name}", plain if isinstance(plain, str) else json.dumps(plain)
