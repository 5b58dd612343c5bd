"""Which of the saved priors a study could start from."""

from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs import Prior, StudySpecs, read_spec, unranked_knobs

__all__ = ["describe_fitting"]


def describe_fitting(specs: StudySpecs, folder: Path) -> list[str]:
    """Return a line for each prior of a folder that ranks all that a study varies, and can be trusted.

    There are none for a study that starts from a prior as it is. Whether the version of the DBMS fits shows when it
    runs. A file that is no prior gets a line that says so, and hinders nothing: the study does not ask for it.
    """
    if specs.prior is not None:
        return []
    lines = []
    for file in sorted(folder.glob("*.yaml")):
        try:
            prior = read_spec(file, Prior, None)[1]
        except UserError as error:
            lines.append(f"models/{file.name} cannot be read as a prior: {error}")
            continue
        if _fits(specs, prior):
            told = f"`screening: {{prior: {prior.name}}}` would take its ranking and screen nothing"
            lines.append(f"models/{file.name} ranks all knobs of this study: {told}")
    return lines


def _fits(specs: StudySpecs, prior: Prior) -> bool:
    """Whether a prior ranks every knob under workloads of each class of the study, in rankings that can be trusted."""
    for dbms in specs.dbms:
        for workload in specs.workloads.values():
            rankings = prior.rankings_for(dbms, workload.class_)
            if not rankings or not all(one.trustworthy for one in rankings):
                return False
        if unranked_knobs(specs.study, prior, dbms, specs.workloads):
            return False
    return True
