"""When to stop measuring: Algorithm 1 of "On the Feasibility and Benefits of Extensive Evaluation" (SIGMOD 2024).

A model is fitted to the runs so far; when it predicts the held-out fifth of ten random splits with an R2 of at least
the threshold on ALL of them, more runs would not change what it says. More is asked for than in the paper, each time
because real tables stopped falsely without it: every level, and every cell that may matter, has been seen, and a large
one not just once or twice; there are more training rows than columns; every configuration is held out equally often;
runs of the same configuration never sit on both sides of a split. The configurations that were drawn at random have to
be predicted well enough that no luck explains it: only they stand for the settings that nobody has run, as others were
chosen by what was known before.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np

from knobscope.statistics.arrays import Bools, Floats, Ints
from knobscope.statistics.blend import Blend
from knobscope.statistics.design import PossibleRuns, Settings, Term, pairwise_terms
from knobscope.statistics.holding_out import HeldOut, hold_out, r_squared
from knobscope.statistics.looks import LEAST_TO_STOP, spend
from knobscope.statistics.models import DECIDING, Model, make_models
from knobscope.statistics.models.anova import Anova, InsufficientSamplesError
from knobscope.statistics.models.predicting import count_columns
from knobscope.text.formats import format_number, plural

#: A surprise in a cell of two or three factors with less than this share of all settings cannot change R2 much, or is
#: too rare to ask for.
LARGE_CELL = {2: 0.05, 3: 0.1}
#: A cell needs this part of the runs that it would have in a random sample, less one: when a quarter of all settings
#: holds one run in a hundred, cross-validation says nothing about that quarter.
FAIR_PART = 0.25
#: The chance of a stop by luck, over all looks together.
FALSE_STOP = 0.05
#: An analysis of variance, which tests its terms, is taken though its held-out error is so many times the least.
AS_GOOD = 1.02
#: The best model is averaged with the next one whose error is at most so many times as large.
NEARLY_AS_GOOD = 1.15
#: A prediction may be so many times the measured range away from it, and is asked for at so many settings.
FAR = 0.5
MOST_PREDICTED = 5000


@dataclass(frozen=True)
class Runs:
    """Distinct configurations with their mean response, and what replicates say about noise."""

    settings: Settings
    response: Floats
    counts: Ints
    is_random: Bools  # drawn without regard to any response, so that they stand for all settings
    noise_variance: float  # of a single run; NaN without replicates
    noise_degrees: int
    is_log: bool = False  # whether the response is the natural logarithm of what was measured

    @classmethod
    def of(
        cls,
        settings: Settings,
        response: Floats,
        is_random: Bools | None = None,
        offsets: int = 0,
        *,
        is_log: bool = False,
    ) -> "Runs":
        """Average the runs of each configuration. `is_random` has a value per run; None: all are.

        `offsets`: how many degrees of freedom were taken from the replicates when offsets of blocks were subtracted.
        """
        group = settings.groups()
        _, first, counts = np.unique(group, return_index=True, return_counts=True)
        means = np.bincount(group, response) / counts
        degrees = max(len(response) - len(counts) - offsets, 0)
        squares = float(((response - means[group]) ** 2).sum())
        drawn = np.ones(len(counts), bool) if is_random is None else is_random[first]
        variance = squares / degrees if degrees else float("nan")
        return cls(settings.take(first), means, counts, drawn, variance, degrees, is_log)

    def in_unit(self, response: float) -> float:
        """Return a value of the response in the unit in which it was measured."""
        with np.errstate(over="ignore"):
            return float(np.exp(response)) if self.is_log else float(response)

    def noise_share(self, confidence: float | None = None) -> float:
        """Return the share of the variance between configuration means that is noise; NaN without replicates.

        With `confidence`, its lower confidence bound (chi squared): few replicates prove nothing.
        """
        from scipy.special import chdtri

        variance = self.noise_variance
        if confidence is not None and self.noise_degrees:
            variance *= self.noise_degrees / float(chdtri(self.noise_degrees, 1 - confidence))
        total = float(np.var(self.response, ddof=1)) if len(self.response) > 1 else float("nan")
        noise = variance * float(np.mean(1 / self.counts))
        return min(1.0, noise / total) if total > 0 else (1.0 if noise > 0 else float("nan"))


@dataclass(frozen=True)
class Stop:
    """The decision, the best model so far (None: none could be fitted) and its R2 on the splits.

    `predicted` is what it predicts of each configuration when held out, on average; NaN for one that never was.
    """

    stopped: bool
    reason: str
    model: Model | None
    r2_splits: list[float]
    predicted: Floats | None = None


def _fails_random(runs: Runs, squares: Floats, threshold: float, looks: Sequence[int]) -> str | None:
    """Say so when the random runs are predicted less well than the threshold.

    Chosen runs crowd where the model already looked; only the others say how well it does elsewhere. A few that are far
    off may decide: so the jackknife's standard error (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
    section 11) is taken off, as often as this look asks for: whoever looks after every round and stops at the first
    success will be lucky once.
    """
    rows = runs.is_random & np.isfinite(squares)
    count = int(rows.sum())
    errors, actual = squares[rows], runs.response[rows]
    total = float(((actual - actual.mean()) ** 2).sum())
    # Without row i the sum of squares about the new mean is smaller by this much.
    without = total - (actual - actual.mean()) ** 2 * count / (count - 1)
    if total <= 0 or without.min() <= 0:
        return f"{count} random configurations differ too little to check with"
    r2, left_out = 1 - errors.sum() / total, 1 - (errors.sum() - errors) / without
    error = float(np.sqrt((count - 1) * np.var(left_out)))
    drawn = int(runs.is_random.sum())  # with few splits not all of them are held out
    before = [look for look in looks if LEAST_TO_STOP <= look < drawn]
    if r2 - spend(FALSE_STOP, [*before, drawn]) * error >= threshold:
        return None
    return f"R2 is {r2:.3f} on the {count} configurations that were drawn at random (standard error {error:.3f})"


def _few(runs: Runs) -> str | None:
    count = int(runs.is_random.sum())
    return (
        f"{count} random configurations, {LEAST_TO_STOP} are the least to stop with" if count < LEAST_TO_STOP else None
    )


def _unseen(model: Model, settings: Settings, possible: PossibleRuns) -> str | None:
    """Name a level or cell that is possible, matters, and is not or hardly among the runs; None if there is none."""
    for term, wanted in _needed_cells(model, settings, possible):
        actual_shares = settings.cells(term)
        noun = "level" if len(term.factors) == 1 else "cell"
        if missing := wanted.keys() - actual_shares.keys():
            first = settings.describe(term, min(missing))
            return f"{plural(len(missing), noun)} of {term.name} not seen yet, such as {first}"
        if rare := [
            cell for cell, share in wanted.items() if actual_shares[cell] < FAIR_PART * share - 1 / len(settings)
        ]:
            which = f"{settings.describe(term, min(rare))}, {100 * wanted[min(rare)]:.0f} % of all settings"
            return f"{plural(len(rare), noun)} of {term.name} hardly seen, such as {which}"
    return None


def _needed_cells(
    model: Model, settings: Settings, possible: PossibleRuns
) -> Iterator[tuple[Term, dict[tuple[int, ...], float]]]:
    """Yield the cells that have to be seen before a stop, with the share of all settings they hold, by term.

    Every level. Every cell of a kept interaction. And, because an interaction hides best where nobody has looked, every
    cell of two or three factors (at least one of them in the model) that holds a large part of all settings.
    """
    active = {factor for factor, share in model.importance(settings).items() if share > 0}
    interactions = {term for term in getattr(model, "terms", ()) if len(term.factors) > 1}
    triples = (Term(factors) for factors in combinations(settings.factors, 3) if not active.isdisjoint(factors))
    for term in chain(pairwise_terms(settings.factors), triples):
        is_whole = len(term.factors) == 1 or term in interactions
        if not is_whole and active.isdisjoint(term.factors):
            continue
        least = 0 if is_whole else LARGE_CELL[len(term.factors)]
        if wanted := {cell: share for cell, share in possible.cells(term).items() if share >= least}:
            yield term, wanted


def _runs_wild(model: Model, runs: Runs, possible: PossibleRuns, rng: np.random.Generator) -> str | None:
    """Say so when the model predicts something far beyond all that was measured.

    Where nobody has looked, several interactions of the same factors together can add up to anything.
    """
    predicted = model.predict(possible.some(MOST_PREDICTED, rng))
    low, high = float(runs.response.min()), float(runs.response.max())
    if low - predicted.min() <= FAR * (high - low) and predicted.max() - high <= FAR * (high - low):
        return None
    ends = (format_number(runs.in_unit(end), 3) for end in (predicted.min(), predicted.max(), low, high))
    return "predictions of {} to {}, measured were {} to {}".format(*ends)


def _limit_verdict(runs: Runs, best: Stop, insufficient: list[str], threshold: float) -> str | None:
    """Say so when more runs would not help: replicates show too much noise, or all that a rich fit leaves is noise."""
    if runs.noise_degrees and runs.noise_share(confidence=0.95) > 1 - threshold:
        share = 100 * runs.noise_share()
        return f"not predictable: noise explains {share:.0f} % of the variation between configurations (replicates)"
    if best.model is None or not isinstance(best.model, Anova) or best.model.is_sparse:
        return None
    if insufficient:  # of pairs that could not be fitted nothing is known
        return None
    columns = best.model.columns
    if len(runs.response) < 4 * columns or np.ptp(runs.response) == 0:
        return None
    fitted = r_squared(runs.response, best.model.predict(runs.settings))
    explained = 1 - (1 - fitted) * (len(runs.response) - 1) / (len(runs.response) - columns)
    if explained >= threshold:
        return None
    if runs.noise_degrees:
        remainder = f"{100 * runs.noise_share():.0f} % is noise by the replicates, the remainder has no known reason"
    else:
        remainder = "what is left may be noise or interactions of more knobs; replicates would tell which"
    return f"not predictable: single knobs and pairs explain {100 * explained:.0f} % of the variation; {remainder}"


_NOTHING = Stop(False, "", None, [])


@dataclass(frozen=True)
class _Judged:
    """A model, fitted to all runs, and how well it does on held-out ones."""

    model: Model
    held_out: HeldOut

    @property
    def error(self) -> float:
        """Root of the mean squared error."""
        return math.sqrt(float(np.nanmean(self.held_out.squares)))

    @property
    def least(self) -> float:
        """R2 of the worst split."""
        return min(self.held_out.scores)

    def answer(self) -> Stop:
        """Return the model to go by while it is too early to stop."""
        return Stop(False, "", self.model, self.held_out.scores, self.held_out.predicted)


def decide_stop(
    runs: Runs,
    name: str,
    possible: PossibleRuns,
    threshold: float,
    splits: int,
    seed: int,
    looks: Sequence[int] = (),
    expected: frozenset[str] = frozenset(),
    *,
    only_whether: bool = False,
    only_deciding: bool = False,
) -> Stop:
    """Stop when one of the models of a name passes; else tell what stood in the way.

    The model of the answer is the one with the least held-out error, or the mean of the best two where these are nearly
    equal; analysis of variance comes first where it is as good. At a stop it reaches the threshold, too.

    `possible` is what could be run, in the same codes: its levels and cells have to be seen. `looks` are the numbers of
    random configurations at which it was too early to stop. `expected` are factors that mattered elsewhere. With
    `only_whether`, what falls short of the threshold is given up at once, and a Stop that says no says nothing else.
    With `only_deciding` the answer is one of the models that decide, which cost a third of all: enough to draw
    conclusions from.
    """
    judged: list[_Judged] = []
    credible: list[_Judged] = []  # those that reach the threshold on all splits and predict nothing absurd
    deciders: list[_Judged] = []
    insufficient: list[str] = []
    doubts: list[str | None] = []
    deciding, few = DECIDING.get(name), _few(runs)
    for position, model in enumerate(make_models(name, seed, expected, count_columns(runs.settings))):
        decides = deciding is None or position < deciding
        if not decides and (only_deciding or few is not None or (only_whether and None not in doubts)):
            break
        rng = np.random.default_rng([seed, position, len(runs.response)])
        try:
            entry = _judge(model, runs, splits, rng, threshold if only_whether else -math.inf)
        except InsufficientSamplesError as error:
            insufficient.append(str(error))
            continue
        judged.append(entry)
        deciders += [entry] if decides else []
        if entry.least < threshold:
            continue
        if (wild := _runs_wild(entry.model, runs, possible, rng)) is None:
            credible.append(entry)
        if decides and None not in doubts:  # nobody has passed yet
            doubts.append(_doubt(entry, runs, possible, threshold, looks) or wild)
    rng = np.random.default_rng([seed, len(judged), len(runs.response)])
    if None in doubts:
        chosen = _choose(credible) if only_deciding else _blend(credible, runs, splits, rng, threshold)
        return replace(
            chosen.answer(), stopped=True, reason=f"R2 is at least {chosen.least:.3f} on all {splits} splits"
        )
    if only_whether:
        return _NOTHING
    decider = _choose(deciders).answer() if deciders else _NOTHING
    reason = _reason(runs, decider, insufficient, doubts[-1] if doubts else None, threshold, splits)
    if only_deciding or not judged:
        return replace(decider, reason=reason)
    return replace(_blend(judged, runs, splits, rng, -math.inf).answer(), reason=reason)


def _judge(model: Model, runs: Runs, splits: int, rng: np.random.Generator, least: float) -> _Judged:
    """Fit a model and hold rows out, up to the first split whose R2 is below the least: then it stays unfitted."""
    if math.isinf(least):
        model = model.fit(runs.settings, runs.response)
        return _Judged(model, hold_out(model, runs.settings, runs.response, splits, rng))
    held_out = hold_out(model, runs.settings, runs.response, splits, rng, least)
    return _Judged(model if held_out.scores[-1] < least else model.fit(runs.settings, runs.response), held_out)


def _doubt(entry: _Judged, runs: Runs, possible: PossibleRuns, threshold: float, looks: Sequence[int]) -> str | None:
    """Say why it is too early to stop though the model reaches the threshold on all splits."""
    return (
        _few(runs)
        or _unseen(entry.model, runs.settings, possible)
        or _fails_random(runs, entry.held_out.squares, threshold, looks)
    )


def _choose(judged: Sequence[_Judged]) -> _Judged:
    """Return the model with the least error, or the first analysis of variance that is nearly as good."""
    best = min(judged, key=lambda entry: entry.error)
    tested = [entry for entry in judged if isinstance(entry.model, Anova)]
    return next((entry for entry in tested if entry.error <= AS_GOOD * best.error), best)


def _blend(judged: Sequence[_Judged], runs: Runs, splits: int, rng: np.random.Generator, least: float) -> _Judged:
    """Return the mean of the two best models if neither is an analysis of variance that does alone, else the best.

    The mean has to reach the least R2 on all splits.
    """
    best = _choose(judged)
    others = [entry for entry in judged if entry is not best and entry.error <= NEARLY_AS_GOOD * best.error]
    if isinstance(best.model, Anova) or not others:
        return best
    second = min(others, key=lambda entry: entry.error)
    both = _judge(Blend([best.model, second.model]), runs, splits, rng, -math.inf)
    return both if both.least >= least else best


def _reason(runs: Runs, best: Stop, insufficient: list[str], doubt: str | None, threshold: float, splits: int) -> str:
    """Tell in one sentence why it is too early to stop: the first obstacle in the order in which to remove them."""
    if limit := _limit_verdict(runs, best, insufficient, threshold):
        return limit
    if doubt:
        return doubt
    if best.model is None:
        return f"insufficient samples: {insufficient[0]}"
    reached = sum(score >= threshold for score in best.r2_splits)
    text = f"R2 reaches {threshold:g} on {reached} of {splits} splits (smallest {min(best.r2_splits):.3f})"
    return f"{text}; insufficient samples for interactions: {insufficient[0]}" if insufficient else text
