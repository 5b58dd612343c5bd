"""A comparison as one HTML page that loads nothing from elsewhere, in the look of the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from knobscope.commands.compare import words
from knobscope.commands.compare.comparison import CaseComparison, Comparison
from knobscope.commands.compare.effects import EffectPair, Estimate
from knobscope.figures import Effect, Figure, MetricPanel, PairRow, draw_pairs, slug
from knobscope.stages.report.page import make_environment
from knobscope.text.formats import format_unit

#: Values that a figure shows at most: a screen or two.
_MOST_ROWS = 40
_PANELS = {
    "throughput_ops": MetricPanel("Effect on throughput", "slower", "faster", 1),
    "latency_p95_us": MetricPanel("Effect on p95", "longer", "shorter", -1),
}


@dataclass(frozen=True)
class _Effects:
    """The effects of a case on one metric, as the page shows them."""

    title: str
    sentences: list[str]
    figure: Figure | None
    differing: list[words.EffectWords]
    alike: list[words.EffectWords]
    unknown: list[words.EffectWords]


@dataclass(frozen=True)
class _Case:
    """A pair of cases, as the page shows it."""

    anchor: str
    title: str
    default: list[str]
    effects: list[_Effects]
    remarks: list[str]
    ranking: str
    ranks: list[tuple[str, str, str, str]]
    mismatches: list[dict[str, Any]]


def render_page(comparison: Comparison) -> str:
    """Return the page."""
    template = make_environment("knobscope.commands.compare").get_template("page.html.j2")
    return template.render(
        title=_title(comparison),
        sides=[words.side_sentence(side) for side in (comparison.a, comparison.b)],
        answer=words.summarise(comparison),
        notes=comparison.notes,
        setup=comparison.setup,
        equal=words.equal_sentence(comparison),
        cases=[_case(case, f"case-{number}") for number, case in enumerate(comparison.cases, 1)],
        no_mismatch=words.no_mismatch_sentence(comparison),
        unmatched=list(words.unmatched_sentences(comparison)),
    )


def _title(comparison: Comparison) -> str:
    """Name both studies; by their databases where both are called the same."""
    a, b = comparison.a, comparison.b
    return f"{a.name} and {b.name}" if a.name != b.name else f"{a.name}: {a.database} and {b.database}"


def _case(case: CaseComparison, anchor: str) -> _Case:
    return _Case(
        anchor,
        case.pair.title,
        list(words.default_sentences(case)),
        [_effects(case, metric) for metric in _PANELS if metric == "throughput_ops" or _of_metric(case, metric)],
        [*map(words.other_default_sentence, case.other_defaults), *words.list_one_sided(case.one_sided)],
        " ".join([words.ranking_sentence(case.rankings), *map(words.point_sentence, case.points)]),
        [words.rank_words(knob) for knob in case.rankings.knobs],
        [
            {"about": mismatch, "verdict": words.mismatch_words(mismatch), "letters": _letters(mismatch.a, mismatch.b)}
            for mismatch in case.mismatches
        ],
    )


def _letters(a: str, b: str) -> str:
    return " and ".join(letter for letter, verdict in (("A", a), ("B", b)) if verdict == "mismatch")


def _of_metric(case: CaseComparison, metric: str) -> list[EffectPair]:
    return [effect for effect in case.effects if effect.metric == metric]


def _effects(case: CaseComparison, metric: str) -> _Effects:
    effects = _of_metric(case, metric)
    by_verdict = {name: [words.effect_words(effect) for effect in effects if effect.verdict == name]
                  for name in ("differs", "no_difference", "unknown")}  # fmt: skip
    drawn = [effect for effect in effects if effect.a.estimate is not None or effect.b.estimate is not None]
    return _Effects(
        words.METRIC_WORDS[metric].title,
        words.effect_counts(case.effects, metric),
        effects_figure(case, metric, drawn) if drawn else None,
        *by_verdict.values(),
    )


def effects_figure(case: CaseComparison, metric: str, effects: Sequence[EffectPair]) -> Figure:
    """Return the figure of both studies' effects; the knobs whose effects differ most come first."""
    rows = _pair_rows(effects)
    shown = rows[:_MOST_ROWS]
    words_of = words.effect_counts(effects, metric)
    return Figure(
        name=slug("compared", metric, *case.pair.a),
        title=f"{words.METRIC_WORDS[metric].title}: what each value does in A and in B",
        description=f"Effects of knob values with 95 % intervals, on {case.pair.title}. {' '.join(words_of)}",
        draw=lambda width: draw_pairs(width, shown, _PANELS[metric]),
        data=effect_rows(effects),
        caption=f"{len(shown)} of {len(rows)} values: those of the knobs that differ most."
        if len(rows) > len(shown)
        else "",
        wide=True,
    )


def _pair_rows(effects: Sequence[EffectPair]) -> list[PairRow]:
    """Return the rows by knob, in the order in which the knobs come first among the sorted effects."""
    order = list(dict.fromkeys(effect.knob for effect in effects))
    by_knob = sorted(effects, key=lambda effect: order.index(effect.knob))
    return [
        PairRow(
            group=f"{knob} ⚠" if any(member.durability for member in knob_effects) else knob,
            note=f"against {format_unit(effect.reference, effect.unit)}" if effect.reference else "",
            label=format_unit(effect.value, effect.unit),
            a=_drawn(effect.a),
            b=_drawn(effect.b),
            ratio=_ratio(effect),
        )
        for knob, group in groupby(by_knob, key=lambda effect: effect.knob)
        for knob_effects in [list(group)]
        for effect in knob_effects
    ]


def _drawn(side: Estimate) -> Effect | None:
    return None if side.estimate is None else Effect(side.estimate, side.interval, clear=False)


def _ratio(effect: EffectPair) -> Effect | None:
    if effect.estimate is None or effect.low is None or effect.high is None:
        return None
    return Effect(effect.estimate, (effect.low, effect.high), effect.verdict == "differs")


def effect_rows(effects: Sequence[EffectPair]) -> list[dict[str, Any]]:
    """Return the compared effects as rows of a table; all estimates are natural-log ratios."""
    rows = []
    for effect in effects:
        row: dict[str, Any] = {"case_a": str(effect.pair.a), "case_b": str(effect.pair.b)}
        row |= {name: getattr(effect, name) for name in ("metric", "knob", "value", "unit", "reference")}
        for letter, side in (("a", effect.a), ("b", effect.b)):
            low, high = side.interval or (None, None)
            row |= {f"{letter}_estimate": side.estimate, f"{letter}_low": low, f"{letter}_high": high}
        difference = {"estimate": effect.estimate, "low": effect.low, "high": effect.high}
        rows.append(
            {**row, **difference, "q_value": effect.q_value, "verdict": effect.verdict, "reason": effect.reason}
        )
    return rows
