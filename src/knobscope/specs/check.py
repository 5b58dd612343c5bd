"""What no single value can show: references between specs, values against knobs, circles, missing programs, paths."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs.base import Value, suggest
from knobscope.specs.dbms import Dbms
from knobscope.specs.device import Device
from knobscope.specs.expression import WORKLOAD_NAMES
from knobscope.specs.generator import BUILT_IN, TPCC, TPCDS, TPCH, YCSB, Generator
from knobscope.specs.knob import Knob
from knobscope.specs.lifecycle import SQL_BINDING
from knobscope.specs.programs import Program, ask_version, find_path, find_program, is_between
from knobscope.specs.source import Document, Location, SpecProblem
from knobscope.specs.study import KnobChoice, Study
from knobscope.specs.workload import Workload

__all__ = [
    "check_baseline",
    "check_dbms",
    "check_device",
    "check_generator",
    "check_load",
    "check_parameters",
    "check_programs",
    "check_study_knobs",
    "check_versions",
    "find_version_misfits",
]

#: Any workload will do to see whether an expression can be evaluated and holds for the defaults.
_SOME_WORKLOAD: dict[str, Value] = {"threads": 2, "records": 100_000}


def check_dbms(document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield what is wrong between the parts of a DBMS spec."""
    for name, knob in dbms.knobs.items():
        if dbms.writing_of(name) is None:
            expected = f"one of {sorted(dbms.writing)}, which `writing` describes"
            yield document.problem(("knobs", name, "apply"), repr(knob.apply), expected)
        yield from _check_requires(document, dbms, name)
    if cycle := find_cycle(dbms.knobs):
        found = f"a circle: {' -> '.join(cycle)}"
        yield document.problem(("knobs", cycle[0], "requires"), found, "each relation stated at one knob only")


def _check_requires(document: Document, dbms: Dbms, name: str) -> Iterator[SpecProblem]:
    requirement = dbms.knobs[name].requirement
    if requirement is None:
        return
    place = ("knobs", name, "requires")
    unknown = sorted(requirement.names - set(dbms.knobs) - WORKLOAD_NAMES)
    for word in unknown:
        yield document.problem(
            place, f"the unknown name {word!r}", suggest(word, sorted({*dbms.knobs, *WORKLOAD_NAMES}))
        )
    if not unknown:
        problem = _problem_of_requires(dbms, name, _SOME_WORKLOAD)
        if problem is not None:
            yield document.problem(place, problem, "an expression that the defaults satisfy")


def _problem_of_requires(dbms: Dbms, name: str, values: Mapping[str, Value]) -> str | None:
    """Say why the `requires` of a knob does not hold for these values beside the defaults, or None when it does."""
    requirement = dbms.knobs[name].requirement
    if requirement is None:
        return None
    every = {**{other: knob.default for other, knob in dbms.knobs.items()}, **values}
    try:
        if requirement.holds(every):
            return None
    except UserError as error:
        return str(error)
    shown = ", ".join(f"{word}={every[word]!r}" for word in sorted(requirement.names))
    return f"`{requirement.text}` not to hold for {shown}"


def find_cycle(knobs: dict[str, Knob]) -> list[str] | None:
    """Return knobs whose `requires` lead in a circle (first = last), or None."""
    needs = {
        name: sorted((knob.requirement.names & set(knobs)) - {name}) if knob.requirement else []
        for name, knob in knobs.items()
    }
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str] | None:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return None
        for other in needs[name]:
            if (cycle := visit(other, [*path, name])) is not None:
                return cycle
        done.add(name)
        return None

    return next((cycle for name in needs if (cycle := visit(name, [])) is not None), None)


def check_study_knobs(
    document: Document, study: Study, dbms: Dbms, catalogue: Iterable[str] = ()
) -> Iterator[SpecProblem]:
    """Yield knobs and values of a study that the DBMS does not know; `catalogue`: other knobs that it might name."""
    for name, choice in study.knobs.get(dbms.name, {}).items():
        place = ("knobs", dbms.name, name)
        if name not in dbms.knobs:
            expected = suggest(name, sorted(dbms.knobs), catalogue)
            yield document.problem(place, f"an unknown knob of {dbms.name}", expected)
        elif choice is not None:
            yield from _check_choice(document, place, dbms.knobs[name], choice)
    for name, value in study.baseline.get(dbms.name, {}).items():
        place = ("baseline", dbms.name, name)
        if name not in dbms.knobs:
            expected = suggest(name, sorted(dbms.knobs), catalogue)
            yield document.problem(place, f"an unknown knob of {dbms.name}", expected)
        elif (problem := dbms.knobs[name].problem_with(value)) is not None:
            yield document.problem(place, repr(value), f"another value: it {problem}")


def _check_choice(document: Document, place: Location, knob: Knob, choice: KnobChoice) -> Iterator[SpecProblem]:
    for index, value in enumerate(choice.values or []):
        if (problem := knob.problem_with(value)) is not None:
            yield document.problem((*place, "values", index), repr(value), f"another value: it {problem}")
    if choice.range is not None and knob.range is None:
        yield document.problem((*place, "range"), "a range", f"values, for a knob of type {knob.type}")
    elif choice.range is not None:
        for index, end in enumerate(choice.range):
            if (problem := knob.problem_outside(end)) is not None:
                yield document.problem((*place, "range", index), repr(end), f"another end: it {problem}")


