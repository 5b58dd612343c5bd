"""What no single value can show: references between specs, values against knobs, circles, missing programs, paths."""

import os
import shutil
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs.base import Value, suggest
from knobscope.specs.dbms import Dbms, Program
from knobscope.specs.device import Device
from knobscope.specs.expression import WORKLOAD_NAMES
from knobscope.specs.knob import Knob
from knobscope.specs.source import Document, Location, SpecProblem
from knobscope.specs.study import KnobChoice, Study
from knobscope.specs.workload import Workload

__all__ = [
    "check_baseline",
    "check_dbms",
    "check_device",
    "check_programs",
    "check_study_knobs",
    "find_program",
]

#: Any workload will do to see whether an expression can be evaluated and holds for the defaults.
_SOME_WORKLOAD: dict[str, Value] = {"threads": 2, "records": 100_000}


def check_dbms(document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield what is wrong between the parts of a DBMS spec."""
    for name, knob in dbms.knobs.items():
        if knob.apply not in dbms.writing:
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


def check_study_knobs(document: Document, study: Study, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield knobs and values of a study that the DBMS does not know."""
    for name, choice in study.knobs.get(dbms.name, {}).items():
        place = ("knobs", dbms.name, name)
        if name not in dbms.knobs:
            yield document.problem(place, f"an unknown knob of {dbms.name}", suggest(name, sorted(dbms.knobs)))
        elif choice is not None:
            yield from _check_choice(document, place, dbms.knobs[name], choice)
    for name, value in study.baseline.get(dbms.name, {}).items():
        place = ("baseline", dbms.name, name)
        if name not in dbms.knobs:
            yield document.problem(place, f"an unknown knob of {dbms.name}", suggest(name, sorted(dbms.knobs)))
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


def find_program(program: Program) -> Path | None:
    """Return the first executable that a spec names, the newest where a pattern matches several."""
    for name in program.find:
        if not name.startswith("/"):
            found = [match] if (match := shutil.which(name)) else []
        else:
            found = sorted(glob(name), key=_version_order, reverse=True)  # noqa: PTH207 - the pattern is absolute
        for candidate in found:
            if os.access(candidate, os.X_OK):
                return Path(candidate)
    return None


def _version_order(path: str) -> list[tuple[float, str]]:
    """Sort /usr/lib/x/9.6 before /usr/lib/x/18."""
    parts = Path(path).parts
    return [(float(part) if part.replace(".", "", 1).isdecimal() else -1, part) for part in parts]


def check_programs(document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield programs that this machine does not have, with the package that would install them."""
    for name, program in dbms.programs.items():
        if find_program(program) is None:
            found = f"no program at {', '.join(program.find)}"
            expected = f"it installed: apt-get install {program.package}"
            yield document.problem(("programs", name), found, expected)


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
