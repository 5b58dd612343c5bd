"""What is published of an effect that was measured again: the figures of the new pairs of runs, not the sweep's.

The sweep found the effect because it was large, among many: of those, its own estimate is too large on average (the
winner's curse). New pairs of runs owe nothing to that choice. Where only both together show the effect, the figures are
those of both. The sweep's figures stay in the evidence (`sweep`) and in
column `swept` of table `effects`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.specs import Case, Rule
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.shares import Amount
from knobscope.statistics.looks import SIGNIFICANCE
from knobscope.tables import WhatIfRow
from knobscope.tables.detection import EffectRow, FindingRow
from knobscope.text.formats import join_words
from knobscope.text.sentences import Sentences


def list_new_effects(answers: Sequence[Answer]) -> list[EffectRow]:
    """Return the effects on throughput of new pairs of runs, with the columns that these tell."""
    rows: list[EffectRow] = []
    for answer in answers:
        question, effect = answer.question, _find_published(answer)
        if effect is None or question.knob is None or question.other_device is not None:
            continue
        case = question.case
        low, high = effect.interval(SIGNIFICANCE)
        rows.append(
            {
                "dbms": case.dbms,
                "device": case.device,
                "workload": case.workload,
                "knob": question.knob,
                "value": str(question.value),
                "estimate": effect.mean,
                "low": low,
                "high": high,
                "standard_error": effect.error,
                "degrees": effect.degrees,
            }
        )
    return rows


def _find_published(answer: Answer) -> Amount | None:
    """Return the effect by the new pairs, or with the runs of the sweep where it is clear by both together only."""
    if answer.repeated_effect is None or answer.is_gone:
        return None
    return answer.repeated_effect if answer.is_reproduced else answer.question.with_sweep(answer.own_effect)


def find_same_effect(answer: Answer, findings: Sequence[FindingRow]) -> list[int]:
    """Return positions of findings that state the same effect of the sweep and found no mismatch in it."""
    question, swept = answer.question, answer.question.swept_effect
    if swept is None or question.knob is None or question.other_device is not None:
        return []
    asked = (*question.case, question.knob, str(question.value))
    return [
        index
        for index, row in enumerate(findings)
        if row["verdict"] != "mismatch"
        and row.get("effect") is not None
        and (*Case.of(row), row["knob"], row["value"]) == asked
        and math.isclose(math.log1p(row["effect"] or 0.0), swept.mean, rel_tol=1e-6)
    ]


def restate_finding(answer: Answer, rule: Rule | None, finding: FindingRow, sentences: Sentences) -> FindingRow:
    """Return figures and sentence of a finding by the new pairs of runs; nothing where these do not tell its effect."""
    effect = _find_published(answer)
    if rule is None or effect is None or finding.get("effect") is None:
        return {}
    evidence = json.loads(finding["evidence"] or "{}")
    original = sentences.say(rule, {**finding, "evidence": evidence})
    if original not in finding["sentence"]:  # the rule has other words by now
        return {}
    old = math.log1p(finding["effect"] or 0.0)
    restated: FindingRow = {**finding}
    was_opposite = bool(evidence.get("opposite"))
    if answer.question.other_device is not None:
        effect = _restate_sides(answer, effect, evidence)
    low, high = effect.interval(SIGNIFICANCE)
    restated |= {"effect": math.expm1(effect.mean), "effect_low": math.expm1(low), "effect_high": math.expm1(high)}
    if was_opposite and _is_too_small(effect, evidence):
        restated["verdict"], evidence["obstacle"] = "insufficient", "noise"
    swept = {name: finding.get(name) for name in ("effect", "effect_low", "effect_high", "penalty")}
    evidence = {**evidence, "sweep": swept, "pairs": answer.pairs[ITSELF]}
    if "throughput_ratio" in evidence:
        evidence["throughput_ratio"] = math.exp(effect.mean)
    is_mismatch = restated["verdict"] == "mismatch"
    restated["penalty"] = _restate_penalty(finding["penalty"], old, effect.mean) if is_mismatch else None
    sentence = sentences.say(rule, {**restated, "evidence": evidence})
    restated |= {"evidence": json.dumps(evidence), "sentence": finding["sentence"].replace(original, sentence, 1)}
    return restated


def qualify_gap(finding: FindingRow, what_ifs: Sequence[WhatIfRow]) -> FindingRow:
    """Say of a gap between tiers that the effect on one of them did not reproduce; an opposite one rests on both."""
    evidence = json.loads(finding["evidence"] or "{}")
    sides = [evidence[side] for side in ("lower_device", "higher_device") if evidence.get(side)]
    if finding["verdict"] != "mismatch" or len(sides) < 2:
        return finding
    asked = (finding["dbms"], finding["workload"], finding["knob"], finding["value"])
    gone = [
        row["device"]
        for row in what_ifs
        if row["is_gone"]
        and row["other_device"] is None
        and row["device"] in sides
        and (row["dbms"], row["workload"], row["knob"], row["value"]) == asked
    ]
    if not gone:
        return finding
    changed: FindingRow = {**finding}
    changed["sentence"] += f" On {join_words(gone)} the effect did not reproduce in new runs."
    if evidence.get("opposite"):
        changed["verdict"], changed["penalty"] = "insufficient", None
    return changed


def _is_too_small(gap: Amount, evidence: Mapping[str, Any]) -> bool:
    """Whether a gap is no mismatch, now that the effects are no longer opposite."""
    least = evidence.get("tier_gap")  # studies of earlier versions have none
    return not evidence["opposite"] and least is not None and abs(gap.mean) <= math.log1p(least)


def _restate_sides(answer: Answer, gap: Amount, evidence: dict[str, Any]) -> Amount:
    """Put the new effect on its device into the evidence of a gap between tiers; return the gap, higher minus lower."""
    question = answer.question
    is_higher = question.case.device == evidence.get("higher_device")
    own = answer.own_effect
    if not answer.is_reproduced and question.swept is not None:
        own = own.together_with(question.swept)
    low, high = own.interval(SIGNIFICANCE)
    side = {"effect": math.expm1(own.mean), "low": math.expm1(low), "high": math.expm1(high)}
    gap = gap if is_higher else Amount(-gap.mean, gap.error, gap.degrees)
    other = evidence["lower" if is_higher else "higher"]["effect"]
    if evidence.get("opposite"):
        evidence["opposite"] = own.is_clear(SIGNIFICANCE) and own.mean * math.log1p(other) < 0
    evidence |= {"higher" if is_higher else "lower": side, "ratio_of_ratios": math.exp(gap.mean)}
    return gap


def _restate_penalty(penalty: float | None, old: float, new: float) -> float | None:
    """Return the penalty: that of the whole effect follows it, that of a part of it is no larger than the whole."""
    if penalty is None:
        return None
    whole = math.exp(abs(new))
    return whole if math.isclose(penalty, math.exp(abs(old)), rel_tol=1e-6) else min(penalty, whole)
