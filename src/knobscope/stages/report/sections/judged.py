"""Findings that are no mismatch, as lines of a table: what several rules say alike of one value is one line."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.specs import Case, RuleEffect, RuleSpec
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.formats import (
    NO_CLEAR_EFFECT,
    UNKNOWN,
    describe_change,
    describe_interval,
    format_value,
    keep_units,
)

#: More lines than this are counted, and not shown.
_MOST = 500
#: How rules say that they have no verdict: what was changed, where, and the reason, which may be that of other rules.
_UNJUDGED = re.compile(
    r"(?P<change>.+?) could not be (?:judged|checked for .+?) "
    r"(?P<case>\(\S+ on .+?\)): (?P<reason>.+)"
)


@dataclass(frozen=True)
class Judged:
    """What one rule or several say of a value, as a line of a table."""

    rules: str
    case: str
    knob: str
    value: str
    effect: str
    order: str  # the effect as a number, to sort by; empty where there is none
    sentence: str


@dataclass(frozen=True)
class JudgedTable:
    """Findings of one kind: `count` is how many there are, `omitted` how many lines are not among the rows."""

    rows: list[Judged]
    count: int
    omitted: int


@dataclass(frozen=True)
class FindingEffect:
    """The effect of a finding in words, the ends of its interval, and a number to sort it by."""

    words: str
    interval: str
    order: str

    @classmethod
    def of(cls, row: Row, about: RuleEffect) -> "FindingEffect":
        """Return the effect of a row of table `findings`, in the words of its rule."""
        ratio, low, high = (_log_ratio(row[name]) for name in ("effect", "effect_low", "effect_high"))
        if ratio is None:
            return cls(UNKNOWN, "", "")
        if low is None or high is None:
            return cls(describe_change(ratio, about.more, about.less), "", f"{ratio:.6g}")
        unclear = low <= 0 <= high and row["verdict"] != "mismatch"  # which is clear by the study's `fdr`
        change = NO_CLEAR_EFFECT if unclear else describe_change(ratio, about.more, about.less)
        return cls(
            change, describe_interval(ratio, low, high, about.more, about.less), f"{0 if unclear else ratio:.6g}"
        )


def _log_ratio(change: float | None) -> float | None:
    """Return a relative change (-0.5: half) as a natural-log ratio."""
    return None if change is None or change <= -1 else math.log1p(change)


def about_rule(data: StudyData, rule: str) -> RuleSpec:
    """Return what a rule says of itself; of one that the study no longer asks for, its name."""
    spec = data.specs.rules.get(rule)
    return spec.about if spec else RuleSpec(name=rule, title=rule, question="", needs=["findings"])


def tabulate_judged(data: StudyData, rows: Sequence[Row]) -> JudgedTable:
    """Return a line for each value and what is said of it; of many those with the largest effects."""
    lines: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = [row[name] for name in ("dbms", "device", "workload", "knob", "value", "effect", "confirmation")]
        lines.setdefault((*key, _say_alike(data, row) or row["sentence"]), []).append(row)
    shown = list(lines.values())
    if len(shown) > _MOST:
        largest = sorted(range(len(shown)), key=lambda index: -abs(_log_ratio(shown[index][0]["effect"]) or 0.0))
        shown = [shown[index] for index in sorted(largest[:_MOST])]
    return JudgedTable([_judge(data, line) for line in shown], len(rows), len(lines) - len(shown))


def _say_alike(data: StudyData, row: Row) -> str:
    """Return what a finding says that others of its value may say, too; empty where it is the rule's own."""
    if row["verdict"] == "insufficient":
        said = _UNJUDGED.fullmatch(row["sentence"] or "")
        return f"{said['change']} could not be judged {said['case']}: {said['reason']}" if said else ""
    low, high, most = row["effect_low"], row["effect_high"], data.specs.study.thresholds.min_effect
    if row["verdict"] != "none" or low is None or high is None or not -most < low <= high < most:
        return ""
    change, found, _ = (row["sentence"] or "").partition("; ")
    return f"{change}: an effect that matters is ruled out." if found else ""


def _judge(data: StudyData, line: Sequence[Row]) -> Judged:
    row = line[0]
    case, effect = Case.of(row), FindingEffect.of(row, about_rule(data, row["rule"]).effect)
    sentence = (_say_alike(data, row) if len(line) > 1 else "") or row["sentence"]
    return Judged(
        rules=", ".join(dict.fromkeys(row["rule"] for row in line)),
        case=name_case(case),
        knob=row["knob"] or "",
        value=format_value(data.specs.dbms.get(case.dbms), row["knob"], row["value"]) if row["value"] else "",
        effect=effect.words,
        order=effect.order,
        sentence=keep_units(" ".join(text for text in (sentence, row["confirmation"]) if text)),
    )
