"""What no single value can show: references between specs, values against knobs, circles, missing programs, paths."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs.checks.overwritten import find_overwritten
from knobscope.specs.checks.quoting import find_breakouts
from knobscope.specs.models.choice import KnobChoice
from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.device import Device
from knobscope.specs.models.drivers import FETCH_DRIVERS, find_driver
from knobscope.specs.models.expression import WORKLOAD_NAMES, Expression
from knobscope.specs.models.generator import Generator
from knobscope.specs.models.knob import Knob
from knobscope.specs.models.programs import Program, ask_version, find_path, find_program, is_between
from knobscope.specs.models.rule import Rule, RuleThreshold
from knobscope.specs.models.study import Study, Thresholds
from knobscope.specs.models.workload import Workload
from knobscope.specs.models.writing import same_value
from knobscope.specs.reading.base import Value, suggest
from knobscope.specs.reading.source import Document, Location, SpecProblem, load_document, show_value

#: Any workload will do to see whether an expression can be evaluated and holds for the defaults.
_SOME_WORKLOAD: dict[str, Value] = {"threads": 2, "records": 100_000}


def check_dbms(document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield what is wrong between the parts of a DBMS spec."""
    for name, knob in dbms.knobs.items():
        if dbms.writing_of(name) is None:
            expected = f"one of {sorted(dbms.writing)}, which `writing` describes"
            yield document.problem(("knobs", name, "apply"), repr(knob.apply), expected)
        yield from _check_requires(document, dbms, name)
        yield from _check_conditions(document, dbms, name)
    if cycle := find_cycle(dbms.knobs):
        found = f"a circle: {' -> '.join(cycle)}"
        yield document.problem(("knobs", cycle[0], "requires"), found, "each relation stated at one knob only")
    if cycle := _find_circle(
        {name: _names_in(knob.condition, dbms.knobs) - {name} for name, knob in dbms.knobs.items()}
    ):
        found = f"a circle: {' -> '.join(cycle)}"
        yield document.problem(("knobs", cycle[0], "when"), found, "a knob that counts whatever the others are")
    for misfit in [*find_breakouts(dbms), *find_overwritten(dbms)]:
        yield document.problem(misfit.location, misfit.found, misfit.expected)


def _check_requires(document: Document, dbms: Dbms, name: str) -> Iterator[SpecProblem]:
    requirement = dbms.knobs[name].requirement
    if requirement is None:
        return
    location = ("knobs", name, "requires")
    unknown = list(_find_unknown_names(document, dbms, location, requirement))
    yield from unknown
    if not unknown:
        problem = _problem_of_requires(dbms, name, _SOME_WORKLOAD)
        if problem is not None:
            yield document.problem(location, problem, "an expression that the defaults satisfy")


def _check_conditions(document: Document, dbms: Dbms, name: str) -> Iterator[SpecProblem]:
    """Yield what is wrong with `when` and under `durability`; the defaults need not satisfy what is there."""
    knob = dbms.knobs[name]
    conditions: list[tuple[Location, Expression]] = [(("when",), knob.condition)] if knob.condition else []
    conditions += [(("durability", value), condition) for value, condition in knob.risk_conditions.items()]
    for keys, condition in conditions:
        location = ("knobs", name, *keys)
        if name in condition.names:
            yield document.problem(location, f"the knob's own name in `{condition.text}`", "names of other knobs")
        unknown = list(_find_unknown_names(document, dbms, location, condition))
        yield from unknown
        if not unknown:
            try:
                condition.holds({**{key: knob.default for key, knob in dbms.knobs.items()}, **_SOME_WORKLOAD})
            except UserError as error:
                yield document.problem(location, str(error), "an expression that can be evaluated with the defaults")


def _find_unknown_names(
    document: Document, dbms: Dbms, location: Location, expression: Expression
) -> Iterator[SpecProblem]:
    known_names = sorted({*dbms.knobs, *WORKLOAD_NAMES})
    for word in sorted(expression.names - set(known_names)):
        yield document.problem(location, f"the unknown name {word!r}", suggest(word, known_names))


def _problem_of_requires(dbms: Dbms, name: str, values: Mapping[str, Value]) -> str | None:
    """Say why the `requires` of a knob does not hold for these values with the defaults, or None when it does."""
    requirement = dbms.knobs[name].requirement
    if requirement is None:
        return None
    every = {**{key: knob.default for key, knob in dbms.knobs.items()}, **values}
    try:
        if requirement.holds(every):
            return None
    except UserError as error:
        return str(error)
    shown = ", ".join(f"{word}={show_value(every[word])}" for word in sorted(requirement.names))
    return f"`{requirement.text}` not to hold for {shown}"