def check_baseline(document: Document, study: Study, dbms: Dbms, workload: Workload) -> Iterator[SpecProblem]:
    """Yield what the default configuration of a study breaks: it is measured in every block and must be allowed."""
    baseline = study.baseline.get(dbms.name, {})
    facts: dict[str, Value] = {"threads": workload.threads, "records": workload.records}
    for name in {**study.knobs.get(dbms.name, {}), **baseline}:
        problem = _problem_of_requires(dbms, name, {**baseline, **facts}) if name in dbms.knobs else None
        if problem is not None:
            group = "baseline" if name in baseline else "knobs"
            expected = f"a `baseline` that {workload.name} can run with"
            yield document.problem((group, dbms.name, name), problem, expected)


def check_programs(document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield programs and paths that this machine does not have, with the command that would get them."""
    yield from _check_found(document, "programs", dbms.programs, find_program)
    yield from _check_found(document, "paths", dbms.paths, find_path)


def check_generator(document: Document, generator: Generator) -> Iterator[SpecProblem]:
    """Yield programs of a generator that this machine does not have."""
    yield from _check_found(document, "programs", generator.programs, find_program)


def check_parameters(document: Document, workload: Workload, generator: Generator) -> Iterator[SpecProblem]:
    """Yield parameters of a workload that its generator does not have."""
    for name in workload.parameters:
        if name not in generator.parameters:
            expected = suggest(name, sorted(generator.parameters)) if generator.parameters else "no parameters"
            yield document.problem(("parameters", name), f"an unknown parameter of {generator.name}", expected)


def _check_found(
    document: Document, group: str, wanted: dict[str, Program], find: Callable[[Program], Path | None]
) -> Iterator[SpecProblem]:
    for name, program in wanted.items():
        if find(program) is None:
            found = f"{'no program' if group == 'programs' else 'nothing'} at {', '.join(program.find)}"
            yield document.problem((group, name), found, f"it installed: {program.remedy}")


def check_versions(document: Document, study: Study, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield what a study asks of another version than that on this machine; nothing where only a client knows it."""
    if dbms.version is None or not _bounds(study, dbms):
        return
    version = ask_version(dbms.version, dbms.programs, dbms.paths)
    for place, limits in find_version_misfits(study, dbms, version):
        yield document.problem(place, f"{dbms.name} {version}", limits)


def find_version_misfits(study: Study, dbms: Dbms, version: str) -> Iterator[tuple[Location, str]]:
    """Yield the places of a study that want another version than this one of a DBMS, and which they want."""
    for place, (since, until) in _bounds(study, dbms).items():
        if not is_between(version, since, until):
            limits = [f"from {since} on"] if since else []
            limits += [f"up to {until}"] if until else []
            whose = f"{dbms.name}.yaml is for versions " if place[0] == "dbms" else ""
            yield place, whose + " and ".join(limits)


def _bounds(study: Study, dbms: Dbms) -> dict[Location, tuple[str | None, str | None]]:
    """Return the first and last version of the DBMS spec and of each knob that the study names, where stated."""
    bounds: dict[Location, tuple[str | None, str | None]] = {
        ("dbms", study.dbms.index(dbms.name)): (dbms.since, dbms.until)
    }
    groups = {"baseline": list(study.baseline.get(dbms.name, {})), "knobs": list(study.knobs.get(dbms.name, {}))}
    for group, names in groups.items():
        known = {name: dbms.knobs[name] for name in names if name in dbms.knobs}
        bounds |= {(group, dbms.name, name): (knob.since, knob.until) for name, knob in known.items()}
    return {place: limits for place, limits in bounds.items() if any(limits)}


def check_load(
    document: Document, study: Study, dbms: Dbms, workload: Workload, generators: Mapping[str, Generator]
) -> Iterator[SpecProblem]:
    """Yield why a workload's generator cannot drive a DBMS with the knobs that a study varies."""
    place = ("workloads", workload.name)
    chosen = [name for name in study.knobs.get(dbms.name, {}) if name in dbms.knobs]
    if workload.generator in BUILT_IN:
        title = {YCSB: "YCSB", TPCC: "TPC-C", TPCH: "TPC-H", TPCDS: "TPC-DS"}[workload.generator]
        if dbms.connection is None:
            names = ", ".join(sorted(dbms.generators)) or "none"
            yield document.problem(place, f"{title} for {dbms.name}", f"a workload of its generators: {names}")
        elif workload.generator != YCSB and dbms.connection.binding != SQL_BINDING:
            yield document.problem(place, f"{title} for {dbms.name}", f"a DBMS whose binding is {SQL_BINDING}")
        unwritable = ("argv", "by_value") if dbms.lifecycle is None else ()
    elif workload.generator in generators:
        if workload.generator not in dbms.generators:
            expected = f"`generators.{workload.generator}` in {dbms.name}.yaml, or a workload of another generator"
            yield document.problem(place, f"{workload.generator}, which {dbms.name} does not mention", expected)
        unwritable = ("sql", "client")
    else:
        return
    for name in chosen:
        writing = dbms.writing_of(name)
        if writing is not None and writing.kind in unwritable and writing.file is None:
            found = f"a knob that is written by `{writing.kind}`, which {workload.generator} cannot pass on"
            yield document.problem(("knobs", dbms.name, name), found, "another knob, or another generator")


def check_device(document: Document, device: Device, root: Path) -> Iterator[SpecProblem]:
    """Yield what makes a device unusable here: its directory is missing or cannot be written."""
    place: Location = ("path",)
    named = device.path or ""
    if device.emulate is not None:
        place, named = ("emulate", "image_directory"), device.emulate.image_directory
    directory = root / named
    if not directory.is_dir():
        yield document.problem(place, f"{named!r}, which is no directory", "an existing directory on the device")
    elif not os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
        yield document.problem(place, f"{named!r}, which cannot be written", "a directory this user may write")
