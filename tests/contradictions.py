"""Finds what contradicts itself in the report of a study: sentences against figures, and experiments against sentences.

Twice a report said what its own figures refuted: that a change gains "at most 12x" next to an experiment that gained
15x, and that flushes take 92 % of the time of a device that is busy for 90 %. No report may. Run
`python tests/contradictions.py SPEC DATABASE` to look at a finished study.
"""

import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from knobscope.specs import Case, RuleEffect, StudySpecs, load_study, value_text
from knobscope.stages.remeasure.properties import FACTOR_PROPERTIES
from knobscope.stages.report.sections import build_budgets, build_findings, build_head
from knobscope.stages.report.sections.budgets import CaseBudget
from knobscope.stages.report.sections.findings import FindingsSection
from knobscope.stages.report.sections.judged import about_rule
from knobscope.study_data.study import Row, StudyData
from knobscope.tables import TABLES
from knobscope.text.answers import describe_answer
from knobscope.text.formats import describe_change, format_value

Effect = tuple[str | None, ...]

#: What is rounded to two or three digits may be off by as much.
_ROUNDED = 0.06
#: Figures of the evidence, of which the first is a part of the second.
_PARTS = (("flushing_share", "busy_share"), ("waiting_for_flushes", "surely_waiting"))
_MICROS = {"µs": 1.0, "ms": 1e3, "s": 1e6}
_TIME = r"([\d,.]+) (µs|ms|s)\b"
_SHARES = re.compile(r"Shares of the difference(, scaled to a whole)?: (.*?, not explained [^%]*%)\.")
_SHARE_OF_WHOLE = re.compile(r"(\d[\d,]*) % of (?:the|its|their) (?:time|busy time|difference|requests|runs)\b")
_RANGES = re.compile(r"(?:interval|\() ?([\d.,]+)( %|x) to ([\d.,]+)\2")
_DENIED = "does not rule out an effect that matters"


def find_contradictions(database: Path, specs: StudySpecs) -> list[str]:
    """Return what contradicts itself in a study and its report, each in words."""
    with StudyData.open(database, specs) as data:
        findings = read_findings(data)
        what_ifs = data.rows("FROM what_ifs")
        section = build_findings(data)
        return [
            *_find_intervals(data),
            *(text for row in findings for text in _find_in_sentence(data, row)),
            *(text for row in findings for text in _find_in_effect(data, row)),
            *_find_bounds(findings, what_ifs),
            *_find_untenable(findings, what_ifs),
            *_find_refuted_causes(findings, data.gone_effects),
            *_find_slow(data),
            *find_in_budgets(build_budgets(data)),
            *find_in_head(data, section, findings),
        ]


def read_findings(data: StudyData) -> list[Row]:
    """Return the rows of table `findings`, with the evidence decoded."""
    return [{**row, "evidence": json.loads(row["evidence"] or "{}")} for row in data.rows("FROM findings")]


def effect_of(row: Row) -> Effect:
    return (*Case.of(row), row["knob"], row["value"])


def _name(row: Row) -> str:
    return " ".join(filter(None, [row.get("rule"), *effect_of(row)]))


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


def _number(text: str) -> float:
    return float(text.replace(",", "").rstrip("."))


def _find_intervals(data: StudyData) -> Iterator[str]:
    """An estimate is within its interval."""
    for table, columns in TABLES.items():
        for low in (name for name, kind in columns.items() if kind == "DOUBLE" and name.endswith("low")):
            middle, high = low.removesuffix("_low") if low != "low" else "estimate", f"{low.removesuffix('low')}high"
            if middle in columns and high in columns:
                outside = f"{middle} < {low} - 1e-9 OR {middle} > {high} + 1e-9"
                known = " AND ".join(f"isfinite({name})" for name in (low, middle, high))
                for row in data.rows(f'FROM "{table}" WHERE {known} AND ({outside})'):
                    yield f"{table}: {middle} {row[middle]:g} is outside of {row[low]:g} to {row[high]:g}: {dict(row)}"