def find_cycle(knobs: Mapping[str, Knob]) -> list[str] | None:
    """Return knobs whose `requires` lead in a circle (first = last), or None."""
    return _find_circle({name: _names_in(knob.requirement, knobs) - {name} for name, knob in knobs.items()})


def _names_in(expression: Expression | None, knobs: Mapping[str, Knob]) -> frozenset[str]:
    """Return the knobs that an expression names."""
    return expression.names & set(knobs) if expression is not None else frozenset()


def _find_circle(needs: Mapping[str, frozenset[str]]) -> list[str] | None:
    """Return names that need each other in a circle (first = last), or None."""
    try:
        TopologicalSorter({name: sorted(required) for name, required in needs.items()}).prepare()
    except CycleError as error:
        circle = list(reversed(error.args[1][1:]))
        first = min(range(len(circle)), key=lambda index: circle[index])
        return [*circle[first:], *circle[:first], circle[first]]
    return None


def check_study_names(document: Document, study: Study) -> Iterator[SpecProblem]:
    """Yield DBMSs of a study without knobs, and knobs of others.

    A DBMS whose file is missing is misspelt, as is reported elsewhere; keys below which it is spelt right are not to
    blame for it.
    """
    folder = document.path.absolute().parent.parent / "dbms"
    known_dbms = [name for name in study.dbms if (folder / f"{name}.yaml").is_file()]
    complete = len(known_dbms) == len(study.dbms)
    groups: dict[str, Iterable[str]] = {"knobs": study.knobs, "baseline": study.baseline, "layout": study.layout}
    for key, group in groups.items():
        for name in group:
            if name not in study.dbms and (complete or not (folder / f"{name}.yaml").is_file()):
                expected = suggest(name, study.dbms)
                yield document.problem((key, name), "a DBMS that the study does not use", expected)
    for name in known_dbms:
        varies_layout = any(isinstance(devices, list) for devices in study.layout.get(name, {}).values())
        varies_other = varies_layout or study.factors.workload or study.factors.kernel_settings
        if not study.knobs.get(name) and study.whole_of(name) is None and not varies_other:
            yield document.problem(("knobs", name), "no knob", "at least one knob, or one of `factors`, to vary")


def check_memory(document: Document, dbms: Dbms, workload: Workload) -> Iterator[SpecProblem]:
    """Yield a memory limit with which the DBMS cannot even start."""
    limit = workload.memory_mib
    if limit is not None and limit < dbms.min_memory_mib:
        expected = f"{dbms.min_memory_mib} or more, with which {dbms.name} starts"
        location = ("workloads", workload.name, "memory_mib")
        yield document.problem(location, f"{limit} MiB", expected)


def check_study_knobs(
    document: Document, study: Study, dbms: Dbms, catalogue: Iterable[str] = ()
) -> Iterator[SpecProblem]:
    """Yield knobs and values of a study that the DBMS does not know; `catalogue`: other knobs that it might name."""
    for name, choice in study.knobs.get(dbms.name, {}).items():
        location = ("knobs", dbms.name, name)
        if name not in dbms.knobs:
            expected = suggest(name, sorted(dbms.knobs), catalogue)
            yield document.problem(location, f"an unknown knob of {dbms.name}", expected)
        elif choice is not None:
            usual = study.baseline.get(dbms.name, {}).get(name, dbms.knobs[name].default)
            yield from _check_choice(document, location, dbms.knobs[name], choice, usual)
    for name, value in study.baseline.get(dbms.name, {}).items():
        location = ("baseline", dbms.name, name)
        if name not in dbms.knobs:
            expected = suggest(name, sorted(dbms.knobs), catalogue)
            yield document.problem(location, f"an unknown knob of {dbms.name}", expected)
        elif (problem := _problem_with(dbms.knobs[name], value)) is not None:
            yield document.problem(location, show_value(value), f"another value: it {problem}")


def _problem_with(knob: Knob, value: Value) -> str | None:
    return knob.problem_with(value) or (f"is refused ({knob.refused[value]})" if value in knob.refused else None)


