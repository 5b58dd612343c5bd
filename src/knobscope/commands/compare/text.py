"""A comparison for the terminal."""

import textwrap
from collections.abc import Iterator, Sequence

from knobscope.commands.compare.comparison import CaseComparison, Comparison
from knobscope.commands.compare.effects import EffectPair
from knobscope.commands.compare.words import (
    METRIC_WORDS,
    default_sentences,
    effect_counts,
    effect_words,
    equal_sentence,
    list_one_sided,
    mismatch_words,
    no_mismatch_sentence,
    other_default_sentence,
    point_sentence,
    rank_words,
    ranking_sentence,
    side_sentence,
    summarise,
    unmatched_sentences,
)
from knobscope.text.formats import UNKNOWN, format_share, loosen_units
from knobscope.text.text_table import align

_WIDTH = 110


def format_comparison(comparison: Comparison) -> str:
    """Return the comparison as text, in blocks."""
    conclusion, *others = summarise(comparison)
    blocks = [
        _fill(conclusion),
        _fill(side_sentence(comparison.a)),
        _fill(side_sentence(comparison.b)),
        *map(_fill, comparison.notes),
        "\n".join(_fill(sentence, "- ") for sentence in others),
        *_setup(comparison),
        *(block for case in comparison.cases for block in _case(comparison, case)),
        *map(_fill, unmatched_sentences(comparison)),
    ]
    return loosen_units("\n\n".join(blocks)) + "\n"


def _fill(text: str, bullet: str = "") -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _title(text: str) -> str:
    return f"{text}\n{'-' * len(text)}"


def _setup(comparison: Comparison) -> Iterator[str]:
    yield _title("What differs between the set-ups")
    if comparison.setup.differences:
        several = len(comparison.cases) > 1  # else all of them are about the same DBMS, device and workload
        table = [["", *["of"] * several, "A", "B"]]
        for difference in comparison.setup.differences:
            table.append([difference.what, *[difference.subject or UNKNOWN] * several, difference.a, difference.b])
        yield align(table)
    else:
        yield "Nothing that the databases record."
    if sentence := equal_sentence(comparison):
        yield _fill(sentence)


def _case(comparison: Comparison, case: CaseComparison) -> Iterator[str]:
    if len(comparison.cases) > 1:
        yield f"{'=' * _WIDTH}\n{case.pair.title}"
    yield _title("The default configuration")
    yield "\n".join(_fill(sentence, "- ") for sentence in default_sentences(case))
    yield _title("Effects of knob values, against the same reference value in both studies")
    for metric in METRIC_WORDS:
        yield from _effects(comparison, case, metric)
    if any(effect.durability for effect in case.effects):
        yield "⚠ marks values that risk committed data."
    lines = [*map(other_default_sentence, case.other_defaults), *list_one_sided(case.one_sided)]
    if lines:
        yield "\n".join(map(_fill, lines))
    yield _title("Rankings of the knobs")
    yield _fill(ranking_sentence(case.rankings))
    if case.rankings.knobs:
        yield align([["knob", "rank in A", "rank in B", ""], *map(rank_words, case.rankings.knobs)])
    if case.points:
        yield "\n".join(_fill(point_sentence(point), "- ") for point in case.points)
    yield _title("Mismatches")
    yield from _mismatches(comparison, case)


def _effects(comparison: Comparison, case: CaseComparison, metric: str) -> Iterator[str]:
    effects = [effect for effect in case.effects if effect.metric == metric]
    if not effects and metric != "throughput_ops":
        return
    yield _fill(" ".join(effect_counts(case.effects, metric)))
    groups = {
        name: [effect for effect in effects if effect.verdict == name]
        for name in ("differs", "no_difference", "unknown")
    }
    if groups["differs"]:
        fdr = format_share(comparison.limits.fdr)
        yield f"  differ clearly (false discovery rate {fdr}):\n{_table(groups['differs'])}"
    if groups["no_difference"]:
        heading = "  no clear difference; the last column is the largest one that the interval leaves, either way:"
        yield f"{heading}\n{_table(groups['no_difference'], bound=True)}"
    if groups["unknown"]:
        rows = [f"  - {cells.knob} = {cells.value}: {cells.reason}" for cells in map(effect_words, groups["unknown"])]
        yield "  cannot be told:\n" + "\n".join(rows)


def _table(effects: Sequence[EffectPair], *, bound: bool = False) -> str:
    heads = ["", "against", "in A", "in B", "B to A", "95 % interval", "at most" if bound else "q"]
    rows = []
    for cells in map(effect_words, effects):
        setting = f"{cells.knob} = {cells.value}{' ⚠' * cells.durability}"
        last = cells.bound if bound else cells.q_value
        rows.append([setting, cells.reference, cells.a, cells.b, cells.ratio, cells.interval, last])
    return textwrap.indent(align([heads, *rows]), "  ")


def _mismatches(comparison: Comparison, case: CaseComparison) -> Iterator[str]:
    if not case.mismatches:
        yield no_mismatch_sentence(comparison)
    for mismatch in case.mismatches:
        subject = " ".join(
            [mismatch.rule, *([f"({mismatch.knob} = {mismatch.value})"] if mismatch.knob and mismatch.value else [])]
        )
        lines = [f"{subject}: {mismatch_words(mismatch)}"]
        lines += [
            _fill(f"{letter}: {text}", "    ")
            for letter, text in (("A", mismatch.sentence_a), ("B", mismatch.sentence_b))
        ]
        yield "\n".join(lines)
