"""Which knobs a study expects to matter before it has measured anything: those that stood out in an earlier one.

A prior says what mattered on another machine, so it is no evidence here: it only lowers what a knob has to show among
hundreds (`knobscope.statistics.models.sparse`). Taken are rankings of the same DBMS, of the same major version, under
a workload of the same class, which could be trusted, and whose last run was over before the study's first one began:
no run counts twice, and what is saved in the middle of a study does not change it.
"""

import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs import Case, Prior, PriorRanking, StudySpecs, major_version, read_spec


@dataclass(frozen=True)
class WarmStart:
    """Priors that a case starts from, and the knobs that stood out there, the most important first."""

    priors: list[str]
    knobs: list[str]


def read_priors(folder: Path) -> Iterator[Prior | str]:
    """Yield the priors of a folder; of a file that is none, a sentence that says so."""
    for file in sorted(folder.glob("*.yaml")):
        try:
            yield read_spec(file, Prior, None)[1]
        except UserError as error:
            yield f"models/{file.name} cannot be read as a prior: {error}"


def list_rankings(prior: Prior, specs: StudySpecs, case: Case) -> list[PriorRanking]:
    """Return the rankings of a prior that a case may start from, as far as specs tell."""
    screening = specs.study.screening
    if not screening.warm_start or screening.model != "auto" or screening.response != "throughput":
        return []  # priors rank by throughput
    rankings = prior.rankings_for(case.dbms, specs.workloads[case.workload].class_)
    return [ranking for ranking in rankings if ranking.trustworthy]


def find_warm_start(
    folder: Path, specs: StudySpecs, case: Case, knobs: Collection[str], version: str, begun: datetime
) -> WarmStart:
    """Return what a case starts from that varies some knobs.

    Its first run began at `begun` (UTC), with a version of its DBMS.
    """
    dbms, warm_start = specs.dbms[case.dbms], WarmStart([], [])
    ranks: dict[str, int] = {}
    for prior in read_priors(folder):
        if isinstance(prior, str):
            print(f"knobscope: {prior}", file=sys.stderr)
            continue
        rankings = [
            ranking
            for ranking in list_rankings(prior, specs, case)
            if datetime.fromisoformat(ranking.measured) < begun
            and major_version(dbms, ranking.dbms_version) == major_version(dbms, version)
        ]
        if rankings:
            warm_start.priors.append(prior.name)
        for knob in (knob for ranking in rankings for knob in ranking.knobs if knob.stands_out):
            ranks[knob.knob] = min(knob.rank, ranks.get(knob.knob, knob.rank))
    warm_start.knobs.extend(sorted(ranks.keys() & set(knobs), key=lambda name: (ranks[name], name)))
    return warm_start