def _find_in_sentence(data: StudyData, row: Row) -> Iterator[str]:
    """A finding's own words and figures agree."""
    sentence, evidence = _plain(row["sentence"]), row["evidence"]
    said = f"{sentence} {_plain(row['confirmation'])}"
    for part, whole in _PARTS:
        if (evidence.get(part) or 0) > (evidence.get(whole) or math.inf) * (1 + 1e-6):
            yield f"{_name(row)}: {part} {evidence[part]:g} is more than {whole} {evidence[whole]:g}"
    for share in _SHARE_OF_WHOLE.findall(said):
        if _number(share) > 100:
            yield f"{_name(row)}: {share} % of a whole: {said}"
    for clause in (clause for clause in said.split(". ") if "disappear" in clause):
        if any(_number(share) > 100 for share in re.findall(r"([\d.,]+) %", clause)):
            yield f"{_name(row)}: more than all disappears: {clause}"
    for low, _, high in _RANGES.findall(said):
        if _number(low) > _number(high):
            yield f"{_name(row)}: from {low} to {high}: {said}"
    if len(set(re.findall(r"at most [\d.,]+x as fast", said))) > 1:
        yield f"{_name(row)}: two bounds of one gain: {said}"
    low, high, least = row["effect_low"], row["effect_high"], data.specs.study.thresholds.min_effect
    if None not in (low, high) and -least < low <= high < least and _DENIED in sentence:
        yield f"{_name(row)}: an effect between {low:g} and {high:g} that is not ruled out: {sentence}"
    if (stated := _SHARES.search(sentence)) is not None:
        shares = [_number(share) for share in re.findall(r"([\d.]+) %", stated[2])]
        if abs(sum(shares) - 100) > len(shares):
            yield f"{_name(row)}: shares that come to {sum(shares):g} %: {sentence}"


def _find_in_effect(data: StudyData, row: Row) -> Iterator[str]:
    """A finding states the effect of table `effects`, and in words what it has in figures."""
    about = about_rule(data, row["rule"]).effect
    if row["knob"] is None or row["effect"] is None or about.label != RuleEffect().label:
        return
    estimates = [
        effect["estimate"]
        for effect in data.rows("FROM effects WHERE metric = 'throughput_ops' AND estimate IS NOT NULL")
        if effect_of(effect) == effect_of(row)
    ]
    ratio = math.log1p(row["effect"])
    is_gone = effect_of(row) in data.gone_effects
    if estimates and not is_gone and not any(math.isclose(ratio, one, abs_tol=1e-6) for one in estimates):
        yield f"{_name(row)}: effect {ratio:g}, in table effects {estimates}"
    words = _plain(describe_change(ratio, about.more, about.less))
    if row["verdict"] == "mismatch" and words not in _plain(row["sentence"]):
        yield f"{_name(row)}: {words} in figures, and in words: {_plain(row['sentence'])}"


def _find_bounds(findings: Sequence[Row], what_ifs: Sequence[Row]) -> Iterator[str]:
    """No bound is below what an experiment gained; where `again` is above 0, that is a gain of the default."""
    of_default = {effect_of(row) for row in what_ifs if (row["again"] or 0) > 0}
    for row in findings:
        bound = row["evidence"].get("limit", {}).get("penalty")
        for other in (other for other in what_ifs if other["gain_low"] is not None):
            gained = math.exp(other["gain_low"]) * (1 - 1e-6)
            is_same = effect_of(other) == effect_of(row) and other["other_device"] is None
            if bound is not None and is_same and gained > bound:
                yield f"{_name(row)}: bound {bound:g}, and {gained:g} with {other['property']}"
            said = "at most" in row["sentence"] and row["knob"] is None and Case.of(row) == Case.of(other)
            most, is_of_default = row["evidence"].get("most_gain"), effect_of(other) in of_default
            if said and most and is_of_default and other["property"] in ("spread", "channels") and gained > most:
                yield f"{_name(row)}: at most {most:g}, and {gained:g} with {other['property']}"


