"""What setting one knob gains: tunability, which is not importance.

A knob explains much of what differs when one of its values is terrible, and still gains nothing by being set where its
default is the best of them. Tunability (Probst, Boulesteix and Bischl, Journal of Machine Learning Research 20, 2019,
section 3) is what the best value of a knob gains over its default in a model, all other knobs at their defaults.

The best of several predictions is partly luck. So the configurations are split into halves: a model of one half chooses
the value, and a model of the other half says what it gains. Means of random halves spread as much as the mean of all,
so the quantiles over many halves are an interval. Halves also show how far two rankings agree, and what every value
does alone, by the model.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.design import Settings
from knobscope.statistics.drift import TOP, overlap_of_top
from knobscope.statistics.models import Model
from knobscope.statistics.models.anova import InsufficientSamplesError
from knobscope.statistics.stopping import Runs

__all__ = ["PredictedEffect", "Tunability", "TunableKnob", "measure_tunability"]

#: Random splits into halves. Each gives two gains of a knob.
SPLITS = 10
#: With fewer configurations a half has too few to mean anything.
MIN_ROWS = 20


@dataclass(frozen=True)
class TunableKnob:
    """What the best value of a knob gains over the default, as a difference of the response, with a 90 % interval."""

    knob: str
    value: Any  # the one that halves choose most often; the default where none is better
    gain: float
    gain_low: float
    gain_high: float


@dataclass(frozen=True)
class PredictedEffect:
    """What a value of a knob does by the model, all other knobs at their defaults, with a 90 % interval."""

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
    knobs = [_summarise(knob, default[knob], values[knob], chosen, pairs) for knob, chosen in choices.items()]
    by_importance = [[half.importance for half in pair] for pair in pairs]
    by_gain = [[{knob: float(half.gains[knob].max()) for knob in choices} for half in pair] for pair in pairs]
    return Tunability(
        sorted(knobs, key=lambda knob: -knob.gain),
        min(TOP, len(runs.settings.factors)),
        _count_common(by_importance),
        _count_common(by_gain),
        [
            _predict(knob, level, number, pairs)
            for knob, levels in values.items()
            for number, level in enumerate(levels, 1)
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
    )


def _summarise(
    knob: str, default: Any, levels: Sequence[Any], chosen: Sequence[Any], pairs: Sequence[tuple[_Half, _Half]]
) -> TunableKnob:
    """Return the gain of what one half chooses, as the other half sees it, over all halves."""
    numbers = [0, *(number for number, level in enumerate(levels, 1) if level in chosen)]
    best, gains = [], []
    for first, second in pairs:
        for chooses, judges in ((first, second), (second, first)):
            best.append(numbers[int(chooses.gains[knob][numbers].argmax())])
            gains.append(judges.gains[knob][best[-1]])
    low, high = np.quantile(gains, [0.05, 0.95])
    ((usual, _),) = Counter(best).most_common(1)
    return TunableKnob(knob, [default, *levels][usual], float(np.mean(gains)), float(low), float(high))


def _predict(knob: str, level: Any, number: int, pairs: Sequence[tuple[_Half, _Half]]) -> PredictedEffect:
    """Return the effect of a level over all halves; nothing is chosen, so each half counts for itself."""
    gains = [half.gains[knob][number] for pair in pairs for half in pair]
    low, high = np.quantile(gains, [0.05, 0.95])
    return PredictedEffect(knob, level, float(np.mean(gains)), float(low), float(high))


def _count_common(scores: Sequence[Sequence[Mapping[str, float]]]) -> float:
    """Return how many of the first knobs two halves have in common, on average over the splits."""
    leaders = [[sorted(half, key=lambda knob: -half[knob])[:TOP] for half in pair] for pair in scores]
    return float(np.mean([overlap_of_top(first, second) for first, second in leaders]))
