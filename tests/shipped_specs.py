"""Specs that are shipped, as tests read them."""

from pathlib import Path

from knobscope.specs import Dbms, Generator, StudySpecs, Workload, load_study, read_spec

ROOT = Path(__file__).parents[1]
SPECS = ROOT / "specs"


def shipped_dbms(name: str) -> Dbms:
    return read_spec(SPECS / f"dbms/{name}.yaml", Dbms, None)[1]


def shipped_generator(name: str) -> Generator:
    return read_spec(SPECS / f"generators/{name}.yaml", Generator, None)[1]


def shipped_workload(name: str, **changes: object) -> Workload:
    return read_spec(SPECS / f"workloads/{name}.yaml", Workload, None)[1].model_copy(update=changes)


def shipped_study(name: str) -> StudySpecs:
    return load_study(SPECS / f"studies/{name}.yaml", ROOT, runnable=False)
