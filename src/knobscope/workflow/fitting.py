"""Which of the saved priors a study starts from, or could take instead of screening."""

from pathlib import Path

from knobscope.specs import Prior, StudySpecs, unranked_knobs
from knobscope.stages.select import list_rankings, read_priors
from knobscope.text.formats import join_words


def describe_fitting(specs: StudySpecs, folder: Path) -> list[str]:
    """Return a line for each prior of a folder that a study starts from, or that ranks all that it varies.

    There are none for a study that takes a prior as it is. Whether the version of the DBMS fits shows when it runs. A
    file that is no prior gets a line that says so, and hinders nothing: the study does not ask for it.
    """
    if specs.prior is not None:
        return []
    lines = []
    for prior in read_priors(folder):
        if isinstance(prior, str):
            lines.append(prior)
            continue
        if knobs := _expected_knobs(specs, prior):
            lines.append(f"models/{prior.name}.yaml: {join_words(knobs)} stood out there and have to show less here")
        if _fits(specs, prior):
            hint = f"`screening: {{prior: {prior.name}}}` would take its ranking and screen nothing"
            lines.append(f"models/{prior.name}.yaml ranks all knobs of this study: {hint}")
    return lines


def _expected_knobs(specs: StudySpecs, prior: Prior) -> list[str]:
    """Return the knobs of a study that stood out in a prior, the most important first."""
    rankings = [ranking for case in specs.cases for ranking in list_rankings(prior, specs, case)]
    varied = {knob for knobs in specs.study.knobs.values() for knob in knobs}
    ranked_knobs = sorted((knob.rank, knob.knob) for ranking in rankings for knob in ranking.knobs if knob.stands_out)
    return [knob for knob in dict.fromkeys(name for _, name in ranked_knobs) if knob in varied]


def _fits(specs: StudySpecs, prior: Prior) -> bool:
    """Whether a prior ranks every knob under workloads of each class of the study, in rankings that can be trusted."""
    for dbms in specs.dbms:
        for workload in specs.workloads.values():
            rankings = prior.rankings_for(dbms, workload.class_)
            if not rankings or not all(ranking.trustworthy for ranking in rankings):
                return False
        if unranked_knobs(specs.study, prior, dbms, specs.workloads):
            return False
    return True
