"""The shelf of specs: finds what a study names, reads everything, reports all problems of all files together."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from knobscope.specs.base import SpecModel, suggest
from knobscope.specs.catalogue import add_named_knobs
from knobscope.specs.check import (
    check_baseline,
    check_dbms,
    check_device,
    check_generator,
    check_load,
    check_parameters,
    check_programs,
    check_study_knobs,
    check_versions,
)
from knobscope.specs.dbms import Dbms
from knobscope.specs.device import Device
from knobscope.specs.generator import BUILT_IN, Generator
from knobscope.specs.inherit import load_extended
from knobscope.specs.prior import FittedModel, check_prior
from knobscope.specs.source import Document, SpecErrors, SpecProblem, load_document, show_path
from knobscope.specs.startable import check_startable, narrow_knobs, read_records
from knobscope.specs.study import Study
from knobscope.specs.validate import validate_document
from knobscope.specs.workload import Workload

__all__ = ["KINDS", "Case", "StudySpecs", "find_specs", "load_study", "read_spec", "validate_files"]

#: Folder of each kind of spec, and its model.
KINDS: dict[str, type[SpecModel]] = {
    "dbms": Dbms,
    "devices": Device,
    "workloads": Workload,
    "generators": Generator,
    "studies": Study,
    "models": FittedModel,
}

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
    prior: FittedModel | None = None  # what the study starts from instead of screening
    generators: dict[str, Generator] = field(default_factory=dict)  # those of the workloads, beside YCSB

    @property
    def cases(self) -> list[Case]:
        """All combinations, in the order of the study."""
        study = self.study
        return [Case(s, d, w) for s in study.dbms for d in study.devices for w in study.workloads]


def read_spec(path: Path, model: type[Model], check: Check[Model] | None) -> tuple[Document, Model]:
    """Read and check one file; raises SpecErrors with all its problems."""
    document = load_extended(path) if model is Dbms else load_document(path)
    spec = validate_document(document, model)
    name = getattr(spec, "name", path.stem)
    problems = [] if name == path.stem else [document.problem(("name",), repr(name), f"the file's name, {path.stem!r}")]
    problems += check(document, spec) if check else []
    if problems:
        raise SpecErrors(problems)
    return document, spec


@dataclass
class _Reader:
    """Reads specs and goes on after a problem; `problems` has them all in the end."""

    root: Path
    runnable: bool
    problems: list[SpecProblem] = field(default_factory=list)
    generators: dict[str, Generator] = field(default_factory=dict)

    def check_dbms(self, document: Document, dbms: Dbms) -> Iterator[SpecProblem]:
        yield from check_dbms(document, dbms)
        if self.runnable:
            yield from check_programs(document, dbms)

    def check_device(self, document: Document, device: Device) -> Iterator[SpecProblem]:
        if self.runnable:
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
        self, document: Document, kind: str, names: Iterable[str], model: type[Model], check: Check[Model] | None
    ) -> dict[str, Model]:
        """Return the specs of a kind that a study names, by name."""
        folder = document.path.absolute().parent.parent / kind
        found = {}
        for index, name in enumerate(names):
            file = folder / f"{name}.yaml"
            if not file.is_file():
                have = sorted(other.stem for other in folder.glob("*.yaml"))
                expected = suggest(name, have) if have else f"a file {show_path(file)}"
                place = (kind, name if kind == "workloads" else index)
                self.problems.append(document.problem(place, f"no spec named {name!r}", expected))
            elif (spec := self.read(file, model, check)) is not None:
                found[name] = spec
        return found

    def read_prior(self, document: Document, study: Study) -> FittedModel | None:
        """Return the model that a study starts from, if it names one: a file, or a name in the folder beside specs."""
        named = study.screening.prior
        if named is None:
            return None
        folder = document.path.absolute().parents[2] / "models"
        is_file = "/" in named or named.endswith(".yaml")
        file = self.root / named if is_file else folder / f"{named}.yaml"
        if file.is_file():
            return self.read(file, FittedModel, None)
        have = [] if is_file else sorted(other.stem for other in folder.glob("*.yaml"))
        expected = suggest(named, have) if have else f"a file {show_path(file)}, as `knobscope models save` writes it"
        self.problems.append(document.problem(("screening", "prior"), f"no model {named!r}", expected))
        return None


def load_study(path: Path, root: Path, *, runnable: bool = True) -> StudySpecs:
    """Read a study and all it names from the `specs` folder two levels above the study file.

    With `runnable`, programs and device directories must exist on this machine (`root` is what relative device
    paths start from). Raises SpecErrors with all problems of all files.
    """
    reader = _Reader(root, runnable)
    document, study = read_spec(path, Study, None)
    dbms = reader.read_named(document, "dbms", study.dbms, Dbms, reader.check_dbms)
    devices = reader.read_named(document, "devices", study.devices, Device, reader.check_device)
    workloads = reader.read_named(document, "workloads", study.workloads, Workload, reader.check_workload)
    changed = {name: _change(workload, study) for name, workload in workloads.items()}
    for name in dbms:
        dbms[name], problems = _complete(document, study, dbms[name])
        one = dbms[name]
        if not problems:
            for workload in changed.values():
                problems += check_baseline(document, study, one, workload)
                problems += check_load(document, study, one, workload, reader.generators)
            if runnable and not reader.problems:
                problems += check_versions(document, study, one)
        reader.problems += problems
    prior = reader.read_prior(document, study)
    if prior is not None:
        reader.problems += check_prior(document, study, prior, dbms, changed)
    if reader.problems:
        raise SpecErrors(reader.problems)
    return StudySpecs(study, dbms, devices, changed, prior, reader.generators)


def _complete(document: Document, study: Study, dbms: Dbms) -> tuple[Dbms, list[SpecProblem]]:
    """Return the DBMS with the knobs that the study takes from its catalogue, cut to values that are known to start."""
    folder = document.path.absolute().parent.parent
    named = [*study.knobs.get(dbms.name, {}), *study.baseline.get(dbms.name, {})]
    whole, choice = add_named_knobs(dbms, folder / "dbms" / f"{dbms.name}.yaml", named)
    problems = list(check_study_knobs(document, study, whole, choice))
    records = read_records(folder / "startable", whole)
    if not problems:
        problems += check_startable(document, study, whole, records)
    return narrow_knobs(whole, records), problems


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
        elif kind == "models":
            reader.read(path, FittedModel, None)
        elif kind == "studies":
            try:
                load_study(path, root, runnable=runnable)
            except SpecErrors as error:
                reader.problems.extend(error.problems)
        else:
            expected = f"a file in a folder named {', '.join(KINDS)}"
            reader.problems.append(SpecProblem(show_path(path), 1, "", f"folder {kind!r}", expected))
    if reader.problems:
        raise SpecErrors(reader.problems)
    return paths
