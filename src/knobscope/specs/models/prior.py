"""Priors: knob rankings of an earlier study, with where they come from, as files in `models/` to start from.

A ranking may be used for the same DBMS, of the same major version, under a workload of the same class. Devices may
differ: to carry a ranking to another device is what it is kept for.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.study import Study
from knobscope.specs.models.workload import Workload
from knobscope.specs.reading.base import Name, SpecModel, Value
from knobscope.specs.reading.source import Document, SpecProblem


def _check_moment(text: str) -> str:
    """Return a moment as it is written. ValueError: it is none, or names a time zone."""
    try:
        if datetime.fromisoformat(text).tzinfo is None:
            return text
    except ValueError:
        pass
    raise ValueError("a moment of UTC such as 2026-11-20T21:03:00")


class RankedKnob(SpecModel):
    """One knob of a ranking; figures as in table `importance`."""

    knob: str = Field(description="Its name in the DBMS spec.")
    rank: int = Field(ge=1, description="Rank, 1 matters most.")
    rank_low: int = Field(ge=1, description="Best rank over subsamples (90 % interval).")
    rank_high: int = Field(ge=1, description="Worst rank over subsamples (90 % interval).")
    importance: float = Field(description="The statistical model's own importance.")
    permutation: float = Field(description="R2 on held-out runs that is lost when its values are shuffled.")
    above_noise: bool = Field(description="Whether it beats the noise columns.")
    stands_out: bool = Field(description="Whether it is above noise, or part of a significant term.")


class PriorRanking(SpecModel):
    """The ranking of one case, and where it was measured."""

    dbms: Name = Field(description="DBMS, by the name of its file.")
    dbms_version: str = Field(description="Version that was measured.")
    workload: Name = Field(description="Workload, by the name of its file.")
    workload_class: str = Field(description="Class of the workload, read or write.")
    device: Name = Field(description="Device, by the name of its file.")
    device_profile: dict[str, Value | None] = Field(description="What fio measured of the device.")
    measured: Annotated[str, AfterValidator(_check_moment)] = Field(description="When its last run began (UTC).")
    model: str = Field(description="Statistical model that ranked.")
    runs: int = Field(ge=0, description="Runs that it was fitted to.")
    holdout_r2: float | None = Field(description="R2 on configurations that the fit did not see.")
    trustworthy: bool = Field(description="Whether the ranking could be trusted.")
    reason: str = Field(description="Why, or why not.")
    knobs: list[RankedKnob] = Field(min_length=1, description="All knobs, most important first.")


class Prior(SpecModel):
    """The rankings that a study learned, from which another one can start."""

    name: Name = Field(description="The file's name without .yaml.")
    study: Name = Field(description="Study that measured it.")
    study_hash: str = Field(description="Hash of the study's specs and of all its screening runs.")
    saved: str = Field(description="Day on which the file was written.")
    knobscope: str = Field(description="Version of knobscope that wrote it.")
    rankings: list[PriorRanking] = Field(min_length=1, description="One per case of the study.")

    def rankings_for(self, dbms: str, workload_class: str) -> list[PriorRanking]:
        """Return the rankings of a DBMS under workloads of a class, from any device."""
        return [
            ranking for ranking in self.rankings if ranking.dbms == dbms and ranking.workload_class == workload_class
        ]

    def describe(self) -> str:
        """Return what it ranks, in words."""
        kinds = dict.fromkeys(
            f"{ranking.dbms} {ranking.dbms_version} under workloads of class {ranking.workload_class}"
            for ranking in self.rankings
        )
        return f"prior {self.name!r}, which ranks the knobs of {' and of '.join(kinds)}"


def check_prior(
    document: Document,
    study: Study,
    prior: Prior,
    dbms: Mapping[str, Dbms],
    workloads: Mapping[str, Workload],
) -> Iterator[SpecProblem]:
    """Yield why a study cannot start from this prior, as far as the specs tell; versions show when it runs."""
    if study.screening.response != "throughput":
        yield document.problem(("screening", "response"), study.screening.response, "throughput, by which priors rank")
    for name in dbms:
        for workload in workloads.values():
            if not prior.rankings_for(name, workload.class_):
                expected = f"one that ranks {name} under workloads of class {workload.class_} (as {workload.name} is)"
                yield document.problem(("screening", "prior"), prior.describe(), expected)
        for knob in unranked_knobs(study, prior, name, workloads):
            found = f"a knob that prior {prior.name!r} does not rank"
            yield document.problem(("knobs", name, knob), found, "one that it ranks, or it under `sweep.always`")


def unranked_knobs(study: Study, prior: Prior, dbms: str, workloads: Mapping[str, Workload]) -> list[str]:
    """Return the knobs of a DBMS that a study varies in screening alone, and a prior that ranks some does not rank."""
    rankings = [ranking for workload in workloads.values() for ranking in prior.rankings_for(dbms, workload.class_)]
    known_knobs = {entry.knob for ranking in rankings for entry in ranking.knobs} | set(study.sweep.always)
    return [knob for knob in study.knobs.get(dbms, {}) if rankings and knob not in known_knobs]


def check_prior_version(
    document: Document, prior: Prior, dbms: Dbms, version: str, workload_class: str
) -> Iterator[SpecProblem]:
    """Yield the rankings that were measured with another major version than the one that runs here."""
    for ranking in prior.rankings_for(dbms.name, workload_class):
        learned, installed = major_version(dbms, ranking.dbms_version), major_version(dbms, version)
        if learned != installed:
            found = f"prior {prior.name!r}, measured with {dbms.name} {ranking.dbms_version}"
            expected = f"a prior of major version {installed}: this machine has {dbms.name} {version}"
            yield document.problem(("screening", "prior"), found, expected)


def major_version(dbms: Dbms, version: str) -> str:
    """Return the part of a version that changes when knobs change their meaning: 15 of 15.4, 10.11 of 10.11.6."""
    return ".".join(re.findall(r"\d+", version)[: dbms.major_version_parts])
