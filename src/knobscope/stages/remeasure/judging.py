"""Whether an experiment confirms what a rule blames, refutes it, or finds a cause where none was named."""

from knobscope.specs import RuleCause
from knobscope.stages.detect import withdraw
from knobscope.stages.remeasure.causes import HALF, Answer
from knobscope.stages.remeasure.properties import EVERYTHING, FACTOR_PROPERTIES
from knobscope.tables.detection import FindingRow

#: Why a finding is refuted: its effect is absent, or what it blames is not what takes the time.
_NOT_AGAIN = "its effect did not reproduce in new runs"
_REMAINS = "most of the time remains without what it blames"
#: Where no rule names a cause, these properties keep their names: they are what writes cost, too.
_SHARED = ("latency", "bandwidth", "order", "rotation")
_BLAMED = {name: factor for factor, names in FACTOR_PROPERTIES.items() for name in names if name not in _SHARED} | {
    "write_delay": "writes"
}


def judge_finding(answer: Answer, cause: RuleCause | None, sentence: str, *, says_gains: bool = True) -> FindingRow:
    """Return `confirmed` and `confirmation` of a finding of a rule that names this cause, or none.

    Where the named cause is refuted, or the effect is not there, also its `sentence`, which says so; where none was
    named and one was found, also `cause`. What a layer above the drive would gain is added to the `sentence` if it
    `says_gains`. None of `confirmed` leaves the cause to the stage `imitate`.
    """
    confirmation, gains = answer.describe(), answer.describe_gains() if says_gains else ""
    more: FindingRow = {"sentence": sentence + gains} if gains else {}
    if answer.is_gone:
        return {"confirmed": "no", "confirmation": confirmation, "sentence": withdraw(sentence, _NOT_AGAIN)}
    if not answer.question.followed:
        return {"confirmed": None if answer.is_reproduced else "not_tested", "confirmation": confirmation}
    if cause is None:
        return {"confirmation": confirmation, **more, **_judge_unnamed(answer, sentence)}
    confirmed = is_borne_out(answer, cause)
    if confirmed is None:
        return {"confirmed": answer.undecided, "confirmation": confirmation, **more}
    judged: FindingRow = {
        "confirmed": "yes" if confirmed else "no",
        "confirmation": f"{confirmation} So {cause.confirmed if confirmed else cause.refuted}.",
    }
    return {**judged, **more} if confirmed else {**judged, "sentence": withdraw(sentence, cause.refuted)}


def _judge_unnamed(answer: Answer, sentence: str) -> FindingRow:
    """Judge a finding of a rule without a factor; of a level its evidence may have blamed one (`held_by`)."""
    if answer.conclusion == "cause":
        name = answer.causes[0][0]
        return {"confirmed": "found", "cause": _BLAMED.get(name, name)}
    if answer.conclusion == "not_as_blamed" and answer.question.is_level:
        return {"confirmed": "no", "sentence": withdraw(sentence, _REMAINS)}
    return {"confirmed": "not_tested"}


def is_borne_out(answer: Answer, cause: RuleCause) -> bool | None:
    """Whether the named cause is the one that was found; None where that cannot be determined."""
    is_unknown = answer.conclusion == "undecided"
    if cause.expected == "no_loss":  # what is spent is no cost of the device: it remains where the device has none
        return None if is_unknown else answer.conclusion == "not_the_device"
    properties = FACTOR_PROPERTIES[cause.factor]
    named = [answer.shares[name] for name in properties if name in answer.shares]
    if any(share.is_most for share in named):
        return True
    is_unmeasured = any(name in answer.failures for name in properties)
    if answer.conclusion == "not_the_device" or (
        named and not is_unmeasured and all(share.is_minor for share in named)
    ):
        return False
    if is_unknown or is_unmeasured or not answer.can_judge(cause):
        return None
    other_shares = [share for name, share in answer.shares.items() if name not in (EVERYTHING, *properties)]
    if any(share.low >= HALF for share in other_shares) and not any(share.is_part for share in named):
        return False  # more than half is due to something else, whatever the interval of the named one leaves open
    return None if named else False  # one of several causes is neither refuted nor called the cause
