"""What defines loaded data and a run: one answer for the store, for names of loaded data, and for Snakemake's `params`.

Of specs it is the fields that `specs.identity` says; of the machine, the contents of the programs and libraries that
these lead to. Nothing is run to find out: a dry run asks here, too.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from knobscope.errors import UserError
from knobscope.generators import client_libraries, has_own_tables
from knobscope.specs import (
    Case,
    Dbms,
    Device,
    Generator,
    StudySpecs,
    Workload,
    digest_of,
    factor_knob,
    find_path,
    find_program,
    select_fields,
    shapes_data,
)

#: Raised whenever a change of `prepare` or `measure` makes earlier runs incomparable.
MEASURE_VERSION = 3
#: Digests of the programs with which a pipeline began, for its jobs.
_PROGRAMS_VARIABLE = "KNOBSCOPE_PROGRAMS"

Identity = dict[str, Any]


def hash_identity(identity: Mapping[str, Any], length: int) -> str:
    """Return a hash of so many hexadecimal digits."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:length]


def data_identity(dbms: Dbms, workload: Workload, generator: Generator | None, knobs: Collection[str]) -> Identity:
    """Return what defines loaded data, except the values of these knobs; `generator` is None for the load client."""
    load = select_fields(workload, "data")
    parameters = load["parameters"].items()
    load["parameters"] = {name: value for name, value in parameters if shapes_data(generator, name)}
    rewrites = load["parameters"].get("rewrite") or factor_knob("rewrite") in knobs
    loaded = {name: part.load for name, part in dbms.layout_parts.items() if part.load is not None}
    return {
        "version": MEASURE_VERSION,
        "installed": _installed(dbms, generator),
        "dbms": select_fields(_with_knobs(dbms, knobs), "data"),
        "workload": load,
        "generator": select_fields(generator, "data") if generator else None,
        **({"parts": loaded} if loaded else {}),
        **({"rewrite": dbms.rewrite} if rewrites else {}),
    }


def run_identity(specs: StudySpecs, case: Case, phase: str, knobs: Iterable[str]) -> Identity:
    """Return what defines the runs of a case in a phase, except the values of these knobs and their order."""
    dbms, workload = specs.dbms[case.dbms], specs.workloads[case.workload]
    generator = specs.generators.get(workload.generator)
    return {
        "data": data_identity(dbms, workload, generator, [name for name in knobs if dbms.knobs[name].apply == "load"]),
        "dbms": select_fields(_with_knobs(dbms, knobs), "run"),
        "device": _device_identity(specs.devices[case.device]),
        "workload": {**select_fields(workload, "run"), "parameters": workload.parameters, **_window_identity(workload)},
        "generator": select_fields(generator, "run") if generator else None,
        "study": select_fields(specs.study, "run"),
        "traced": select_fields(specs.study, "traced_run") if phase == "sweep" else {},
        **_layout_identity(specs, case),
        **({"measure": sorted(specs.study.measure)} if specs.study.measure else {}),
        **_statements_identity(specs, dbms),
        **({"session_thread": dbms.session_thread} if _logs_sessions(specs, workload, phase) else {}),
        **({"threads": dbms.threads} if "waits" in specs.study.watch and dbms.threads else {}),
        **({"client": select_fields(specs.study.client, "run")} if specs.study.client else {}),
    }


def _window_identity(workload: Workload) -> Identity:
    enough = workload.measure_operations
    return {} if enough is None else {"measure_operations": enough}


def _device_identity(device: Device) -> Identity:
    wanted = device.precondition
    return {
        **select_fields(device, "run"),
        **({"precondition": wanted.model_dump(mode="json")} if wanted else {}),
    }


def _layout_identity(specs: StudySpecs, case: Case) -> Identity:
    """Return what defines the parts that a study lays out elsewhere, and their devices; nothing without a layout."""
    parts = specs.dbms[case.dbms].layout_parts
    if not parts:
        return {}
    devices = {name: _device_identity(specs.devices[name]) for name in specs.layout_devices(case.dbms)}
    dumped = {name: part.model_dump(mode="json") for name, part in parts.items()}
    for keys in dumped.values():  # not mentioned without, so that runs of earlier versions keep their names
        for key in ("pointer", "session", "knob"):
            if keys[key] is None:
                del keys[key]
    return {"parts": dumped, "devices": devices}


def _logs_sessions(specs: StudySpecs, workload: Workload, phase: str) -> bool:
    return specs.study.trace and phase == "sweep" and has_own_tables(workload)


def _statements_identity(specs: StudySpecs, dbms: Dbms) -> Identity:
    """Return what defines how a server is asked for its statements; nothing where it is not."""
    if "statements" not in specs.study.measure or dbms.statements is None:
        return {}
    return {"statements": {"start": dbms.statements.start, "command": dbms.statements.command}}


def varied_knobs(specs: StudySpecs, dbms: str) -> list[str]:
    """Return the knobs that configurations of a study set: those it varies, and those of its `baseline`."""
    return sorted({*specs.study.knobs[dbms], *specs.study.baseline.get(dbms, {})})


def remember_programs(specs: StudySpecs) -> None:
    """Let the jobs of this process know with which programs, paths and client libraries it began."""
    os.environ[_PROGRAMS_VARIABLE] = json.dumps(
        {f"{specs.study.name} {case}": _digest_programs(specs, case) for case in specs.cases}
    )


def _digest_programs(specs: StudySpecs, case: Case) -> str:
    generator = specs.generators.get(specs.workloads[case.workload].generator)
    return hash_identity(_installed(specs.dbms[case.dbms], generator), 16)


def require_same_programs(specs: StudySpecs, case: Case) -> None:
    """Raise UserError where the pipeline of this job began with other programs: one study would have runs of both."""
    before = json.loads(os.environ.get(_PROGRAMS_VARIABLE, "{}")).get(f"{specs.study.name} {case}")
    if before not in (None, _digest_programs(specs, case)):
        raise UserError(
            f"a program, or a library of the load client, that {case.dbms} runs with was replaced after this call of "
            "snakemake began, as by an upgrade; call again: all runs of the study are measured with the new one"
        )


def _with_knobs(dbms: Dbms, names: Iterable[str]) -> Dbms:
    return dbms.model_copy(update={"knobs": {name: dbms.knobs[name] for name in sorted(names)}})


def _installed(dbms: Dbms, generator: Generator | None) -> dict[str, str | None]:
    """Return digests of the programs, paths and client libraries in use; None for what is not there."""
    programs = {**dbms.running_programs, **(generator.programs if generator else {})}
    paths = {name: find_program(wanted) for name, wanted in programs.items()}
    paths |= {f"path.{name}": find_path(wanted) for name, wanted in dbms.paths.items()}
    paths |= {f"generator.{name}": find_path(wanted) for name, wanted in (generator.paths if generator else {}).items()}
    if dbms.connection is not None:
        paths |= {jar.name: jar for jar in client_libraries(dbms.connection.library)}
    return {name: digest_of(path) if path else None for name, path in paths.items()}