def _find_untenable(findings: Sequence[Row], what_ifs: Sequence[Row]) -> Iterator[str]:
    """What an experiment showed of an effect is what its findings say."""
    for row in findings:
        of_effect = [one for one in what_ifs if effect_of(one) == effect_of(row) and one["other_device"] is None]
        properties = FACTOR_PROPERTIES.get(row["cause"] or "", ())
        named = [one for one in of_effect if one["property"] in properties and one["share"] is not None]
        answer = row["confirmed"] if row["verdict"] == "mismatch" else None
        most = max((math.inf if one["share_high"] is None else one["share_high"] for one in named), default=math.inf)
        if answer == "yes" and most < 0.4:
            yield f"{_name(row)}: confirmed, and little of it disappears: {named}"
        if answer == "no" and any((one["share_low"] or 0) >= 0.5 for one in named):
            yield f"{_name(row)}: refuted, and most of it disappears: {named}"
        is_compared = "lower_device" in row["evidence"]
        if row["knob"] is None or is_compared or not any(one["is_gone"] for one in of_effect):
            continue
        if row["verdict"] == "mismatch" and row["confirmed"] != "no":
            yield f"{_name(row)}: a mismatch whose effect did not reproduce"
        is_clear = None not in (row["effect_low"], row["effect_high"]) and row["effect_low"] * row["effect_high"] > 0
        if is_clear and not re.search("did not reproduce|less than half", f"{row['sentence']} {row['confirmation']}"):
            yield f"{_name(row)}: says nothing of an effect that did not reproduce: {row['sentence']}"


def _find_refuted_causes(findings: Sequence[Row], gone: frozenset[Effect]) -> Iterator[str]:
    """What an experiment refuted explains nothing elsewhere."""
    refuted = {
        (effect_of(row), row["cause"]) for row in findings if row["verdict"] == "mismatch" and row["confirmed"] == "no"
    }
    standing = {
        (row["dbms"], row["knob"], row["rule"])
        for row in findings
        if row["verdict"] == "mismatch" and row["confirmed"] != "no"
    }
    for row in findings:
        evidence, effect = row["evidence"], effect_of(row)
        by_flushes = evidence.get("explained_by") == "flushes" or evidence.get("by_flushes")
        if row["verdict"] == "none" and by_flushes and (effect, "flush") in refuted and effect not in gone:
            yield f"{_name(row)}: explained by flushes, which an experiment refuted: {row['sentence']}"
        if _SHARES.search(_plain(row["sentence"])) and any(effect == other for other, _ in refuted):
            yield f"{_name(row)}: shares of causes of which one was refuted: {row['sentence']}"
        for guilty in evidence.get("guilty_elsewhere") or ():
            if not any((guilty["dbms"], guilty["knob"], rule) in standing for rule in evidence["by_rules"]):
                yield f"{_name(row)}: {guilty} is at fault in no finding"


def _find_slow(data: StudyData) -> Iterator[str]:
    """No single value that is as safe is surely faster than the fastest configuration that the page names."""
    for row in data.rows("FROM fastest WHERE again_high IS NOT NULL"):
        case = Case.of(row)
        for effect in data.rows("FROM effects WHERE metric = 'throughput_ops' AND swept IS NOT NULL"):
            is_allowed = row["risk"] == "any" or not effect["durability"]
            if Case.of(effect) == case and is_allowed and (effect["low"] or 0) > row["again_high"] + 1e-9:
                yield f"fastest of {case}: up to {row['again_high']:g}, and {_name(effect)} from {effect['low']:g}"


