"""What a comparison says in words: the same sentences in the terminal and on the page."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from knobscope.commands.compare.baselines import Measured
from knobscope.commands.compare.budgets import Budgets
from knobscope.commands.compare.comparison import CaseComparison, Comparison, Side
from knobscope.commands.compare.effects import EffectPair, OneSided, OtherDefault
from knobscope.commands.compare.findings import MismatchPair, count_kinds
from knobscope.commands.compare.points import LackingPoint
from knobscope.commands.compare.rankings import RankedBoth, Rankings
from knobscope.commands.compare.setups import BY_FIO, DEFAULT_OF, OF_DEVICE, OF_WORKLOAD
from knobscope.text.budgets import describe_budget, describe_budget_change
from knobscope.text.formats import (
    UNKNOWN,
    describe_change,
    describe_interval,
    format_fold,
    format_micros,
    format_number,
    format_rate,
    format_share,
    format_time,
    format_unit,
    join_words,
    list_names,
    plural,
)

_PERCENT_BELOW = math.log(2)


@dataclass(frozen=True)
class _Metric:
    title: str
    more: str
    less: str
    short: str


METRIC_WORDS = {
    "throughput_ops": _Metric("Throughput", "faster", "slower", "throughput"),
    "latency_p95_us": _Metric("95th percentile of latency", "longer", "shorter", "the 95th percentile of latency"),
}
#: What the other study says of one mismatch, and of several.
_OTHER = {
    "none": ("{} judged it and found none", "{} judged them and found none"),
    "insufficient": (
        "{} could not judge it, so that it may still be there",
        "{} could not judge them, so that they may still be there",
    ),
    "withdrawn": ("an experiment refuted it in {}", "experiments refuted them in {}"),
    "not_judged": ("{} did not judge it", "{} did not judge them"),
}


@dataclass(frozen=True)
class EffectWords:
    """A compared effect as cells of a table."""

    knob: str
    value: str
    reference: str
    a: str
    b: str
    ratio: str
    interval: str
    q_value: str
    bound: str  # the largest difference that the interval leaves
    reason: str
    durability: bool  # whether the value risks committed data


def side_sentence(side: Side) -> str:
    """Say which study one side is, and when it was measured."""
    when = "" if side.first is None else f", measured from {format_time(side.first)} to {format_time(side.last)} UTC"
    return f"{side.letter} is {side.name} ({side.database}), {plural(side.runs, 'run')}{when}."


def summarise(comparison: Comparison) -> list[str]:
    """Return the answer in a few sentences, the conclusion first."""
    sentences: list[str] = []
    for case in comparison.cases[:3]:
        sentences += _level_summary(case, alone=len(comparison.cases) == 1)
    sentences += [*effect_counts(comparison.effects), *_mismatch_summary(comparison)]
    return [*sentences, _setup_sentence(comparison)]


def _setup_sentence(comparison: Comparison) -> str:
    names = list(dict.fromkeys(difference.what for difference in comparison.setup.differences))
    if names:
        return f"The set-ups of A and B differ in {join_words(list(_group_facts(names)))}."
    return "Nothing that the databases record of the set-ups differs."


def _level_summary(case: CaseComparison, *, alone: bool) -> Iterator[str]:
    measured = case.levels[0]
    where = "" if alone else f" ({case.pair.title})"
    yield f"With the default configuration {_level_verdict(measured)}{where}."


def _level_verdict(measured: Measured) -> str:
    wording = METRIC_WORDS[measured.metric]
    if measured.estimate is None:
        return f"{wording.short} is not compared: {measured.reason}"
    subject = "B is" if measured.metric == "throughput_ops" else f"{wording.short} of B is"
    if measured.low is None or measured.high is None:
        change = describe_change(measured.estimate, wording.more, wording.less)
        return f"{subject} {change}, and how sure that is cannot be told: {measured.reason}"
    interval = describe_interval(measured.estimate, measured.low, measured.high, wording.more, wording.less)
    if measured.low <= 0 <= measured.high:
        return f"{wording.short} shows no clear difference (95 % interval of B to A: {interval})"
    return f"{subject} {describe_change(measured.estimate, wording.more, wording.less)} (95 % interval {interval})"


def default_sentences(case: CaseComparison) -> Iterator[str]:
    """Say how fast the default configuration is in both studies, and what limits the comparison."""
    for measured in case.levels:
        show = format_rate if measured.metric == "throughput_ops" else format_micros
        sides = [
            f"{show(side.mean)} in {letter} ({plural(side.runs, 'run')} in {plural(side.blocks, 'block')})"
            for letter, side in (("A", measured.a), ("B", measured.b))
        ]
        verdict = _level_verdict(measured)
        yield f"{METRIC_WORDS[measured.metric].title}: {' and '.join(sides)}; {verdict}."
    if case.budgets is not None:
        yield budgets_sentence(case.budgets)
    if case.workloads.comparable is None:
        yield (
            f"Whether both were asked for the same cannot be told: {case.workloads.reason}. The ratios above hold only "
            "if workload and amount of data are the same."
        )
    if case.workloads.comparable is False:
        yield "Effects of knobs are ratios within each study, so these are compared all the same."
    if any(measured.estimate is not None for measured in case.levels):
        yield times_sentence(case)
    if case.workloads.comparable is not False:
        yield others_sentence(case)


def budgets_sentence(budgets: Budgets) -> str:
    """Say what an operation waits for in both studies, and how they differ."""
    a, b = describe_budget(budgets.a, budgets.a_latency_us), describe_budget(budgets.b, budgets.b_latency_us)
    change = describe_budget_change(budgets.a, budgets.b)
    return f"Time of an operation in the server: in A {a}; in B {b}. In B an operation {change}."


def others_sentence(case: CaseComparison) -> str:
    """Say whether what holds of the default configuration holds of the others that both studies measured."""
    configurations, default = case.others, case.levels[0]
    if configurations.reason:
        return f"Whether other configurations compare alike cannot be told: {configurations.reason}."
    count = configurations.faster + configurations.slower + configurations.unclear
    summary = (
        f"Of {plural(count, 'other configuration')} that both studies measured, B is clearly faster in "
        f"{configurations.faster or 'none'} and clearly slower in {configurations.slower or 'none'} (99 % each)"
        f"{f'; {configurations.unclear} cannot be told' if configurations.unclear else ''}."
    )
    if default.low is None or default.high is None or default.low <= 0 <= default.high:
        return summary
    if configurations.most_against is None:
        return f"{summary} None contradicts the default one."
    against = configurations.slower if (default.estimate or 0) > 0 else configurations.faster
    name, ratio = configurations.most_against
    return (
        f"{summary} So what the default one says does not hold in {against} ({format_share(against / count)}); most in "
        f"configuration {name}, where B is {describe_change(ratio)}."
    )


def times_sentence(case: CaseComparison) -> str:
    """Say whether the machine may have changed between the two studies."""
    a, b, interleaved = case.times.a, case.times.b, case.times.interleaved
    if a is None or b is None or interleaved is None:
        return "The databases do not both record when the runs were, so a difference may be the machine's."
    spans = [f"{format_time(begin)} to {format_time(end)} UTC" for begin, end in (a, b)]
    if interleaved:
        return (
            f"The runs of A ({spans[0]}) and of B ({spans[1]}) overlap in time. Where two ran at the same moment on "
            "one machine, each may have slowed the other down."
        )
    first, second = ("A", "B") if a[1] < b[0] else ("B", "A")
    is_measured = any(measured.low is not None for measured in case.levels)
    limit = (
        "" if case.times.are_apart or not is_measured else " The interval knows only how blocks of one study differ."
    )
    return (
        f"A ran from {spans[0]}, B from {spans[1]}: all runs of {first} were over before those of {second} began, so a "
        f"difference may be the machine's and not the set-up's.{limit}"
    )


def equal_sentence(comparison: Comparison) -> str:
    """Name in one line what is equal, and what cannot be compared."""
    equal, unknown = (list(_group_facts(names)) for names in (comparison.setup.equal, comparison.setup.unknown))
    sentences = [f"Equal: {join_words(equal)}."] if equal else []
    if any(name.endswith(BY_FIO) for name in comparison.setup.equal):
        sentences.append("Figures that fio measured count as equal when they differ by less than 10 %.")
    sentences += [f"Recorded in one database only: {join_words(unknown)}."] if unknown else []
    differing = [difference.what for difference in comparison.setup.differences]
    same_device = "device" in comparison.setup.equal and not any(name.startswith(OF_DEVICE) for name in differing)
    if same_device and any(name.endswith(BY_FIO) for name in differing):
        sentences.append(
            "The same device measured otherwise: its state, or what else the machine was doing, was not the same."
        )
    return " ".join(sentences)


def _group_facts(names: Sequence[str]) -> Iterator[str]:
    """Yield the names of facts, with numbers instead of the many of one kind."""
    kinds = {
        "of the device's spec": ("field", [name for name in names if name.startswith(OF_DEVICE)]),
        "that fio measured": ("figure", [name for name in names if name.endswith(BY_FIO)]),
        "of the workload's spec": ("field", [name for name in names if name.startswith(OF_WORKLOAD)]),
        "of the default configuration": ("value", [name for name in names if name.startswith(DEFAULT_OF)]),
    }
    grouped = {name for _, of_kind in kinds.values() for name in of_kind}
    yield from (name for name in names if name not in grouped)
    yield from (f"{plural(len(of_kind), noun)} {suffix}" for suffix, (noun, of_kind) in kinds.items() if of_kind)


def effect_counts(effects: Sequence[EffectPair], metric: str = "throughput_ops") -> list[str]:
    """Say how many effects differ, and which one most."""
    chosen = [effect for effect in effects if effect.metric == metric]
    if not chosen:
        return ["No effect of a knob value was measured in both studies."]
    by_verdict = {
        name: [effect for effect in chosen if effect.verdict == name]
        for name in ("differs", "no_difference", "unknown")
    }
    differing, alike, unknown = (len(group) for group in by_verdict.values())
    noun = plural(len(chosen), "effect")
    parts = [f"{differing or 'none'} {'differ' if differing > 1 else 'differs'} clearly"]
    parts += [f"{alike} {'shows' if alike == 1 else 'show'} no clear difference"] if alike else []
    parts += [f"{unknown} cannot be told"] if unknown else []
    sentences = [f"Of {noun} on {METRIC_WORDS[metric].short} that both studies measured, {join_words(parts)}."]
    if by_verdict["differs"]:
        first = max(by_verdict["differs"], key=lambda effect: abs(effect.estimate or 0.0))
        sentences.append(f"The largest difference: {_effect_sentence(first)}.")
    return sentences


def _effect_sentence(effect: EffectPair) -> str:
    wording = METRIC_WORDS[effect.metric]
    value, reference = (format_unit(text, effect.unit) for text in (effect.value, effect.reference))
    changes = [describe_change(side.estimate or 0.0, wording.more, wording.less) for side in (effect.a, effect.b)]
    if effect.metric == "throughput_ops":
        return f"{effect.knob} = {value} is {changes[0]} than {reference} in A and {changes[1]} in B"
    return (
        f"with {effect.knob} = {value} {wording.short} is {changes[0]} than with {reference} in A and {changes[1]} in B"
    )


def effect_words(effect: EffectPair) -> EffectWords:
    """Return the cells of a compared effect."""
    low, high = effect.low, effect.high
    interval = UNKNOWN if low is None or high is None else f"{format_fold(low)} – {format_fold(high)}"
    return EffectWords(
        effect.knob,
        format_unit(effect.value, effect.unit),
        format_unit(effect.reference, effect.unit) if effect.reference else UNKNOWN,
        format_fold(effect.a.estimate),
        format_fold(effect.b.estimate),
        format_fold(effect.estimate),
        interval,
        UNKNOWN
        if effect.q_value is None
        else "< 0.001"
        if effect.q_value < 0.001
        else format_number(effect.q_value, 2),
        UNKNOWN if effect.bound is None else _size(effect.bound),
        effect.reason,
        effect.durability,
    )


def _size(bound: float) -> str:
    return format_share(math.expm1(bound)) if bound < _PERCENT_BELOW else format_fold(bound)


def other_default_sentence(default: OtherDefault) -> str:
    """Say that a default differs, and what effects are against instead."""
    a, b = (format_unit(value, default.unit) for value in (default.a, default.b))
    start = f"The default of {default.knob} is {a} in A and {b} in B"
    if default.reference is None:
        return f"{start}, and no two values of it were measured in both: its effects cannot be compared."
    return f"{start}; its effects are against {format_unit(default.reference, default.unit)} in both."


def list_one_sided(one_sided: Sequence[OneSided]) -> Iterator[str]:
    """Yield a line per study that measured values which the other one did not, knob by knob."""
    for letter in "AB":
        knobs: dict[str, list[str]] = {}
        for entry in one_sided:
            if entry.letter == letter:
                knobs.setdefault(entry.knob, []).append(format_unit(entry.value, entry.unit))
        if knobs:
            values = [f"{knob} = {', '.join(texts)}" for knob, texts in knobs.items()]
            yield f"Measured in {letter} only: {'; '.join(values)}."


def ranking_sentence(rankings: Rankings) -> str:
    """Say how far two rankings agree, or why they are not compared."""
    if not rankings.knobs:
        return f"The rankings are not compared: {rankings.reason}."
    if any(knob.drifts is None for knob in rankings.knobs):
        drift = "how sure the ranks are is not recorded in both, so whether a rank differs beyond chance cannot be told"
    else:
        names = [knob.knob for knob in rankings.knobs if knob.drifts]
        drift = (
            f"the rank of {list_names(names)} differs beyond chance"
            if names
            else "no rank differs beyond chance (all 90 % intervals, widened by half, meet, or neither is above noise)"
        )
    alone = [
        f"only in {letter}: {names}" for letter, names in (("A", rankings.only_a), ("B", rankings.only_b)) if names
    ]
    suffix = f" ({'; '.join(alone)})" if alone else ""
    first, both = plural(rankings.top, "knob"), rankings.overlap
    return f"Of the first {first} {both} {'is' if both == 1 else 'are'} in both{suffix}; {drift}."


def point_sentence(point: LackingPoint) -> str:
    """Say what another study lacks around an important point, and what to sweep in it."""
    kind = "turning point" if point.type == "turning" else point.type
    return (
        f"{point.knob} has a {kind} at {point.value} in {point.letter}, and {point.other} was not swept at "
        f"{join_words(point.lacking)}: to compare both sides of it, sweep {join_words(point.values)} there, too."
    )


def rank_words(knob: RankedBoth) -> tuple[str, str, str, str]:
    """Return knob, its rank in A and in B with intervals, and whether that is a difference, as cells."""
    sides = [
        f"{rank}" if interval is None else f"{rank} ({interval[0]}–{interval[1]})"
        for rank, interval in ((knob.rank_a, knob.interval_a), (knob.rank_b, knob.interval_b))
    ]
    verdict = "cannot be told" if knob.drifts is None else "differs" if knob.drifts else "no clear difference"
    return knob.knob, sides[0], sides[1], verdict


def mismatch_words(mismatch: MismatchPair) -> str:
    """Say in which studies a mismatch is, and what the other one says."""
    if mismatch.a == mismatch.b == "mismatch":
        return "in both"
    letter, other_letter, word = ("A", "B", mismatch.b) if mismatch.a == "mismatch" else ("B", "A", mismatch.a)
    return f"only in {letter}: {_OTHER[word][0].format(other_letter)}"


def no_mismatch_sentence(comparison: Comparison) -> str:
    """Say why a case has no mismatch to compare."""
    if comparison.unjudged:
        return f"Mismatches cannot be compared: no rule was asked in {join_words(comparison.unjudged)}."
    return "Neither study found a mismatch here."


def _mismatch_summary(comparison: Comparison) -> Iterator[str]:
    if comparison.unjudged:
        yield no_mismatch_sentence(comparison)
        return
    mismatches = [mismatch for case in comparison.cases for mismatch in case.mismatches]
    if not mismatches:
        yield "Neither study found a mismatch in these cases."
        return
    in_both = sum(mismatch.a == mismatch.b == "mismatch" for mismatch in mismatches)
    parts = [f"{in_both} in both"] if in_both else []
    for letter, word, count in count_kinds(mismatches):
        other_letter = "B" if letter == "A" else "A"
        parts.append(f"{count} in {letter} only ({_OTHER[word][count > 1].format(other_letter)})")
    yield f"Findings of mismatches: {'; '.join(parts)}."


def unmatched_sentences(comparison: Comparison) -> Iterator[str]:
    """Name the cases that were compared with nothing."""
    for letter, cases in (("A", comparison.unmatched_a), ("B", comparison.unmatched_b)):
        if cases:
            names = ", ".join(map(str, cases))
            yield f"Not compared, since no case of the other study belongs to it, cases of {letter}: {names}."
    if comparison.unmatched_a and comparison.unmatched_b:
        yield "`--match A_CASE=B_CASE` compares two of them."
