"""Whether the conclusions still change: an optional reason to stop, in addition to or instead of R2 on held-out runs.

A study asks which terms are significant and where the important points are. When the answer has been the same for
several rounds, further runs are unlikely to change it, even where noise keeps R2 below any threshold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from knobscope.statistics.explained import LEAST_MAIN_SHARE, ExplainedTerm

StopRule = Literal["r2", "stability", "both"]
STOP_RULES: tuple[str, ...] = get_args(StopRule)

#: A term below this share comes and goes with the luck of the draw: one in twenty is significant by chance alone ...
LEAST_SHARE = 0.05
#: ... and one above it has not gone as long as it keeps this share of that.
STILL_THERE = 0.5
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Conclusions:
    """What a fit says: clear terms, those that are present at all, and important points of the knobs that can have any.

    `points` has a set of (type, value) for every knob whose curve was looked at, other knobs being as they came.
    """

    terms: frozenset[str]
    present: frozenset[str]
    points: Mapping[str, frozenset[tuple[str, float]]]

    def agree(self, other: "Conclusions") -> bool:
        """Whether each has the clear terms of the other, and curves that both looked at have the same points."""
        common_knobs = self.points.keys() & other.points.keys()
        return (
            self.terms <= other.present
            and other.terms <= self.present
            and all(self.points[knob] == other.points[knob] for knob in common_knobs)
        )

    def mismatch(self, other: "Conclusions") -> float:
        """Return the share of the conclusions of either that are not in both; 0 where neither concludes anything.

        Clear terms count, and points on curves that both looked at: a curve that only one looked at is a term already.
        """
        wrong = len((self.terms - other.present) | (other.terms - self.present))
        total = len(self.terms | other.terms)
        for knob in self.points.keys() & other.points.keys():
            wrong += len(self.points[knob] ^ other.points[knob])
            total += len(self.points[knob] | other.points[knob])
        return wrong / total if total else 0.0


def conclude(explained: Sequence[ExplainedTerm], points: Sequence[Mapping[str, Any]]) -> Conclusions:
    """Return what a fit says; `points` are those of `selection.important_points`.

    Terms are clear from 5 % of the variance on (with p <= .05 where the model tests).
    """
    significant = {
        term.term: term.explained_share for term in explained if term.p_value is None or term.p_value <= SIGNIFICANCE
    }
    looked_at = [t.factors[0] for t, share in significant.items() if len(t.factors) == 1 and share >= LEAST_MAIN_SHARE]
    return Conclusions(
        frozenset(term.name for term, share in significant.items() if share >= LEAST_SHARE),
        frozenset(term.name for term, share in significant.items() if share >= STILL_THERE * LEAST_SHARE),
        {
            knob: frozenset((p["type"], p["value"]) for p in points if p["knob"] == knob and not p.get("beside"))
            for knob in looked_at
        },
    )


def count_stable(history: Sequence[Conclusions | None]) -> int:
    """Return for how many rounds, the last one included, the conclusions have been the same; 0 when there are none.

    A round without a fit (None) or without any term concludes nothing.
    """
    last = history[-1] if history else None
    if last is None or not last.terms:
        return 0
    count = 0
    for conclusions in reversed(history):
        if conclusions is None or not conclusions.agree(last):
            break
        count += 1
    return count


def decide(rule: StopRule, stopped: bool, stable: int, rounds: int) -> bool:
    """Whether to stop: `stopped` is what R2 says, `stable` for how many rounds conclusions held, `rounds` suffice."""
    is_stable = stable >= rounds
    return {"r2": stopped, "stability": is_stable, "both": stopped and is_stable}[rule]


def explain_stability(rule: StopRule, reason: str, stable: int, rounds: int) -> str:
    """Add to the reason of the R2 rule what stability says."""
    if rule == "r2":
        return reason
    stability = f"conclusions have been the same for {stable} of {rounds} rounds"
    return f"{stability}; {reason}" if reason else stability
