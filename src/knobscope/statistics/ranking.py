"""Which knobs matter, how sure that is, and whether the ranking may be trusted at all.

Every subsample of the configurations gives a fit, and its permutation importance on the configurations that were left
out (Breiman 2001): the loss of R2 when one knob's column is shuffled, on average over all ways to shuffle it. Split
counts or impurity favour knobs with many values; held-out permutation does not, but it is coarse where few rows are
held out. The order goes by both: the score of a knob is the mean of its share of all held-out importance and of its
share of the model's own importance above that of noise columns. Those are shuffled copies of real columns and show what
chance reaches (the shadow attributes of Boruta, Kursa & Rudnicki 2010): a knob is above noise when it beats the best of
them.

A rank is one more than the number of knobs that are better, so its interval follows from which knobs can be told apart
(Mohamad, Goeman and van Zwet, Statistical Science 37, 2022): between one more than those that are certainly better and
those that are not certainly worse. The standard error of a difference of two scores is that of the delete-d jackknife
(Shao and Wu, Annals of Statistics 17, 1989): subsamples share most of their rows, so they differ less than studies do.

Knobs that the rows cannot tell apart can be ranked as one group: their columns are shuffled together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.design import Settings
from knobscope.statistics.holding_out import MIN_TEST_ROWS, r_squared
from knobscope.statistics.models import Model
from knobscope.statistics.models.anova import InsufficientSamplesError
from knobscope.statistics.models.predicting import PredictingModel
from knobscope.statistics.stopping import Runs

MOST_NOISE_COLUMNS = 5
#: Every noise column costs an analysis of variance some columns: so many configurations for each.
ROWS_PER_NOISE_COLUMN = 12
SUBSAMPLE = 0.632
#: More configurations than these cost minutes and change no rank: so many are fitted, and predicted, per subsample.
MOST_FITTED, MOST_HELD = 3000, 1000
#: So many standard errors of their difference tell two knobs apart. A rank interval is wrong when one of many
#: comparisons is, in one direction; with this many, intervals of knobs with different importance hold 90 % (see
#: `benchmarks/truth/rank_intervals.py`, whose systems are others than those this was set on).
APART = 1.0
#: Share of the subsamples in which a knob has to beat the best noise column.
ABOVE_NOISE = 0.9
#: Below this held-out R2 a model explains too little for its ranking to mean anything.
MIN_R2 = 0.5
#: With fewer configurations the R2 of some held-out ones is chance.
MIN_ROWS = 20
#: How often a column of many levels is shuffled at most, and of how many rows all shuffles are at most, if of several.
MOST_SHUFFLES, ROWS_OF_SHUFFLES = 10, 400
#: Rows about which a model is asked in one call.
ROWS_OF_A_CALL = 10_000


@dataclass(frozen=True)
class KnobRank:
    """One knob: rank with 90 % interval, the model's own importance, held-out permutation importance (R2 lost)."""

    knob: str
    rank: int
    importance: float
    permutation: float
    rank_low: int
    rank_high: int
    above_noise: bool
    score: float  # what the order goes by; the scores of all knobs add up to 1


@dataclass(frozen=True)
class Ranking:
    """All knobs, most important first, and whether to believe it."""

    knobs: list[KnobRank]
    holdout_r2: float | None
    trustworthy: bool
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the fields, knobs as a list."""
        return asdict(self)


@dataclass(frozen=True)
class _Sample:
    permutation: Floats  # per group of knobs and noise column
    importance: Floats
    r2: float
    fitted: int


def rank_knobs(
    runs: Runs,
    model: Model,
    seed: int,
    samples: int = 20,
    tell: Callable[[int, int], None] | None = None,
    groups: Sequence[Sequence[int]] = (),
) -> Ranking:
    """Rank the factors of the runs by held-out permutation importance over many subsamples.

    A subsample holds 63 % of the configurations, each once: what a bootstrap sample holds, without the repeated rows
    that make every F test look significant. `model` has been fitted to all runs. `tell` is called after every subsample
    with its number and how many there are. Each of the `groups` of columns is ranked as one, under the name of its
    first; empty: every column is ranked.
    """
    groups = groups or [[column] for column in range(len(runs.settings.factors))]
    drawn = []
    for number in range(samples):
        drawn.append(_judge_sample(runs, model, groups, np.random.default_rng([seed, number])))
        if tell is not None:
            tell(number + 1, samples)
    judged = [sample for sample in drawn if sample is not None]
    names = [runs.settings.factors[columns[0]] for columns in groups]
    if len(judged) < samples / 2:
        return _rank_unjudged(runs, model, groups, names)
    return _summarise(names, judged, len(runs.response))


def _rank_unjudged(runs: Runs, model: Model, groups: Sequence[Sequence[int]], names: Sequence[str]) -> Ranking:
    """Order the knobs by the model's own importance, where the runs are too few to hold any out."""
    own = dict(zip(names, _add_up(model.importance(runs.settings), runs.settings, groups).tolist(), strict=True))
    order, total = sorted(own, key=lambda knob: -own[knob]), sum(own.values()) or 1.0
    knobs = [
        KnobRank(knob, rank, own[knob], 0.0, 1, len(order), False, own[knob] / total)
        for rank, knob in enumerate(order, start=1)
    ]
    reason = f"{len(runs.response)} configurations are too few to hold any out; the order is the model's"
    return Ranking(knobs, None, False, reason)