def _check_choice(
    document: Document, location: Location, knob: Knob, choice: KnobChoice, usual: Value
) -> Iterator[SpecProblem]:
    """Yield values and ends that the knob does not have; `usual` is its value in the default configuration."""
    for index, value in enumerate(choice.values or []):
        if (problem := _problem_with(knob, value)) is not None:
            yield document.problem((*location, "values", index), show_value(value), f"another value: it {problem}")
    if choice.values is not None and all(same_value(value, usual) for value in choice.values):
        found = f"{show_value(usual)} alone, which the default configuration has"
        yield document.problem((*location, "values"), found, "at least one other value")
    if choice.range is not None and knob.range is None:
        yield document.problem((*location, "range"), "a range", f"values, for a knob of type {knob.type}")
    elif choice.range is not None:
        for index, end in enumerate(choice.range):
            if (problem := knob.problem_outside(end)) is not None:
                yield document.problem((*location, "range", index), show_value(end), f"another end: it {problem}")
            elif knob.scale == "log" and end <= 0:
                yield document.problem((*location, "range", index), show_value(end), "an end above 0: its scale is log")


def explain_ranges(document: Document, dbms: Mapping[str, Dbms], problems: Iterable[SpecProblem]) -> list[SpecProblem]:
    """Return the problems of a study; of the end of a range that is a text, what to write in the unit of the knob."""
    return [_explain_end(document, dbms, problem) for problem in problems]


def _explain_end(document: Document, dbms: Mapping[str, Dbms], problem: SpecProblem) -> SpecProblem:
    match problem.location:
        case ("knobs", str(name), str(knob), "range", int(index)) if name in dbms and knob in dbms[name].knobs:
            end, spec = document.data["knobs"][name][knob]["range"][index], dbms[name].knobs[knob]
            if isinstance(end, str) and spec.range is not None:
                return replace(problem, expected=f"another end: it {spec.problem_outside(end)}")
    return problem


def check_changes(document: Document, study: Study, workloads: Iterable[Workload]) -> Iterator[SpecProblem]:
    """Yield what a study changes in workloads so that their generators cannot do it."""
    for workload in workloads:
        for misfit in workload.find_misfits() if study.workloads.get(workload.name) else ():
            yield document.problem(("workloads", workload.name, *misfit.location), misfit.found, misfit.expected)


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
    usual = {**{name: knob.default for name, knob in dbms.knobs.items()}, **baseline}
    for clash in dbms.clashes:
        named = next((name for name in clash.values if name in baseline), None)
        if named is not None and clash.is_in(usual):
            yield document.problem(("baseline", dbms.name, named), f"values that clash: {clash.words}", "other values")


def check_thresholds(document: Document, study: Study, rules: Iterable[Rule]) -> Iterator[SpecProblem]:
    """Yield thresholds of a study that no rule of it has, or that are out of range, and names that two rules share."""
    thresholds: dict[str, tuple[str, RuleThreshold]] = {}
    for rule in rules:
        for name, threshold in rule.about.thresholds.items():
            owner = (
                thresholds[name][0] if name in thresholds else "the study" if name in Thresholds.model_fields else None
            )
            if owner is not None:
                found = f"a threshold that {owner} has as well"
                yield load_document(rule.about_file).problem(("thresholds", name), found, "a name of its own")
            thresholds.setdefault(name, (f"rule {rule.name}", threshold))
    for name, value in study.thresholds.of_rules.items():
        location = ("thresholds", name)
        if name not in thresholds:
            expected = suggest(name, sorted({*thresholds, *Thresholds.model_fields}))
            yield document.problem(location, "a threshold that no rule of the study has", expected)
        elif problem := thresholds[name][1].problem_with(value):
            yield document.problem(location, f"{value:g}", problem)