def find_in_budgets(budgets: Sequence[CaseBudget]) -> Iterator[str]:
    """Parts of a budget come to the whole, in sentences and in the table."""
    for budget in budgets:
        for line in budget.lines:
            whole, *parts = (_micros(_plain(text)) for text in (line.total, *(part for part, _ in line.parts)))
            if abs(sum(parts) - whole) > _ROUNDED * whole:
                yield f"{budget.name}, {line.setting}: parts {parts} of {whole}"
        for sentence in map(_plain, budget.sentences):
            head, _, rest = sentence.partition(", of which ")
            whole = _micros((re.findall(rf"({_TIME})(?: \([^)]*\))?$", head) or [["0 s"]])[0][0])
            parts = [_micros(part) for part, *_ in re.findall(rf"(?:^|, )({_TIME})", _without_brackets(rest))]
            if not (1 - 0.15 - _ROUNDED) * whole <= sum(parts) <= (1 + _ROUNDED) * whole:  # those of 1 % are left out
                yield f"{budget.name}: parts {parts} of {whole}: {sentence}"
            for share, latency, *_ in re.findall(rf"([\d.]+) % of its latency of ({_TIME})", head):
                if not math.isclose(_number(share) / 100 * _micros(latency), whole, rel_tol=_ROUNDED):
                    yield f"{budget.name}: {share} % of {latency} is not {whole} µs: {sentence}"


def _without_brackets(text: str) -> str:
    """Return a list of parts without what is said of each in brackets, and without what follows it."""
    return re.sub(r" \([^()]*\)", "", text).split(")")[0]


def _micros(text: str) -> float:
    number, unit = re.fullmatch(_TIME, text).groups()  # type: ignore[union-attr]
    return _number(number) * _MICROS[unit]


def find_in_head(data: StudyData, section: FindingsSection, findings: Sequence[Row]) -> Iterator[str]:
    """The head counts what the tables have, and names no effect that did not reproduce."""
    answer = _plain(" ".join(build_head(data, section).answer))
    is_mismatch = [row["confirmed"] != "no" for row in findings if row["verdict"] == "mismatch"]
    listed = [value.answer for card in section.cards for value in card.values]
    counted = sum(count for tally in section.tallies for kinds in tally.counts.values() for count in kinds.values())
    if len(findings) != counted:
        yield f"{counted} findings in the table of cases, {len(findings)} in table findings"
    if section.symptoms != sum(is_mismatch) or describe_answer("no") in listed:
        yield f"{section.symptoms} findings on cards, {sum(is_mismatch)} mismatches in table findings: {listed}"
    for pattern, count in (
        (r"(\d+) mismatch(?:es)?\b", section.mismatches),
        (r"seen in (\d+) findings?", section.symptoms),
        (r"refuted the effect or its cause for (\d+) findings?", len(is_mismatch) - sum(is_mismatch)),
        (r"(\d+) questions? could not be judged", section.unjudged.count),
    ):
        if any(int(number) != count for number in re.findall(pattern, answer)):
            yield f"the head says {re.findall(pattern, answer)} of {pattern!r}, there are {count}: {answer}"
    for row in data.rows("FROM fastest WHERE again_low <= 0 AND again_high >= 0"):
        changes = json.loads(row["changes"])
        for name, value in changes.items() if len(changes) == 1 else ():
            text = _plain(format_value(data.specs.dbms.get(row["dbms"]), name, value_text(value)))
            where = f"({row['dbms']} on {row['device']}, {row['workload']})"
            if re.search(rf"\b{name}\b[^.]*: {re.escape(text)} is [^()]*{re.escape(where)}", answer):
                yield f"the head names {name} on {row['device']}, which new pairs of runs did not prove: {answer}"
    for dbms, device, workload, knob, value in data.gone_effects:
        spec = data.specs.dbms.get(dbms)
        if f"{knob} matters most: {_plain(format_value(spec, knob, value))} is" in answer and f"on {device}" in answer:
            yield f"the head names {knob} on {device} with {workload}, which did not reproduce: {answer}"


if __name__ == "__main__":
    spec, database = map(Path, sys.argv[1:])
    print(*find_contradictions(database, load_study(spec, Path.cwd(), runnable=False)), sep="\n")
