"""Loads studies: what a study names is read, checked and completed. All problems of all files are reported together."""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from knobscope.errors import UserError
from knobscope.specs.completing.layout_knobs import name_devices
from knobscope.specs.completing.products import select_before_verdicts
from knobscope.specs.completing.study import complete_dbms, join_studies, name_knobs
from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.device import Device
from knobscope.specs.models.generator import Generator
from knobscope.specs.models.prior import Prior
from knobscope.specs.models.rule import SHIPPED_RULES, Rule
from knobscope.specs.models.study import Study
from knobscope.specs.models.workload import Workload
from knobscope.specs.reading.base import SpecModel
from knobscope.specs.reading.source import SpecErrors, SpecProblem, show_path
from knobscope.specs.reading.validate import list_renamed_keys
from knobscope.specs.shelf import KINDS, Reader, Shelf, read_shelf
from knobscope.specs.study_checks import check_study

#: What `digest_specs` says of a study that a pipeline works on, for its jobs, which read the specs again.
SPECS_VARIABLE = "KNOBSCOPE_SPECS"


class Case(NamedTuple):
    """One combination of a study: all its runs are comparable."""

    dbms: str
    device: str
    workload: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Case":
        """Return the case of a row of a table."""
        return cls(*(row[name] for name in cls._fields))

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
    generators: dict[str, Generator] = field(default_factory=dict)  # those of the workloads, other than YCSB
    rules: dict[str, Rule] = field(default_factory=dict)  # in the order of the study
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)  # DBMS -> knob that `all` leaves out -> reason

    @property
    def thresholds(self) -> dict[str, float]:
        """All thresholds of the study and its rules: the study's own value, or the rule's default."""
        study = self.study.thresholds
        of_rules = {
            name: threshold.default for rule in self.rules.values() for name, threshold in rule.about.thresholds.items()
        }
        return {"fdr": study.fdr, "min_effect": study.min_effect, **of_rules, **study.of_rules}

    @property
    def own_rules(self) -> list[Rule]:
        """Rules that do not come with knobscope."""
        return [rule for rule in self.rules.values() if rule.folder.parent != SHIPPED_RULES]

    def layout_devices(self, dbms: str) -> list[str]:
        """Return the devices on which parts of a DBMS's data may lie, in addition to that of the case."""
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


def load_study(
    path: Path, root: Path, *, runnable: bool | Collection[str] = True, ask_versions: bool = False
) -> StudySpecs:
    """Read, check and complete a study with all it names from the `specs` folder two levels above the study file.

    With `runnable`, programs and device directories must exist on this machine (`root` is what relative device
    paths start from), or only those of the DBMSs and devices that it names: a cluster's node need not have more than
    what it measures. Only with `ask_versions` a command of a spec is run: programs are asked for their versions, for
    `since` and `until`. Raises SpecErrors with all problems of all files, and UserError in a job of a pipeline that has
    read other specs.
    """
    shelf = read_shelf(path, root, runnable)
    if problems := check_study(shelf, ask_versions=ask_versions):
        raise SpecErrors(problems)
    devices = [device.notice for device in shelf.devices.values() if device.notice]
    for notice in [*list_renamed_keys(shelf.document, Study), *devices]:
        print(f"knobscope: {show_path(path)}: {notice}", file=sys.stderr)
    specs = complete_study(shelf)
    _require_unchanged(specs)
    return specs


def complete_study(shelf: Shelf) -> StudySpecs:
    """Return a study that was checked with all that it leaves to catalogues, records, layout and factors."""
    study, workloads = shelf.study, shelf.workloads
    named = {name: name_knobs(shelf.document, study, files, workloads.values()) for name, files in shelf.dbms.items()}
    completed = {
        name: complete_dbms(study, named[name], files, workloads.values(), shelf.generators)
        for name, files in shelf.dbms.items()
    }
    return StudySpecs(
        join_studies(study, {name: full_study for name, (full_study, _) in completed.items()}),
        {name: dbms for name, (_, dbms) in completed.items()},
        shelf.devices,
        workloads,
        shelf.prior,
        shelf.generators,
        shelf.rules,
        {name: knobs.left_out for name, knobs in named.items()},
    )


def digest_specs(specs: StudySpecs) -> dict[str, str]:
    """Return digests of a study and of what it names, by kind and name; what only verdicts go by does not count."""
    kinds: dict[str, Mapping[str, SpecModel]] = {
        "dbms": specs.dbms,
        "devices": specs.devices,
        "workloads": specs.workloads,
        "generators": specs.generators,
        "studies": {specs.study.name: specs.study},
    }
    models = {f"{kind}/{name}": model for kind, named in kinds.items() for name, model in named.items()}
    texts = {name: json.dumps(select_before_verdicts(model), default=str) for name, model in models.items()}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


def _require_unchanged(specs: StudySpecs) -> None:
    """Raise UserError where the pipeline of this job has read other specs: one study would have runs of both."""
    before: dict[str, str] = json.loads(os.environ.get(SPECS_VARIABLE, "{}"))
    if f"studies/{specs.study.name}" not in before:
        return
    now = digest_specs(specs)
    if changed := sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)):
        names = ", ".join(f"{name}.yaml" for name in changed)
        raise UserError(
            f"{names} changed after this call of snakemake began, so runs from now on would not fit those before; call "
            "again, and what the change concerns is measured anew"
        )


def find_specs(paths: Iterable[Path]) -> list[Path]:
    """Return the YAML files among these paths, in folders among them, and one folder deeper; sorted."""
    files: set[Path] = set()
    for path in paths:
        files |= {*path.glob("*.y*ml"), *path.glob("*/*.y*ml")} if path.is_dir() else {path}
    return sorted(files)


def validate_files(
    paths: list[Path],
    root: Path,
    *,
    runnable: bool = False,
    check_specs: Callable[[StudySpecs], None] = lambda specs: None,
) -> list[Path]:
    """Check spec files of any kind (told by their folder); returns them, or raises SpecErrors with all problems.

    `check_specs` looks at studies in which nothing else is wrong, and raises SpecErrors, too.
    """
    reader = Reader(root, runnable)
    for path in paths:
        kind = path.absolute().parent.name
        if path.suffix != ".yaml":
            found, expected = f"the extension {path.suffix!r}", "'.yaml', the only one that studies look for"
            reader.problems.append(SpecProblem(show_path(path), 1, "", found, expected))
        elif kind == "dbms":
            reader.read(path, Dbms, reader.check_whole_dbms)
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
                specs = load_study(path, root, runnable=runnable, ask_versions=runnable)
                check_specs(specs)
            except SpecErrors as error:
                reader.problems.extend(error.problems)
        else:
            expected = f"a file in a folder named {', '.join(KINDS)}"
            reader.problems.append(SpecProblem(show_path(path), 1, "", f"folder {kind!r}", expected))
    if reader.problems:
        raise SpecErrors(reader.problems)
    return paths
