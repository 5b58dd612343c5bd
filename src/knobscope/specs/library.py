"""The shelf of specs: finds what a study names, reads everything, reports all problems of all files together."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from knobscope.errors import UserError
from knobscope.specs.checks.check import (
    check_baseline,
    check_dbms,
    check_device,
    check_generator,
    check_load,
    check_memory,
    check_parameters,
    check_programs,
    check_study_knobs,
    check_study_names,
    check_thresholds,
    check_versions,
)
from knobscope.specs.completing.catalogue import add_named_knobs
from knobscope.specs.completing.exclusions import Exclusions
from knobscope.specs.completing.factors import check_factors, spread_factors
from knobscope.specs.completing.layout import check_layout, check_layout_devices, name_devices, spread_layout
from knobscope.specs.completing.startable import check_startable, narrow_knobs, read_records, refuse_settings
from knobscope.specs.completing.whole import spread_all, spread_levels
from knobscope.specs.models.client_host import check_client_host
from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.device import Device
from knobscope.specs.models.generator import BUILT_IN, Generator
from knobscope.specs.models.prior import Prior, check_prior
from knobscope.specs.models.rule import SHIPPED_RULES, Rule, read_rule, read_shipped_rule, shipped_rules
from knobscope.specs.models.study import Study
from knobscope.specs.models.workload import Workload
from knobscope.specs.reading.base import SpecModel, suggest
from knobscope.specs.reading.inherit import load_extended
from knobscope.specs.reading.like import load_device_document
from knobscope.specs.reading.source import Document, Location, SpecErrors, SpecProblem, load_document, show_path
from knobscope.specs.reading.validate import examine_document
from knobscope.specs.salvage import examine_study

__all__ = ["KINDS", "Case", "StudySpecs", "find_specs", "load_study", "read_spec", "validate_files"]

#: Folder of each kind of spec, and its model.
KINDS: dict[str, type[SpecModel]] = {
    "dbms": Dbms,
    "devices": Device,
    "workloads": Workload,
    "generators": Generator,
    "studies": Study,
    "models": Prior,
    "exclusions": Exclusions,
}

#: How kinds that are defined by other specs are read.
_LOADERS: dict[type[SpecModel], Callable[[Path], Document]] = {Dbms: load_extended, Device: load_device_document}

Model = TypeVar("Model", bound=SpecModel)
Check = Callable[[Document, Model], Iterable[SpecProblem]]


@dataclass(frozen=True)
class Case:
    """One combination of a study: all its runs are comparable."""

    dbms: str
    device: str
    workload: str

    def __str__(self) -> str:
        """Return it as the path of its results below those of the study."""
        return f"{self.dbms}/{self.device}/{self.workload}"


@dataclass(frozen=True)
class StudySpecs:
    """A study with all the specs it names; workloads already changed as the study asks."""

    study: Study
    dbms: dict[str, Dbms]
    devices: dict[str, Device]
    workloads: dict[str, Workload]
    prior: Prior | None = None  # what the study starts from instead of screening
    generators: dict[str, Generator] = field(default_factory=dict)  # those of the workloads, beside YCSB
    rules: dict[str, Rule] = field(default_factory=dict)  # in the order of the study
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)  # DBMS -> knob that `all` leaves out -> reason

    @property
    def thresholds(self) -> dict[str, float]:
        """All thresholds of the study and its rules: the study's own value, or the rule's default."""
        study = self.study.thresholds
        of_rules = {name: one.default for rule in self.rules.values() for name, one in rule.about.thresholds.items()}
        return {"fdr": study.fdr, "min_effect": study.min_effect, **of_rules, **study.of_rules}

    def layout_devices(self, dbms: str) -> list[str]:
        """Return the devices on which parts of a DBMS's data may lie, beside that of the case."""
        return list(name_devices(self.study, dbms))

    @property
    def cases(self) -> list[Case]:
        """All combinations, in the order of the study."""
        study = self.study
        return [Case(s, d, w) for s in study.dbms for d in study.devices for w in study.workloads]


