"""Findings that are no mismatch, as lines of a table: what several rules say alike of one value is one line."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from knobscope.specs import Case, RuleEffect, RuleSpec
from knobscope.stages.detect import Pause, describe_paused, read_pauses
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.formats import (
    NO_CLEAR_EFFECT,
    UNKNOWN,
    describe_change,
    describe_interval,
    format_value,
    keep_units,
)
from knobscope.text.sentences import Sentences

#: More lines than this are counted, and not shown.
_MOST = 500


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
    """Findings of one kind: `count` is how many there are, `omitted` how many lines are not among the rows.

    `paused` says how many rows have interrupted runs behind them, which their own sentences leave out.
    """

    rows: list[Judged]
    count: int
    omitted: int
    paused: str


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


def read_evidence(row: Row) -> Any:
    """Return the evidence of a finding; what is no JSON is returned as it is."""
    try:
        return json.loads(row["evidence"] or "{}")
    except json.JSONDecodeError:
        return {"evidence": row["evidence"]}


def tabulate_judged(data: StudyData, rows: Sequence[Row]) -> JudgedTable:
    """Return a line for each value and what is said of it; of many those with the largest effects."""
    lines: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = [row[name] for name in ("dbms", "device", "workload", "knob", "value", "effect", "confirmation")]
        lines.setdefault((*key, None if _is_ruled_out(data, row) else row["sentence"]), []).append(row)
    shown = list(lines.values())
    if len(shown) > _MOST:
        largest = sorted(range(len(shown)), key=lambda index: -abs(_log_ratio(shown[index][0]["effect"]) or 0.0))
        shown = [shown[index] for index in sorted(largest[:_MOST])]
    pauses = read_pauses(data.connection) if shown else {}
    paired = [(line, pauses.get((*Case.of(line[0]), line[0]["knob"], line[0]["value"]))) for line in shown]
    paused = sum(_is_paused(line, pause) for line, pause in paired)
    return JudgedTable(
        rows=[_judge(data, line, pause) for line, pause in paired],
        count=len(rows),
        omitted=len(lines) - len(shown),
        paused=describe_paused(paused, len(shown)) if paused else "",
    )


def _is_paused(line: Sequence[Row], pause: Pause | None) -> bool:
    return pause is not None and (pause.is_of_value or pause.sentence in (line[0]["sentence"] or ""))


def _is_ruled_out(data: StudyData, row: Row) -> bool:
    """Whether a rule found nothing because there is no effect that matters, so that others say the same."""
    low, high, least = row["effect_low"], row["effect_high"], data.specs.study.thresholds.min_effect
    return row["verdict"] == "none" and None not in (row["knob"], low, high) and -least < low <= high < least


def _judge(data: StudyData, line: Sequence[Row], pause: Pause | None) -> Judged:
    row = line[0]
    case, about = Case.of(row), about_rule(data, row["rule"]).effect
    effect, sentence = FindingEffect.of(row, about), row["sentence"] or ""
    if any(other["sentence"] != row["sentence"] for other in line):
        finding = {**row, "evidence": read_evidence(row)}
        sentence = f"{Sentences(data.specs.dbms).say_outcome(about, finding)}: an effect that matters is ruled out."
    elif pause is not None:
        sentence = sentence.replace(pause.sentence, "", 1)
    return Judged(
        rules=", ".join(dict.fromkeys(row["rule"] for row in line)),
        case=name_case(case),
        knob=row["knob"] or "",
        value=format_value(data.specs.dbms.get(case.dbms), row["knob"], row["value"]) if row["value"] else "",
        effect=effect.words,
        order=effect.order,
        sentence=keep_units(" ".join(text for text in (sentence, row["confirmation"]) if text)),
    )
