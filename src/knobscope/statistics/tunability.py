"""What setting one knob gains: tunability, which is not importance.

A knob explains much of what differs when one of its values is terrible, and still gains nothing by being set where its
default is the best of them. Tunability (Probst, Boulesteix and Bischl, Journal of Machine Learning Research 20, 2019,
section 3) is what the best value of a knob gains over its default in a model, all other knobs at their defaults.

The best of several predictions is partly luck. So the configurations are split into halves: a model of one half chooses
the value, and a model of the other half says what it gains. Means of random halves spread as much as the mean of all.
The interval is one of what the best value gains, whichever that is: it begins below the gain of what halves choose,
which is not better, and ends where that of no value does later. Halves also show how far two rankings agree, how far
predictions are off by more than noise and the luck of a half: the model is wrong by so much (`_Errors`), and what every
value does alone, by the model.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from knobscope.statistics.arrays import Floats, Ints, average_groups
from knobscope.statistics.design import Settings
from knobscope.statistics.drift import TOP, overlap_of_top
from knobscope.statistics.models import Model
from knobscope.statistics.models.anova import InsufficientSamplesError
from knobscope.statistics.stopping import Runs

#: Random splits into halves. Each gives two gains of a knob.
SPLITS = 10
#: With fewer configurations a half has too few to mean anything.
MIN_ROWS = 20
#: Student's t of an interval of 95 %: as many degrees of freedom as there are halves, less one.
_QUANTILE = 2.093
#: Interactions that a model lacks are looked for with so many knobs, among groups of their levels.
_MOST_PARTNERS, _MOST_GROUPS = 6, 4


@dataclass(frozen=True)
class TunableKnob:
    """What the best value of a knob gains over the default, as a difference of the response, with a 95 % interval."""

    knob: str
    value: Any  # the one that halves choose most often; the default where none is better
    gain: float
    gain_low: float
    gain_high: float


@dataclass(frozen=True)
class PredictedEffect:
    """What a value of a knob does by the model, all other knobs at their defaults, with a 95 % interval."""

    knob: str
    value: Any
    effect: float
    effect_low: float
    effect_high: float


@dataclass(frozen=True)
class Tunability:
    """Tunable knobs, the one that gains most first, and how far two halves of the configurations agree.

    Of the first `leaders` knobs, two halves have so many in common, on average: by importance, and by gain.
    """

    knobs: list[TunableKnob]
    leaders: int
    common_by_importance: float
    common_by_gain: float
    effects: list[PredictedEffect]


@dataclass(frozen=True)
class _Half:
    """What a model of one half says: the importance of each knob, and what each value of a knob gains."""

    importance: Mapping[str, float]
    gains: Mapping[str, Floats]
    rows: Ints
    predicted: Floats  # of all configurations


@dataclass(frozen=True)
class _Errors:
    """What halves do not show: `of_run`, the variance of a run, and `of_model`, that of a gain if the model is wrong.

    The latter is due to interactions of a knob with the `_MOST_PARTNERS` most important ones that the model lacks: its
    gain is the average over their levels instead of that at their defaults.
    """

    of_run: float
    of_model: Mapping[str, float]

    @classmethod
    def of(cls, runs: Runs, pairs: Sequence[tuple[_Half, _Half]], knobs: Iterable[str]) -> "_Errors":
        """Return what the residuals of configurations show that halves have not seen."""
        settings, halves = runs.settings, [half for pair in pairs for half in pair]
        is_unseen = np.array([~np.isin(np.arange(len(runs.response)), half.rows) for half in halves])
        predicted = np.array([half.predicted for half in halves])
        residual = runs.response - np.average(predicted, axis=0, weights=is_unseen)
        importance = {factor: sum(half.importance[factor] for half in halves) for factor in settings.factors}
        partners = sorted(importance, key=lambda factor: -importance[factor])[:_MOST_PARTNERS]
        coarse = {factor: _coarsen(settings.codes[:, settings.factors.index(factor)]) for factor in settings.factors}
        missing = {
            knob: sum(
                _missing_interaction(residual, coarse[knob], coarse[other]) for other in partners if other != knob
            )
            for knob in knobs
        }
        return cls(float(np.mean(residual**2)), {knob: max(variance, 0.0) for knob, variance in missing.items()})


def _coarsen(codes: Ints) -> Ints:
    """Return up to four groups of neighbouring levels."""
    ranks = np.unique(codes, return_inverse=True)[1]
    return np.asarray(ranks * _MOST_GROUPS // max(int(ranks.max()) + 1, _MOST_GROUPS), np.int64)


def _missing_interaction(residual: Floats, codes: Ints, other: Ints) -> float:
    """Return the variance of a gain that an interaction leaves in residuals; below 0 by chance."""
    cell = np.unique(codes * (int(other.max()) + 1) + other, return_inverse=True)[1]
    own = residual - average_groups(residual, codes) - average_groups(residual, other) + residual.mean()
    of_cells = np.bincount(cell, own) / np.bincount(cell)
    explained = float((np.bincount(cell) * of_cells**2).sum())
    levels, cells = len(np.unique(codes)), len(of_cells)
    degrees = cells - levels - len(np.unique(other)) + 1
    if degrees <= 0 or len(residual) <= cells or levels < 2:
        return 0.0
    noise = (float((own**2).sum()) - explained) / (len(residual) - cells)
    return 2 * (explained - degrees * noise) / len(residual) * levels / (levels - 1)


def measure_tunability(
    runs: Runs,
    model: Model,
    default: Mapping[str, Any],
    values: Mapping[str, Sequence[Any]],
    tunable: Mapping[str, Sequence[Any]],
    seed: int,
) -> Tunability | None:
    """Return what setting each knob alone would gain; None where the runs are too few for models of halves.

    `model` has been fitted to all runs; `default` has a level of every factor, `values` are those whose effect
    is predicted, and `tunable` those of them that somebody might choose. What the settings do not have cannot be
    predicted: values are left out, and without the default there is nothing to compare with.
    """
    domains = dict(zip(runs.settings.factors, runs.settings.levels, strict=True))
    values = {
        knob: usable
        for knob, wanted in values.items()
        if (usable := [level for level in wanted if level in domains[knob] and level != default.get(knob)])
    }
    if len(runs.response) < MIN_ROWS or not values or any(default.get(name) not in domains[name] for name in domains):
        return None
    queries = _changed_alone(runs.settings, default, values)
    pairs: list[tuple[_Half, _Half]] = []
    for number in range(SPLITS):
        order = np.random.default_rng([seed, number]).permutation(len(runs.response))
        first, second = np.array_split(order, 2)
        try:
            pairs.append(
                (_judge_half(runs, model, first, queries, values), _judge_half(runs, model, second, queries, values))
            )
        except InsufficientSamplesError:
            continue
    if len(pairs) < SPLITS / 2:
        return None
    choices = {
        knob: chosen for knob, wanted in tunable.items() if (chosen := [v for v in values.get(knob, ()) if v in wanted])
    }
    errors = _Errors.of(runs, pairs, values)
    levels = {knob: [default[knob], *usable] for knob, usable in values.items()}
    variances = {knob: _vary(runs.settings, knob, levels[knob], pairs, errors) for knob in values}
    knobs = [_summarise(knob, levels[knob], chosen, pairs, variances[knob]) for knob, chosen in choices.items()]
    by_importance = [[half.importance for half in pair] for pair in pairs]
    allowed = {knob: [0, *(values[knob].index(level) + 1 for level in chosen)] for knob, chosen in choices.items()}
    by_gain = [
        [{knob: float(half.gains[knob][levels].max()) for knob, levels in allowed.items()} for half in pair]
        for pair in pairs
    ]
    return Tunability(
        sorted(knobs, key=lambda knob: -knob.gain),
        min(TOP, len(runs.settings.factors)),
        _count_common(by_importance),
        _count_common(by_gain),
        [
            _predict(knob, level, number, pairs, float(variances[knob][number]))
            for knob, usable in values.items()
            for number, level in enumerate(usable, 1)
        ],
    )


def _changed_alone(settings: Settings, default: Mapping[str, Any], values: Mapping[str, Sequence[Any]]) -> Settings:
    """Return the default configuration, then every value of every knob in it, a row each."""
    base = np.array([settings.levels_of(factor).index(default[factor]) for factor in settings.factors], np.int64)
    rows = [base]
    for knob, levels in values.items():
        column = settings.factors.index(knob)
        for level in levels:
            changed = base.copy()
            changed[column] = settings.levels_of(knob).index(level)
            rows.append(changed)
    return settings.with_codes(np.array(rows))


def _judge_half(runs: Runs, model: Model, half: Ints, queries: Settings, values: Mapping[str, Sequence[Any]]) -> _Half:
    """Fit the configurations of one half; the gains of a knob begin with the default's, which is 0."""
    settings = runs.settings.take(half)
    fitted = model.refit(settings, runs.response[half])
    predicted = fitted.predict(queries)
    ends = np.cumsum([len(levels) for levels in values.values()])[:-1]
    gains = np.split(predicted[1:] - predicted[0], ends)
    return _Half(
        fitted.importance(settings),
        {knob: np.concatenate([[0.0], knob_gains]) for knob, knob_gains in zip(values, gains, strict=True)},
        half,
        fitted.predict(runs.settings),
    )