def parse_case(text: str) -> Case:
    """Return the case that `dbms/device/workload` names. UserError: it names none."""
    if text.count("/") != 2:
        raise UserError(f"found the case {text!r}; expected DBMS/DEVICE/WORKLOAD")
    return Case(*text.split("/"))


def find_case(specs: StudySpecs, text: str) -> Case:
    """Return the case of a study that `dbms/device/workload` names. UserError: it names none, or the study lacks it."""
    case = parse_case(text)
    if case not in specs.cases:
        names = ", ".join(map(str, specs.cases))
        raise UserError(f"study {specs.study.name} has no case {text!r}; it has {names}")
    return case


def read_spec(path: Path, model: type[Model], check: Check[Model] | None) -> tuple[Document, Model]:
    """Read and check one file; raises SpecErrors with all its problems."""
    document = _LOADERS.get(model, load_document)(path)
    spec, problems = examine_document(document, model)
    if spec is not None:
        problems += _check_name(document, spec)
        problems += check(document, spec) if check else []
    if spec is None or problems:
        raise SpecErrors(problems)
    return document, spec


def _check_name(document: Document, spec: SpecModel) -> list[SpecProblem]:
    """Return that a spec has another name than its file; a record of what started has none."""
    name, stem = getattr(spec, "name", None), document.path.stem
    fits = name in (stem, None)
    return [] if fits else [document.problem(("name",), repr(name), f"the file's name, {stem!r}")]


