"""Completes what a study says of one DBMS: each step returns a new study and a new DBMS."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from knobscope.specs.completing.catalogue import KnobCatalogue, catalogue_file, read_knob_catalogue, take_named_knobs
from knobscope.specs.completing.exclusions import Exclusion, read_exclusions
from knobscope.specs.completing.factors import spread_factors
from knobscope.specs.completing.layout_knobs import spread_layout
from knobscope.specs.completing.startable import StartableRecord, narrow_knobs, read_records, refuse_settings
from knobscope.specs.completing.whole import spread_all, spread_levels
from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.generator import Generator
from knobscope.specs.models.study import Study
from knobscope.specs.models.workload import Workload
from knobscope.specs.reading.source import Document, SpecProblem


@dataclass(frozen=True)
class DbmsFiles:
    """A DBMS of a study, with what other files say of it."""

    spec: Dbms
    catalogue: KnobCatalogue | None  # None: there is none, or the study does not need it
    exclusions: Sequence[Exclusion]
    records: Mapping[str, StartableRecord]


@dataclass(frozen=True)
class NamedKnobs:
    """A study in which each knob of a DBMS has a name, and the DBMS with those that its catalogue has."""

    study: Study
    dbms: Dbms
    choice: list[str]  # all names that the study might use
    left_out: dict[str, str]  # knob that `all` leaves out -> reason
    problems: list[SpecProblem]


def read_dbms_files(specs: Path, study: Study, dbms: Dbms) -> DbmsFiles:
    """Return a DBMS with its files in the folder `specs`, as far as a study needs them; SpecErrors for a broken one."""
    is_whole = study.whole_of(dbms.name) is not None
    is_missing = not dbms.knobs.keys() >= set(_named_by(study, dbms.name))
    catalogue = catalogue_file(specs / "dbms" / f"{dbms.name}.yaml")
    return DbmsFiles(
        dbms,
        read_knob_catalogue(catalogue) if is_whole or is_missing else None,
        read_exclusions(specs / "exclusions") if is_whole else [],
        read_records(specs / "startable", dbms),
    )


def _named_by(study: Study, dbms: str) -> list[str]:
    return [*study.knobs.get(dbms, {}), *study.baseline.get(dbms, {})]


def name_knobs(document: Document, study: Study, files: DbmsFiles, workloads: Collection[Workload]) -> NamedKnobs:
    """Return what a study says of a DBMS with names for what `all` stands for."""
    whole = spread_all(document, study, files.spec, files.catalogue, files.exclusions, workloads)
    dbms, choice = take_named_knobs(files.spec, files.catalogue, _named_by(whole.study, files.spec.name))
    return NamedKnobs(whole.study, dbms, choice, whole.left_out, whole.problems)


def complete_dbms(
    study: Study,
    named: NamedKnobs,
    files: DbmsFiles,
    workloads: Collection[Workload],
    generators: Mapping[str, Generator],
) -> tuple[Study, Dbms]:
    """Return a study whose knobs were checked and its DBMS, with values that start, the layout and factors.

    `study` is as it was written. Without workloads there are no factors.
    """
    name = files.spec.name
    startable = narrow_knobs(named.dbms, files.records)
    near = spread_levels(named.study, startable, study.knobs.get(name, {}), files.spec.knobs)
    refused = [setting for record in files.records.values() for setting in record.refused]
    laid_out = spread_layout(named.study, refuse_settings(near, refused, named.study.baseline.get(name, {})))
    return spread_factors(*laid_out, workloads, generators) if workloads else laid_out


def join_studies(study: Study, completed: Mapping[str, Study]) -> Study:
    """Return a study with what each of the others, by DBMS, says of knobs and baseline of that DBMS."""
    changes = {
        key: {
            **getattr(study, key),
            **{
                name: getattr(of_dbms, key)[name]
                for name, of_dbms in completed.items()
                if name in getattr(of_dbms, key)
            },
        }
        for key in ("knobs", "baseline")
    }
    return study.model_copy(update=changes)