def check_programs(document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield programs and paths that this machine does not have, with the command that would get them."""
    yield from _check_found(document, "programs", dbms.programs, find_program)
    yield from _check_found(document, "paths", dbms.paths, find_path)
    driver = dbms.connection.driver if dbms.connection is not None else None
    if driver is not None and not find_driver(driver):
        yield document.problem(("connection", "driver"), f"no jars of {driver}", f"them fetched: {FETCH_DRIVERS}")


def check_generator(document: Document, generator: Generator) -> Iterator[SpecProblem]:
    """Yield programs and paths of a generator that this machine does not have."""
    yield from _check_found(document, "programs", generator.programs, find_program)
    yield from _check_found(document, "paths", generator.paths, find_path)


def check_parameters(document: Document, workload: Workload, generator: Generator) -> Iterator[SpecProblem]:
    """Yield parameters of a workload that its generator does not have, and values that it cannot use."""
    for name, value in workload.parameters.items():
        if (wanted := generator.expected_of(name, value)) is not None:
            yield document.problem(("parameters", name), show_value(value), wanted)
        if name not in generator.parameters:
            expected = suggest(name, sorted(generator.parameters)) if generator.parameters else "no parameters"
            yield document.problem(("parameters", name), f"an unknown parameter of {generator.name}", expected)


def _check_found(
    document: Document, group: str, wanted: dict[str, Program], find: Callable[[Program], Path | None]
) -> Iterator[SpecProblem]:
    for name, program in wanted.items():
        if find(program) is None:
            found = f"{'no program' if group == 'programs' else 'nothing'} at {program.places}"
            yield document.problem((group, name), found, f"it installed: {program.remedy}")


def check_versions(document: Document, study: Study, dbms: Dbms) -> Iterator[SpecProblem]:
    """Yield what a study asks of another version than that on this machine; nothing where only a client knows it."""
    if dbms.version is None or not _bounds(study, dbms):
        return
    try:
        version = ask_version(dbms.version, dbms.programs, dbms.paths)
    except UserError as error:
        expected = f"`version` in {dbms.name}.yaml to print one"
        yield document.problem(("dbms", study.dbms.index(dbms.name)), str(error), expected)
        return
    for location, limits in find_version_misfits(study, dbms, version):
        yield document.problem(location, f"{dbms.name} {version}", limits)


def find_version_misfits(study: Study, dbms: Dbms, version: str) -> Iterator[tuple[Location, str]]:
    """Yield the locations in a study that want another version than this one of a DBMS, and which they want."""
    for location, (since, until) in _bounds(study, dbms).items():
        if not is_between(version, since, until):
            limits = [f"from {since} on"] if since else []
            limits += [f"up to {until}"] if until else []
            subject = f"{dbms.name}.yaml is for versions " if location[0] == "dbms" else ""
            yield location, subject + " and ".join(limits)


def _bounds(study: Study, dbms: Dbms) -> dict[Location, tuple[str | None, str | None]]:
    """Return the first and last version of the DBMS spec and of each knob that the study names, where stated."""
    bounds: dict[Location, tuple[str | None, str | None]] = {
        ("dbms", study.dbms.index(dbms.name)): (dbms.since, dbms.until)
    }
    groups = {"baseline": list(study.baseline.get(dbms.name, {})), "knobs": list(study.knobs.get(dbms.name, {}))}
    for group, names in groups.items():
        knobs = {name: dbms.knobs[name] for name in names if name in dbms.knobs}
        bounds |= {(group, dbms.name, name): (knob.since, knob.until) for name, knob in knobs.items()}
    return {location: limits for location, limits in bounds.items() if any(limits)}


def check_device(document: Document, device: Device, root: Path) -> Iterator[SpecProblem]:
    """Yield what makes a device unusable here: its directory is missing or cannot be written."""
    location: Location = ("path",)
    named = device.path or ""
    if device.emulate is not None:
        location, named = ("emulate", "image_directory"), device.emulate.image_directory
    shown = show_value(named)
    directory = root / named
    if not os.path.isdir(directory):  # noqa: PTH112 - that of Path raises an error for a name that is too long
        yield document.problem(location, f"{shown}, which is no directory", "an existing directory on the device")
    elif (filesystem := os.statvfs(directory)).f_flag & os.ST_RDONLY:
        yield document.problem(location, f"{shown}, which is mounted read-only", "a file system that can be written")
    elif not filesystem.f_blocks:
        lies = f"{shown}, which lies on {_filesystem_of(directory)}, a file system without space for files"
        yield document.problem(location, lies, "a directory on a storage device")
    elif not os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
        yield document.problem(location, f"{shown}, which cannot be written", "a directory this user may write")


def _filesystem_of(directory: Path) -> str:
    """Return the type of the file system that a directory lies on, e.g. proc."""
    number = directory.stat().st_dev
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        own, _, kind = line.partition(" - ")
        if own.split()[2] == f"{os.major(number)}:{os.minor(number)}":
            return kind.split()[0]
    return "one of the kernel's"