def _add_up(importance: Mapping[str, float], settings: Settings, groups: Sequence[Sequence[int]]) -> Floats:
    """Return the importance of each group of columns."""
    own = np.array([importance[factor] for factor in settings.factors])
    return np.array([own[list(columns)].sum() for columns in groups])


def _judge_sample(
    runs: Runs, model: Model, groups: Sequence[Sequence[int]], rng: np.random.Generator
) -> _Sample | None:
    """Fit one subsample and judge it on configurations that it left out; None where that is impossible."""
    order = rng.permutation(len(runs.response))
    size = min(round(SUBSAMPLE * len(order)), MOST_FITTED)
    drawn, test_rows = order[:size], order[size : size + MOST_HELD]
    noise = min(MOST_NOISE_COLUMNS, max(1, len(order) // ROWS_PER_NOISE_COLUMN))
    settings = runs.settings.with_noise_columns(noise, rng)
    groups = [*groups, *([len(settings.knobs) + number] for number in range(noise))]
    held_out, actual = settings.take(test_rows), runs.response[test_rows]
    is_seen = not isinstance(model, PredictingModel)  # its terms were chosen with the held-out rows in view
    if len(test_rows) < MIN_TEST_ROWS or np.ptp(actual) == 0:
        return None
    try:
        fitted = model.refit(settings.take(drawn), runs.response[drawn])
        anew = model.fresh().fit(runs.settings.take(drawn), runs.response[drawn]) if is_seen else None
    except InsufficientSamplesError:
        return None
    plain = fitted.predict(held_out)
    importance = _add_up(fitted.importance(settings.take(drawn)), settings, groups)
    permutation = _permutation(fitted, held_out, actual, plain, groups, rng)
    unseen = plain if anew is None else anew.predict(runs.settings.take(test_rows))
    return _Sample(permutation, importance, r_squared(actual, unseen), size)


def _permutation(
    model: Model,
    held_out: Settings,
    actual: Floats,
    plain: Floats,
    groups: Sequence[Sequence[int]],
    rng: np.random.Generator,
) -> Floats:
    """Loss of R2 per group of columns when it is shuffled; `plain` is predicted where none is."""
    ways = [_shuffle(held_out.codes[:, list(columns)], rng) for columns in groups]
    predicted = _predict_shuffled(model, held_out, plain, groups, [codes for codes, _ in ways])
    loss = [
        weights @ ((prediction - actual) ** 2 - (plain - actual) ** 2).sum(axis=1)
        for (_, weights), prediction in zip(ways, predicted, strict=True)
    ]
    return np.asarray(np.array(loss) / ((actual - actual.mean()) ** 2).sum())


def _shuffle(codes: Ints, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return ways to shuffle columns together, shape (ways, runs, columns), and how much each of them weighs.

    Over all ways a run gets each level as often as the column holds it, so that a way for each level, which gives it to
    all runs, has the mean of them all (the reliance of Fisher, Rudin and Dominici, JMLR 20, 2019, section 3). Where
    there are many levels, some shuffles stand for all.
    """
    levels, times = np.unique(codes, axis=0, return_counts=True)
    shuffles = max(1, min(MOST_SHUFFLES, ROWS_OF_SHUFFLES // len(codes)))
    if len(levels) <= shuffles + 1:
        return np.repeat(levels[:, None], len(codes), axis=1), times / len(codes)
    return np.array([rng.permutation(codes) for _ in range(shuffles)]), np.full(shuffles, 1 / shuffles)


def _predict_shuffled(
    model: Model, held_out: Settings, plain: Floats, groups: Sequence[Sequence[int]], shuffled: Sequence[Ints]
) -> Iterator[Floats]:
    """Yield what is predicted with each group of columns shuffled, shape (ways, runs).

    Asked are only runs that are others then, those of several groups in one call, because forests are slow to start,
    and of all in several calls, because of the memory.
    """
    changed = [
        (codes != held_out.codes[:, list(columns)]).any(axis=2) for columns, codes in zip(groups, shuffled, strict=True)
    ]
    calls = 1 + sum(int(mask.sum()) for mask in changed) // ROWS_OF_A_CALL
    for part in map(np.ndarray.tolist, np.array_split(np.arange(len(groups)), min(calls, len(groups)))):
        runs = [np.nonzero(changed[number])[1] for number in part]
        ends = np.cumsum([len(rows) for rows in runs])
        codes = held_out.codes[np.concatenate(runs)]
        for number, end, rows in zip(part, ends, runs, strict=True):
            codes[end - len(rows) : end, list(groups[number])] = shuffled[number][changed[number]]
        predictions = model.predict(held_out.with_codes(codes)) if len(codes) else np.zeros(0)
        for number, values in zip(part, np.split(predictions, ends[:-1]), strict=True):
            predicted = np.tile(plain, (len(shuffled[number]), 1))
            predicted[changed[number]] = values
            yield predicted


def _summarise(knobs: Sequence[str], samples: Sequence[_Sample], rows: int) -> Ranking:
    """Average over the samples; intervals and the comparison with the noise columns are over the samples."""
    permutation = np.array([sample.permutation for sample in samples])
    own = np.array([sample.importance for sample in samples])
    real, floor = permutation[:, : len(knobs)], permutation[:, len(knobs) :].max(axis=1)
    above = ((real > floor[:, None]).mean(axis=0) >= ABOVE_NOISE) & (real.mean(axis=0) > floor.mean())
    importance = own.mean(axis=0)[: len(knobs)]
    own_above_noise = own[:, : len(knobs)] - own[:, len(knobs) :].mean(axis=1, keepdims=True)
    score = _score(real.mean(axis=0), own_above_noise.mean(axis=0))
    fitted = samples[0].fitted
    low, high = _rank_intervals(score, _score(real, own_above_noise), fitted / (rows - fitted))
    order = np.lexsort((-importance, -real.mean(axis=0), -score))
    ranked = [
        KnobRank(
            knobs[i],
            position,
            float(importance[i]),
            float(real[:, i].mean()),
            min(int(low[i]), position),
            max(int(high[i]), position),
            bool(above[i]),
            float(score[i]),
        )
        for position, i in enumerate(order, start=1)
    ]
    r2 = float(np.median([sample.r2 for sample in samples]))
    return Ranking(ranked, r2, *_judge(r2, int(above.sum()), rows))


def _rank_intervals(score: Floats, of_samples: Floats, inflation: float) -> tuple[Ints, Ints]:
    """Return the least and the largest rank of each knob; `of_samples` has shape (samples, knobs).

    `inflation` is the variance of a score divided by that between subsamples.
    """
    covariance = np.atleast_2d(np.cov(of_samples, rowvar=False)) * inflation
    variance = np.diag(covariance)
    error = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0))
    is_better = score[:, None] - score > APART * error + 1e-12  # of a knob in a row, than the one in a column
    return 1 + is_better.sum(axis=0), len(score) - is_better.sum(axis=1)


def _score(permutation: Floats, own: Floats) -> Floats:
    """Mean of a knob's shares of both kinds of importance."""
    return (_shares(permutation) + _shares(own)) / 2


def _shares(importance: Floats) -> Floats:
    """Each knob's share of what is positive (last axis); zeros where nothing is."""
    positive = np.maximum(importance, 0)
    total = positive.sum(axis=-1, keepdims=True)
    return np.asarray(positive / np.where(total > 0, total, 1))


def _judge(r2: float, above: int, rows: int) -> tuple[bool, str]:
    """Whether to trust a ranking, and why."""
    if rows < MIN_ROWS:
        return False, f"{rows} configurations, {MIN_ROWS} are the least for a ranking"
    if r2 < MIN_R2:
        return (
            False,
            f"held-out R2 is {r2:.2f}, below {MIN_R2:g}: the model explains too little, however stable its ranks",
        )
    if not above:
        return False, f"no knob is above what noise columns reach (held-out R2 {r2:.2f}, {rows} configurations)"
    are = "knob is" if above == 1 else "knobs are"
    return True, f"held-out R2 is {r2:.2f} and {above} {are} above noise ({rows} configurations)"
