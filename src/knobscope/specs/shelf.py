"""Reads a study and all files that it names, and goes on after a problem; decides nothing.

What is wrong within one file is found here. What does not fit between files is for `study_checks`.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from knobscope.specs.checks.check import check_dbms, check_device, check_generator, check_parameters, check_programs
from knobscope.specs.completing.exclusions import Exclusions
from knobscope.specs.completing.layout_knobs import name_devices
from knobscope.specs.completing.study import DbmsFiles, read_dbms_files
from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.device import Device
from knobscope.specs.models.generator import BUILT_IN, Generator
from knobscope.specs.models.prior import Prior
from knobscope.specs.models.rule import SHIPPED_RULES, Rule, read_rule, read_shipped_rule, shipped_rules
from knobscope.specs.models.study import Study
from knobscope.specs.models.workload import Workload
from knobscope.specs.reading.base import SpecModel, suggest
from knobscope.specs.reading.inherit import load_extended
from knobscope.specs.reading.like import load_device_document
from knobscope.specs.reading.source import Document, Location, SpecErrors, SpecProblem, load_document, show_path
from knobscope.specs.reading.validate import examine_document
from knobscope.specs.salvage import examine_study

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
class Shelf:
    """A study and the files that it names, as they were read; `problems` are those within files, by kind."""

    document: Document
    study: Study  # without what is wrong in it
    dbms: Mapping[str, DbmsFiles]
    devices: dict[str, Device]
    workloads: dict[str, Workload]  # as the study changes them
    generators: dict[str, Generator]
    rules: dict[str, Rule]
    prior: Prior | None
    installed: Collection[str]  # DBMSs that this machine has to have
    problems: Mapping[str, list[SpecProblem]]


def read_shelf(path: Path, root: Path, runnable: bool | Collection[str]) -> Shelf:
    """Return a study with all that it names. SpecErrors: too little of it can be read to go on."""
    document = load_document(path)
    study, mistakes = examine_study(document)
    if study is None:
        raise SpecErrors(mistakes)
    readers = {kind: Reader(root, runnable) for kind in ("dbms", "devices", "workloads", "rules", "prior")}
    of_dbms, of_devices, of_workloads, of_rules, of_prior = readers.values()
    dbms = of_dbms.read_named(document, "dbms", study.dbms, Dbms, of_dbms.check_dbms)
    devices = {
        **of_devices.read_named(document, "devices", study.devices, Device, of_devices.check_device),
        **of_devices.read_named(document, "devices", name_devices(study), Device, of_devices.check_device),
    }
    files: dict[str, DbmsFiles] = {}
    for name, spec in dbms.items():
        try:
            files[name] = read_dbms_files(document.path.absolute().parent.parent, study, spec)
        except SpecErrors as error:
            of_dbms.problems.extend(error.problems)
    workloads = of_workloads.read_named(document, "workloads", study.workloads, Workload, of_workloads.check_workload)
    return Shelf(
        document,
        study,
        dbms=files,
        devices=devices,
        workloads={name: _change(workload, study) for name, workload in workloads.items()},
        generators=of_workloads.generators,
        rules=of_rules.read_rules(document, study),
        prior=of_prior.read_prior(document, study),
        installed=[name for name in dbms if of_dbms.needs(name)],
        problems={
            "mistakes": mistakes,
            "name": [] if mistakes else _check_name(document, study),
            **{kind: reader.problems for kind, reader in readers.items()},
        },
    )


def _find_project(document: Document) -> Path:
    """Return the folder of the folder of all specs; `parent`, as a study right below / has no third of `parents`."""
    return document.path.absolute().parent.parent.parent


def _file_of(document: Document, kind: str, name: str) -> Path:
    """Return the file of a spec in the folder of its kind."""
    return document.path.absolute().parent.parent / kind / f"{name}.yaml"


def _suggest_file(file: Path, built_in: Collection[str] = ()) -> str:
    """Return what was expected instead of the name of a file that does not exist."""
    have = [*built_in, *sorted(path.stem for path in file.parent.glob("*.yaml"))]
    return suggest(file.stem, have) if have else f"a file {show_path(file)}"


def _change(workload: Workload, study: Study) -> Workload:
    """Return the workload as the study changes it."""
    change = study.workloads[workload.name]
    return workload.model_copy(update=change.model_dump(exclude_none=True)) if change else workload


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
class Reader:
    """Reads specs and goes on after a problem; `problems` has them all in the end."""

    root: Path
    runnable: bool | Collection[str]
    problems: list[SpecProblem] = field(default_factory=list)
    generators: dict[str, Generator] = field(default_factory=dict)

    def needs(self, name: str) -> bool:
        """Whether this machine has to have a DBMS or device."""
        return self.runnable if isinstance(self.runnable, bool) else name in self.runnable

    def check_dbms(self, document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
        """Yield what is wrong in a DBMS spec, and its programs that this machine lacks."""
        yield from check_dbms(document, dbms)
        if self.needs(dbms.name):
            yield from check_programs(document, dbms)

    def check_whole_dbms(self, document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
        """Yield generators that do not exist, too; a study needs none but its own, as in a crate."""
        yield from self.check_dbms(document, dbms)
        for name in dbms.generators:
            if not (file := _file_of(document, "generators", name)).is_file():
                yield document.problem(("generators", name), f"no generator named {name!r}", _suggest_file(file))

    def check_device(self, document: Document, device: Device) -> Iterator[SpecProblem]:
        """Yield why a device cannot be used on this machine."""
        if self.needs(device.name):
            yield from check_device(document, device, self.root)

    def check_generator(self, document: Document, generator: Generator) -> Iterator[SpecProblem]:
        """Yield programs of a generator that this machine lacks."""
        if self.runnable:
            yield from check_generator(document, generator)

    def check_workload(self, document: Document, workload: Workload) -> Iterator[SpecProblem]:
        """Read the generator that a workload names, and yield parameters that it does not have."""
        name = workload.generator
        file = _file_of(document, "generators", name)
        if name in BUILT_IN:
            return
        if not file.is_file():
            expected = _suggest_file(file, BUILT_IN)
            yield document.problem(("generator",), f"no generator named {name!r}", expected)
        elif (generator := self.read(file, Generator, self.check_generator)) is not None:
            self.generators[name] = generator
            yield from check_parameters(document, workload, generator)

    def read(self, path: Path, model: type[Model], check: Check[Model] | None) -> Model | None:
        """Return the spec in a file; None, and its problems are kept, where it has any."""
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
        specs = {}
        for index, name in enumerate(names):
            file = _file_of(document, kind, name)
            if not file.is_file():
                entry = (kind, name if kind == "workloads" else index)
                location = names[name] if isinstance(names, Mapping) and kind == "devices" else entry
                self.problems.append(document.problem(location, f"no spec named {name!r}", _suggest_file(file)))
            elif name not in specs and (spec := self.read(file, model, check)) is not None:
                specs[name] = spec
        return specs

    def read_rules(self, document: Document, study: Study) -> dict[str, Rule]:
        """Return the rules of a study by name: those it names, or all that come with knobscope."""
        project = _find_project(document)
        named = shipped_rules() if study.rules is None else study.rules
        rules: dict[str, Rule] = {}
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
            if rule.name in rules:
                clash = f"a second rule named {rule.name!r} (the first is {show_path(rules[rule.name].folder)})"
                self.problems.append(document.problem(("rules", index), clash, "each name once"))
            rules.setdefault(rule.name, rule)
        return rules

    def read_prior(self, document: Document, study: Study) -> Prior | None:
        """Return the prior that a study starts from, if it names one: a file, or a name in the folder next to specs."""
        named = study.screening.prior
        if named is None:
            return None
        folder = _find_project(document) / "models"
        is_file = "/" in named or named.endswith(".yaml")
        file = self.root / named if is_file else folder / f"{named}.yaml"
        if os.path.isfile(file):  # noqa: PTH113 - that of Path raises an error for a name that is too long
            return self.read(file, Prior, None)
        have = [] if is_file else sorted(path.stem for path in folder.glob("*.yaml"))
        expected = suggest(named, have) if have else f"a file {show_path(file)}, as `knobscope models save` writes it"
        self.problems.append(document.problem(("screening", "prior"), f"no prior {named!r}", expected))
        return None
