"""Causes that the runs of a study leave open, settled on a device without the blamed property.

Time waited for and counts can both fall short: an fsync waits for more than its flush, and what clients wait for each
other may hide anything. The experiment needs neither. What it says replaces `insufficient`.
"""

import json
import math
from collections.abc import Sequence

from knobscope.specs import RuleCause
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.judging import is_borne_out
from knobscope.stages.remeasure.properties import FACTOR_PROPERTIES
from knobscope.stages.remeasure.shares import Share
from knobscope.tables.detection import FindingRow

#: An experiment alone has to be surer than one that confirms what runs showed: so much of the effect disappears by the
#: lower end of the interval. One that begins at 1 % says little more than noise does.
_SURELY_GONE = 0.25
#: A penalty that is so many times smaller than it was is said to be that of a part.
_FAR_LESS = 1.25


def settle_finding(answer: Answer, cause: RuleCause, finding: FindingRow) -> FindingRow:
    """Return what an experiment changes of a finding that was *insufficient*: verdict, penalty, sentence and answer.

    Nothing changes but for `confirmation`, which says so, where the effect did not show again or is too small by now,
    the experiment leaves the cause open, too, or is not sure enough alone, or the runs do not show what no device can
    (`requires` of the rule).
    """
    confirmation = answer.describe()
    confirmed = None if answer.is_gone or not answer.question.followed else is_borne_out(answer, cause)
    shares = [answer.shares[name] for name in FACTOR_PROPERTIES[cause.factor] if name in answer.shares]
    is_short = confirmed and cause.requires and not json.loads(finding.get("evidence") or "{}").get(cause.requires)
    if confirmed is None or is_short or not shares or finding.get("effect") is None:
        return {"confirmed": "not_tested", "confirmation": confirmation}
    if confirmed and max(share.low for share in shares) < _SURELY_GONE:
        unsure = "The runs themselves do not show it, and less than a quarter may disappear: no cause is named."
        return {"confirmed": "not_tested", "confirmation": f"{confirmation} {unsure}"}
    if confirmed and abs(math.log1p(finding["effect"] or 0.0)) < answer.question.least:
        return {"confirmed": "not_tested", "confirmation": f"{confirmation} The effect is too small to be a mismatch."}
    means = cause.confirmed if confirmed else cause.refuted
    settled: FindingRow = {
        "confirmation": f"{confirmation} So {means}.",
        "sentence": f"Settled by an experiment: {answer.tell_effect()}, and {means}. "
        f"The runs alone could not settle it: {finding['sentence']}",
    }
    if not confirmed:
        return {**settled, "verdict": "none", "confirmed": "not_tested"}
    whole = math.exp(abs(math.log1p(finding["effect"] or 0.0)))
    limited = _limit(shares, {**finding, **settled, "penalty": whole})
    return {**settled, "verdict": "mismatch", "confirmed": "yes", **limited}


def limit_penalty(answer: Answer, cause: RuleCause, finding: FindingRow) -> FindingRow:
    """Return the penalty of a finding if the experiment that confirmed its cause leaves less, otherwise nothing.

    Its confirmation says so if that is far less.
    Of a cause with several properties, each was changed alone: nobody knows what all of them save together.
    """
    shares = [answer.shares[name] for name in FACTOR_PROPERTIES[cause.factor] if name in answer.shares]
    if len(shares) != 1 or finding.get("effect") is None or finding["penalty"] is None:
        return {}
    return _limit(shares, finding)


def _limit(shares: Sequence[Share], finding: FindingRow) -> FindingRow:
    before = finding["penalty"] or math.inf
    penalty = min(before, _gain_without(shares, finding))
    if before <= _FAR_LESS * penalty:
        return {"penalty": penalty}
    return {"penalty": penalty, "confirmation": f"{finding['confirmation']} The penalty is for that part alone."}


def _gain_without(shares: Sequence[Share], finding: FindingRow) -> float:
    """Return how many times the throughput is without a cause: without as much of the effect as is gone, at most."""
    # As much as the larger part that is gone, and no more than the whole of the effect, takes of the slower setting.
    lost = 1 - math.exp(-abs(math.log1p(finding["effect"] or 0.0)))
    return 1 / (1 - max(min(share.high, 1.0) for share in shares) * lost)
