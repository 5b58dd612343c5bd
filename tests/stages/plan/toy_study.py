"""A study of a DBMS that only planning knows."""

from typing import Any

from knobscope.specs import Case, Dbms, Device, Study, StudySpecs, Workload

CASE = Case("toy", "disk", "load")


def make_dbms(knobs: dict[str, dict[str, Any]]) -> Dbms:
    """Return the spec of a DBMS with these knobs."""
    return Dbms.model_validate(
        {
            "name": "toy",
            "description": "a spec for tests of planning",
            "version_sql": "select 1",
            "writing": {moment: {"sql": "set {knob}={value}"} for moment in ("restart", "load")},
            "readback": {"each": "show {knob}"},
            "connection": {"binding": "none", "properties": {}},
            "loading": {"tables": ["create table t (x int)"]},
            "knobs": knobs,
        }
    )


def make_specs(
    knobs: dict[str, tuple[dict[str, Any], dict[str, Any] | None]], *unvaried: str, **more: Any
) -> StudySpecs:
    """Return a study that varies all knobs but some."""
    dbms = make_dbms({name: about for name, (about, _) in knobs.items()})
    study = {
        "name": "toys",
        "description": "tests",
        "dbms": ["toy"],
        "devices": ["disk"],
        "workloads": {"load": None},
        "knobs": {"toy": {name: choice for name, (_, choice) in knobs.items() if name not in unvaried}},
        "sweep": {"repeats": 2},
        **more,
    }
    workload = {"name": "load", "generator": "ycsb", "class": "write", "records": 10, "parameters": {}}
    return StudySpecs(
        Study.model_validate(study),
        {"toy": dbms},
        {"disk": Device(name="disk", description="a disk", tier="hdd", path=".")},
        {"load": Workload.model_validate(workload)},
    )