def _vary(
    settings: Settings, knob: str, levels: Sequence[Any], pairs: Sequence[tuple[_Half, _Half]], errors: _Errors
) -> Floats:
    """Return the variance of what each level gains over the first one, the default, which has none.

    A term that a model dropped has no spread over halves; a value's gain is not better known than the difference of two
    means of as many configurations.
    """
    of_values = np.array([half.gains[knob] for pair in pairs for half in pair])
    column = settings.codes[:, settings.factors.index(knob)]
    counts = np.array([(column == settings.levels_of(knob).index(level)).sum() for level in levels])
    least = errors.of_run * (1 / np.maximum(counts, 1) + 1 / max(counts[0], 1))
    variances = np.maximum(of_values.var(axis=0, ddof=1), least) + errors.of_model[knob]
    variances[0] = 0.0
    return np.asarray(variances)


def _summarise(
    knob: str, levels: Sequence[Any], choices: Sequence[Any], pairs: Sequence[tuple[_Half, _Half]], variances: Floats
) -> TunableKnob:
    """Return the gain of what one half chooses, as the other half sees it, over all halves.

    `levels` begin with the default, which can always be chosen, as `choices` can.
    """
    numbers = [0, *(number for number, level in enumerate(levels[1:], 1) if level in choices)]
    chosen, gains = [], []
    for first, second in pairs:
        for chooses, judges in ((first, second), (second, first)):
            best = numbers[int(chooses.gains[knob][numbers].argmax())]
            chosen.append(best)
            gains.append(judges.gains[knob][best])
    of_values = np.array([half.gains[knob] for pair in pairs for half in pair])
    ((usual, _),) = Counter(chosen).most_common(1)
    gain, spread = float(np.mean(gains)), max(float(np.var(gains, ddof=1)), float(variances[usual]))
    highs = (of_values.mean(axis=0) + _QUANTILE * np.sqrt(variances))[numbers]
    return TunableKnob(knob, levels[usual], gain, gain - _QUANTILE * spread**0.5, max(gain, float(highs.max())))


def _predict(
    knob: str, level: Any, number: int, pairs: Sequence[tuple[_Half, _Half]], variance: float
) -> PredictedEffect:
    """Return the effect of a level over all halves; nothing is chosen, so each half counts for itself."""
    effect = float(np.mean([half.gains[knob][number] for pair in pairs for half in pair]))
    reach = _QUANTILE * variance**0.5
    return PredictedEffect(knob, level, effect, effect - reach, effect + reach)


def _count_common(scores: Sequence[Sequence[Mapping[str, float]]]) -> float:
    """Return how many of the first knobs two halves have in common, on average over the splits."""
    # A knob that the model dropped has no rank: all of them would be in the same order in both halves.
    leaders = [
        [sorted((knob for knob in half if half[knob] > 0), key=lambda knob: -half[knob])[:TOP] for half in pair]
        for pair in scores
    ]
    return float(np.mean([overlap_of_top(first, second) for first, second in leaders]))