@dataclass
class _Reader:
    """Reads specs and goes on after a problem; `problems` has them all in the end."""

    root: Path
    runnable: bool | Collection[str]
    problems: list[SpecProblem] = field(default_factory=list)
    generators: dict[str, Generator] = field(default_factory=dict)

    def needs(self, name: str) -> bool:
        """Whether this machine has to have a DBMS or device."""
        return self.runnable if isinstance(self.runnable, bool) else name in self.runnable

    def check_dbms(self, document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
        yield from check_dbms(document, dbms)
        if self.needs(dbms.name):
            yield from check_programs(document, dbms)

    def check_device(self, document: Document, device: Device) -> Iterator[SpecProblem]:
        if self.needs(device.name):
            yield from check_device(document, device, self.root)

    def check_generator(self, document: Document, generator: Generator) -> Iterator[SpecProblem]:
        if self.runnable:
            yield from check_generator(document, generator)

    def check_workload(self, document: Document, workload: Workload) -> Iterator[SpecProblem]:
        """Read the generator that a workload names, and yield parameters that it does not have."""
        name = workload.generator
        folder = document.path.absolute().parent.parent / "generators"
        file = folder / f"{name}.yaml"
        if name in BUILT_IN:
            return
        if not file.is_file():
            have = [*BUILT_IN, *sorted(other.stem for other in folder.glob("*.yaml"))]
            yield document.problem(("generator",), f"no generator named {name!r}", suggest(name, have))
        elif (generator := self.read(file, Generator, self.check_generator)) is not None:
            self.generators[name] = generator
            yield from check_parameters(document, workload, generator)

    def read(self, path: Path, model: type[Model], check: Check[Model] | None) -> Model | None:
        try:
            return read_spec(path, model, check)[1]
        except SpecErrors as error:
            self.problems.extend(error.problems)
            return None

    def read_named(
        self,
        document: Document,
        kind: str,
        names: Iterable[str] | Mapping[str, Location],
        model: type[Model],
        check: Check[Model] | None,
    ) -> dict[str, Model]:
        """Return the specs of a kind that a study names, by name; a mapping tells where each name stands."""
        folder = document.path.absolute().parent.parent / kind
        found = {}
        for index, name in enumerate(names):
            file = folder / f"{name}.yaml"
            if not file.is_file():
                have = sorted(other.stem for other in folder.glob("*.yaml"))
                expected = suggest(name, have) if have else f"a file {show_path(file)}"
                here = (kind, name if kind == "workloads" else index)
                location = names[name] if isinstance(names, Mapping) and kind == "devices" else here
                self.problems.append(document.problem(location, f"no spec named {name!r}", expected))
            elif name not in found and (spec := self.read(file, model, check)) is not None:
                found[name] = spec
        return found

    def read_rules(self, document: Document, study: Study) -> dict[str, Rule]:
        """Return the rules of a study by name: those it names, or all that come with knobscope."""
        project = document.path.absolute().parents[2]
        named = shipped_rules() if study.rules is None else study.rules
        found: dict[str, Rule] = {}
        for index, text in enumerate(named):
            folder = project / text if "/" in text else SHIPPED_RULES / text
            if not os.path.isdir(folder):  # noqa: PTH112 - that of Path raises an error for a name that is too long
                have = f"one of {', '.join(shipped_rules())}, or the path of a folder of your own"
                expected = f"a folder {show_path(folder)}" if "/" in text else have
                self.problems.append(document.problem(("rules", index), f"no rule {text!r}", expected))
                continue
            try:
                rule = read_rule(folder) if "/" in text else read_shipped_rule(text)
            except SpecErrors as error:
                self.problems.extend(error.problems)
                continue
            if rule.name in found:
                clash = f"a second rule named {rule.name!r} (the first is {show_path(found[rule.name].folder)})"
                self.problems.append(document.problem(("rules", index), clash, "each name once"))
            found.setdefault(rule.name, rule)
        if not self.problems:
            self.problems += check_thresholds(document, study, found.values())
        return found

    def read_prior(self, document: Document, study: Study) -> Prior | None:
        """Return the prior that a study starts from, if it names one: a file, or a name in the folder beside specs."""
        named = study.screening.prior
        if named is None:
            return None
        folder = document.path.absolute().parents[2] / "models"
        is_file = "/" in named or named.endswith(".yaml")
        file = self.root / named if is_file else folder / f"{named}.yaml"
        if os.path.isfile(file):  # noqa: PTH113 - that of Path raises an error for a name that is too long
            return self.read(file, Prior, None)
        have = [] if is_file else sorted(other.stem for other in folder.glob("*.yaml"))
        expected = suggest(named, have) if have else f"a file {show_path(file)}, as `knobscope models save` writes it"
        self.problems.append(document.problem(("screening", "prior"), f"no prior {named!r}", expected))
        return None


def load_study(
    path: Path, root: Path, *, runnable: bool | Collection[str] = True, ask_versions: bool = False
) -> StudySpecs:
    """Read a study and all it names from the `specs` folder two levels above the study file.

    With `runnable`, programs and device directories must exist on this machine (`root` is what relative device
    paths start from), or only those of the DBMSs and devices that it names: a cluster's node need not have more than
    what it measures. Only with `ask_versions` a command of a spec is run: programs are asked for their versions, for
    `since` and `until`. Raises SpecErrors with all problems of all files.
    """
    reader = _Reader(root, runnable)
    document = load_document(path)
    study, mistakes = examine_study(document)
    if study is None:
        raise SpecErrors(mistakes)
    is_whole = not mistakes
    reader.problems += mistakes or _check_name(document, study)
    reader.problems += check_study_names(document, study)
    dbms = reader.read_named(document, "dbms", study.dbms, Dbms, reader.check_dbms)
    devices = reader.read_named(document, "devices", study.devices, Device, reader.check_device)
    devices |= reader.read_named(document, "devices", name_devices(study), Device, reader.check_device)
    reader.problems += check_layout_devices(document, study, devices)
    reader.problems += study.factors.check_kernel(document, devices)
    workloads = reader.read_named(document, "workloads", study.workloads, Workload, reader.check_workload)
    changed = {name: _change(workload, study) for name, workload in workloads.items()}
    wrong_factors = list(check_factors(document, study, changed.values()))
    reader.problems += wrong_factors
    left_out: dict[str, dict[str, str]] = {}
    for name in dbms:
        study, dbms[name], left_out[name], problems = _complete(document, study, dbms[name], changed.values())
        if not problems:
            study, dbms[name] = spread_layout(study, dbms[name])
        if not problems and not wrong_factors and changed:
            study, dbms[name] = spread_factors(study, dbms[name], changed.values(), reader.generators)
        one = dbms[name]
        if not problems and is_whole:
            for workload in changed.values():
                problems += check_baseline(document, study, one, workload)
                problems += check_load(document, study, one, workload, reader.generators)
                problems += check_memory(document, study, one, workload)
                problems += check_client_host(document, study.client, one, workload)
            if ask_versions and reader.needs(name) and not reader.problems:
                problems += check_versions(document, study, one)
        reader.problems += problems
    if not reader.problems:
        reader.problems += [document.problem(one.location, one.found, one.expected) for one in study.find_unvaried()]
    rules = reader.read_rules(document, study)
    prior = reader.read_prior(document, study)
    if prior is not None:
        reader.problems += check_prior(document, study, prior, dbms, changed)
    if reader.problems:
        raise SpecErrors(reader.problems)
    return StudySpecs(study, dbms, devices, changed, prior, reader.generators, rules, left_out)


def _complete(
    document: Document, study: Study, dbms: Dbms, workloads: Collection[Workload]
) -> tuple[Study, Dbms, dict[str, str], list[SpecProblem]]:
    """Return the study with what `all` stands for, and the DBMS with the knobs that it takes from its catalogue.

    Their values are cut to those that are known to start. The dictionary holds what `all` leaves out, with the reason.
    """
    folder = document.path.absolute().parent.parent
    by_name = list(study.knobs.get(dbms.name, {}))
    spread = spread_all(document, study, dbms, folder, workloads)
    study = spread.study
    named = [*study.knobs.get(dbms.name, {}), *study.baseline.get(dbms.name, {})]
    whole, choice = add_named_knobs(dbms, folder / "dbms" / f"{dbms.name}.yaml", named)
    problems = [*spread.problems, *check_study_knobs(document, study, whole, choice)]
    problems += check_layout(document, study, dbms)
    records = read_records(folder / "startable", whole)
    if not problems:
        problems += check_startable(document, study, whole, records)
    narrow = narrow_knobs(whole, records)
    if not problems:
        narrow = spread_levels(study, narrow, by_name, dbms.knobs)
        found = [one for record in records.values() for one in record.refused]
        narrow = refuse_settings(narrow, found, study.baseline.get(dbms.name, {}))
    return study, narrow, spread.left_out, problems


def _change(workload: Workload, study: Study) -> Workload:
    """Return the workload as the study changes it."""
    change = study.workloads[workload.name]
    return workload.model_copy(update=change.model_dump(exclude_none=True)) if change else workload


def find_specs(paths: Iterable[Path]) -> list[Path]:
    """Return the YAML files among these paths, in folders among them, and one folder deeper; sorted."""
    found: set[Path] = set()
    for path in paths:
        found |= {*path.glob("*.y*ml"), *path.glob("*/*.y*ml")} if path.is_dir() else {path}
    return sorted(found)


def validate_files(paths: list[Path], root: Path, *, runnable: bool = False) -> list[Path]:
    """Check spec files of any kind (told by their folder); returns them, or raises SpecErrors with all problems."""
    reader = _Reader(root, runnable)
    for path in paths:
        kind = path.absolute().parent.name
        if path.suffix != ".yaml":
            found, expected = f"the extension {path.suffix!r}", "'.yaml', the only one that studies look for"
            reader.problems.append(SpecProblem(show_path(path), 1, "", found, expected))
        elif kind == "dbms":
            reader.read(path, Dbms, reader.check_dbms)
        elif kind == "devices":
            reader.read(path, Device, reader.check_device)
        elif kind == "workloads":
            reader.read(path, Workload, reader.check_workload)
        elif kind == "generators":
            reader.read(path, Generator, reader.check_generator)
        elif kind in ("models", "exclusions"):
            reader.read(path, KINDS[kind], None)
        elif kind == "studies":
            try:
                load_study(path, root, runnable=runnable, ask_versions=runnable)
            except SpecErrors as error:
                reader.problems.extend(error.problems)
        else:
            expected = f"a file in a folder named {', '.join(KINDS)}"
            reader.problems.append(SpecProblem(show_path(path), 1, "", f"folder {kind!r}", expected))
    if reader.problems:
        raise SpecErrors(reader.problems)
    return paths
