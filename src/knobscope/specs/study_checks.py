"""Checks a study against all that it names, in the order in which a reader of its file meets the problems."""

from knobscope.specs.checks.check import (
    check_baseline,
    check_changes,
    check_memory,
    check_study_knobs,
    check_study_names,
    check_thresholds,
    check_versions,
    explain_ranges,
)
from knobscope.specs.checks.load import check_load
from knobscope.specs.completing.factors import check_factors
from knobscope.specs.completing.layout_knobs import check_layout, check_layout_devices
from knobscope.specs.completing.startable import check_startable
from knobscope.specs.completing.study import NamedKnobs, complete_dbms, join_studies, name_knobs
from knobscope.specs.models.client_host import check_client_host
from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.prior import check_prior
from knobscope.specs.models.study import Study
from knobscope.specs.reading.source import SpecProblem
from knobscope.specs.shelf import Shelf


def check_study(shelf: Shelf, *, ask_versions: bool = False) -> list[SpecProblem]:
    """Return all problems of a study and the files that it names; `ask_versions`: also those of installed programs."""
    document, study, of_files = shelf.document, shelf.study, shelf.problems
    of_factors = list(check_factors(document, study, shelf.workloads.values(), shelf.generators))
    problems = [
        *of_files["mistakes"],
        *of_files["name"],
        *check_study_names(document, study),
        *of_files["dbms"],
        *of_files["devices"],
        *check_layout_devices(document, study, shelf.devices),
        *study.factors.check_kernel(document, shelf.devices),
        *of_files["workloads"],
        *check_changes(document, study, shelf.workloads.values()),
        *of_factors,
    ]
    completed: dict[str, tuple[Study, Dbms]] = {}
    for name, files in shelf.dbms.items():
        named = name_knobs(document, study, files, shelf.workloads.values())
        of_knobs = _check_knobs(shelf, name, named)
        if of_knobs:
            completed[name] = named.study, named.dbms
        else:
            workloads = [] if of_factors else shelf.workloads.values()
            completed[name] = complete_dbms(study, named, files, workloads, shelf.generators)
        problems += of_knobs
        if not of_knobs and not of_files["mistakes"]:
            may_ask = ask_versions and name in shelf.installed and not problems
            problems += _check_completed(shelf, *completed[name], ask_versions=may_ask)
    whole = join_studies(study, {name: full_study for name, (full_study, _) in completed.items()})
    if not problems:
        problems += [
            document.problem(misfit.location, misfit.found, misfit.expected) for misfit in whole.find_unvaried()
        ]
    problems += of_files["rules"]
    if not problems:
        problems += check_thresholds(document, study, shelf.rules.values())
    problems += of_files["prior"]
    if shelf.prior is not None:
        dbms = {name: full_dbms for name, (_, full_dbms) in completed.items()}
        problems += check_prior(document, whole, shelf.prior, dbms, shelf.workloads)
    return explain_ranges(document, {name: full_dbms for name, (_, full_dbms) in completed.items()}, problems)


def _check_knobs(shelf: Shelf, dbms: str, named: NamedKnobs) -> list[SpecProblem]:
    """Return what is wrong with the knobs and the layout that a study names for a DBMS."""
    problems = [
        *named.problems,
        *check_study_knobs(shelf.document, named.study, named.dbms, named.choice),
        *check_layout(shelf.document, named.study, named.dbms),
    ]
    return problems or list(check_startable(shelf.document, named.study, named.dbms, shelf.dbms[dbms].records))


def _check_completed(shelf: Shelf, study: Study, dbms: Dbms, *, ask_versions: bool) -> list[SpecProblem]:
    """Return why a completed DBMS cannot run the workloads of a completed study."""
    problems: list[SpecProblem] = []
    for workload in shelf.workloads.values():
        problems += check_baseline(shelf.document, study, dbms, workload)
        problems += check_load(shelf.document, study, dbms, workload, shelf.generators)
        problems += check_memory(shelf.document, dbms, workload)
        problems += check_client_host(shelf.document, study.client, dbms, workload)
    return [*problems, *(check_versions(shelf.document, study, dbms) if ask_versions else [])]
