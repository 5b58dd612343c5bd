"""What the rows of a table cannot show, whatever a model explains of them.

A ranking is of causes when rows were drawn without regard to what they did, as designs are. What a tuner leaves is
different: it keeps what was fast, so its knobs move together, many of them split the rows as the one does that matters,
and held-out rows come from the same path. Each guard finds one such thing, with the figures for it and a sentence.

Several guards look at the *best split* of a knob: the cut of its numbers, or of its levels in the order of their mean
response, that explains most of the response's variance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field, computed_field

from knobscope.document_part import Part
from knobscope.statistics.arrays import Bools, Floats, Ints
from knobscope.statistics.design import Settings
from knobscope.statistics.ranks import rank_values
from knobscope.text.formats import join_words

Share = Annotated[float, Field(ge=0, le=1)]

#: A side of a split has so many rows at least, and this share of them.
_LEAST_ROWS, _LEAST_SHARE = 3, 0.02
#: Splits of two knobs whose correlation is this high are the same but for a few rows: the rows cannot say whose it is.
_SAME = 0.9
#: A knob separates the rows when a row of one side of its split is faster than one of the other in so many pairs.
_SEPARATES = 0.95
#: Mean squared correlation of two knobs beyond chance, from which on knobs move together, where there are so many rows
#: per knob, and where there are fewer, so that the other knobs cannot be held equal. 160 histories of tuners have .04
#: to .3, designs 0, and a table of 250 rows per knob that was collected to train models .03.
_TOGETHER, _ROWS_PER_KNOB, _TOGETHER_FEW = 0.035, 10, 0.01
#: ... and it lies so many standard errors above what chance gives.
_CERTAIN = 3.0
#: A squared correlation above this is of one knob in two columns.
_ONE_KNOB = 0.999
#: A knob follows the order of the rows from this correlation with their number on, where the others resemble the row
#: before by less: in a sorted grid they resemble it, too. Of fewer rows chance does the same.
_FOLLOWS, _RESEMBLES, _ROWS_IN_ORDER = 0.8, 0.2, 50
#: An extreme of the response is a limit when so many rows share it, this share of all, and many times as many as share
#: another value.
_LEAST_LIMITED, _LIMITED, _MORE_OFTEN = 3, 0.01, 10
#: A knob with one split that changes the response so many times is the answer, or a broken benchmark.
_IMPLAUSIBLE = 10.0


@dataclass(frozen=True)
class Split:
    """The best split of a knob: which rows are on its upper side, and how many pairs of rows it puts in order."""

    knob: str
    upper: Bools
    explained: float  # share of the variance of the response's ranks
    in_order: float  # share of the pairs of rows, one from either side, of which the same side is faster


class MovingTogether(Part):
    """Rows that are no random sample: knobs move together."""

    correlation: float = Field(description="Root of the mean squared correlation of two knobs, beyond chance.")
    by_chance: float = Field(description="What it would be of knobs that are set independently.")
    like_the_row_before: float = Field(description="Mean correlation of a knob with itself one row earlier.")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        """The sentence."""
        order = ", and rows resemble the row before" if self.like_the_row_before > _RESEMBLES else ""
        return (
            "the rows are no random sample: knobs move together (typical correlation "
            f"{self.correlation:.2f}, by chance {self.by_chance:.2f}{order}), as in the history of a tuner, so a knob "
            "that goes with speed need not cause it"
        )


class Ordered(Part):
    """Knobs that follow the order of the rows, though the others were set without regard to it."""

    knobs: list[str]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        """The sentence."""
        follow, its = ("follows", "its") if len(self.knobs) == 1 else ("follow", "their")
        return (
            f"only {join_words(self.knobs)} {follow} the order of the rows: if they were measured in that order, "
            f"whatever else changed meanwhile counts as {its} effect"
        )


class Censored(Part):
    """An extreme response that many rows share, such as a time limit."""

    value: float
    rows: int
    share: Share

    @computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        """The sentence."""
        return (
            f"{self.rows} rows ({100 * self.share:.0f} %) share the extreme response {self.value:g}, as at a time "
            "limit or of failed runs: how far beyond it they belong is unknown"
        )


class Jump(Part):
    """A knob that alone changes the response many times: the answer, or a broken benchmark."""

    knob: str
    times: float = Field(description="Ratio of the median responses on both sides of its best split.")
    alike: int = Field(description="Other knobs that split the rows in the same way.")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        """The sentence."""
        suffix = f", and {self.alike} more split the rows in the same way" if self.alike else ""
        return (
            f"the response differs {self.times:.3g}x between the two sides of {self.knob} alone{suffix}: either the "
            "answer, or a broken benchmark. Look at those runs first"
        )


class Duplicates(Part):
    """Rows that repeat an earlier one, settings and response: copies, not replicates."""

    rows: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        """The sentence."""
        copies = f"{self.rows} row{'s repeat' if self.rows > 1 else ' repeats'} an earlier row"
        return f"{copies} to the last digit: copied, not measured again"


@dataclass(frozen=True)
class Guards:
    """What was found; None or empty: nothing of the kind."""

    splits: tuple[Split, ...]  # of each knob with two sides
    aliased: tuple[tuple[str, ...], ...]  # groups of knobs, the best split first
    sample: MovingTogether | None
    ordered: Ordered | None
    censored: Censored | None
    jump: Jump | None
    duplicates: Duplicates | None

    def columns(self, factors: Sequence[str]) -> list[list[int]]:
        """Return groups of columns for `rank_knobs`, one for each knob that is in no group."""
        grouped = {name for group in self.aliased for name in group}
        alone = [(name,) for name in factors if name not in grouped]
        return [[factors.index(name) for name in group] for group in (*self.aliased, *alone)]

    def group_of(self, knob: str) -> tuple[str, ...]:
        """Return the knobs that are ranked under the name of one."""
        return next((group for group in self.aliased if group[0] == knob), (knob,))

    def to_json(self) -> dict[str, Any]:
        """Return the keys of the document."""
        parts = {name: getattr(self, name) for name in ("sample", "ordered", "censored", "jump", "duplicates")}
        return {
            "aliased": [list(group) for group in self.aliased],
            **{name: part and part.model_dump() for name, part in parts.items()},
        }

    def doubt(self) -> str | None:
        """Say why a ranking of these rows is none of causes."""
        return None if self.sample is None else self.sample.text


def find_guards(settings: Settings, response: Floats, raw: Floats | None = None) -> Guards:
    """Look at the rows of a table; `raw` is the response before a logarithm was taken, if one was."""
    raw = response if raw is None else raw
    group = settings.groups()
    _, first = np.unique(group, return_index=True)
    first.sort()  # in the order of the table
    means = (np.bincount(group, response) / np.bincount(group))[group[first]]
    distinct = settings.take(first)
    splits = tuple(_find_splits(distinct, means))
    aliased = _find_aliased(splits)
    return Guards(
        splits,
        aliased,
        _find_moving_together(distinct),
        _find_ordered(settings),
        _find_censored(raw),
        _find_jump(splits, aliased, raw[first]),
        _count_duplicates(settings, raw),
    )


def missed_separators(guards: Guards, first: Sequence[str]) -> list[Split]:
    """Return the knobs that alone separate fast rows from slow ones and are not among the first ones nor like them."""
    known_knobs = set(first).union(*(group for group in guards.aliased if set(group) & set(first)))
    missed = [split for split in guards.splits if split.in_order >= _SEPARATES and split.knob not in known_knobs]
    return sorted(missed, key=lambda split: -split.in_order)


def _find_splits(settings: Settings, response: Floats) -> list[Split]:
    """Return the best split of each knob that has two sides with enough rows."""
    ranks = rank_values(response)
    ranks -= ranks.mean()
    least = max(_LEAST_ROWS, round(_LEAST_SHARE * len(ranks)))
    splits = []
    for column, factor in enumerate(settings.factors):
        codes = settings.codes[:, column]
        counts = np.bincount(codes, minlength=len(settings.levels[column]))
        sums = np.bincount(codes, ranks, minlength=len(counts))
        is_number = settings.numbers(factor) is not None
        order = np.arange(len(counts)) if is_number else np.argsort(sums / np.maximum(counts, 1), kind="stable")
        below, sum_below = np.cumsum(counts[order])[:-1], np.cumsum(sums[order])[:-1]
        above = len(ranks) - below
        explained = np.where((below >= least) & (above >= least), sum_below**2 / np.maximum(below * above, 1), 0.0)
        if not len(explained) or explained.max() <= 0:
            continue
        cut = int(explained.argmax())
        upper = np.isin(codes, order[cut + 1 :])
        # Mann and Whitney's statistic from the sum of the ranks of one side, which are centred here.
        wins = 0.5 + abs(float(sum_below[cut])) / float(below[cut] * above[cut])
        total = float((ranks**2).sum()) / len(ranks)
        splits.append(Split(factor, upper, float(explained[cut]) / total if total else 0.0, wins))
    return splits


def _find_aliased(splits: Sequence[Split]) -> tuple[tuple[str, ...], ...]:
    """Return groups of knobs with the same split but for a few rows, best first; all pairs of a group are alike."""
    if len(splits) < 2:
        return ()
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    alike = np.abs(np.corrcoef([split.upper for split in splits]))
    distance = np.clip(1 - alike, 0, None)
    np.fill_diagonal(distance, 0)
    number = fcluster(linkage(squareform(distance, checks=False), "complete"), 1 - _SAME, "distance")
    groups = [
        tuple(split.knob for split in sorted(members, key=lambda split: (-split.in_order, -split.explained)))
        for cluster in np.unique(number)
        if len(members := [split for split, own in zip(splits, number, strict=True) if own == cluster]) > 1
    ]
    return tuple(sorted(groups, key=len, reverse=True))


def _find_moving_together(settings: Settings) -> MovingTogether | None:
    """Judge how much knobs correlate, beyond chance; one knob written as two columns (`log`, `noLog`) is one."""
    codes = settings.codes[:, np.ptp(settings.codes, axis=0) > 0].astype(float) if len(settings) else settings.codes
    rows, knobs = codes.shape
    if knobs < 2 or rows < 3:
        return None
    codes = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    squares = (codes.T @ codes / rows) ** 2
    alone = ~(np.triu(squares, 1) > _ONE_KNOB).any(axis=0)
    codes, knobs = codes[:, alone], int(alone.sum())
    if knobs < 2:
        return None
    squares = squares[np.ix_(alone, alone)][np.triu_indices(knobs, 1)]
    beyond = float(squares.mean()) - 1 / (rows - 1)
    chance = float(np.sqrt(2 / len(squares))) / (rows - 1)
    least = _TOGETHER if rows >= _ROWS_PER_KNOB * knobs else _TOGETHER_FEW
    if beyond < max(least, _CERTAIN * chance):
        return None
    before = float(np.abs((codes[1:] * codes[:-1]).mean(axis=0)).mean())
    by_chance = float((rows - 1) ** -0.5)
    return MovingTogether(correlation=float(np.sqrt(beyond)), by_chance=by_chance, like_the_row_before=before)


def _find_ordered(settings: Settings) -> Ordered | None:
    """Return the knobs that rise or fall with the number of the row; words rise in the order of the table."""
    names = [name for name, column in zip(settings.factors, settings.codes.T, strict=True) if np.ptp(column) > 0]
    if len(settings) < _ROWS_IN_ORDER or not names:
        return None
    codes = np.column_stack([_ordered_codes(settings, name) for name in names]).astype(float)
    codes = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    number = np.arange(len(codes)) - (len(codes) - 1) / 2
    follows = np.abs(number @ codes) / (len(codes) * number.std()) >= _FOLLOWS
    others = codes[:, ~follows]
    if not follows.any() or not others.size or np.abs((others[1:] * others[:-1]).mean(axis=0)).mean() > _RESEMBLES:
        return None
    return Ordered(knobs=[name for name, does in zip(names, follows, strict=True) if does])


def _ordered_codes(settings: Settings, name: str) -> Ints:
    codes = settings.column(name)
    if settings.numbers(name) is not None:
        return codes
    _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers]


def _find_censored(response: Floats) -> Censored | None:
    """Return the extreme that so many rows share that it is no measurement."""
    values, counts = np.unique(response, return_counts=True)
    if len(values) < 3:
        return None
    for end, other_counts in ((-1, counts[:-1]), (0, counts[1:])):
        rows = int(counts[end])
        if rows >= max(_LEAST_LIMITED, _LIMITED * len(response), _MORE_OFTEN * float(np.quantile(other_counts, 0.9))):
            return Censored(value=float(values[end]), rows=rows, share=rows / len(response))
    return None


def _find_jump(splits: Sequence[Split], aliased: Sequence[Sequence[str]], response: Floats) -> Jump | None:
    """Return the knob with the split that changes a positive response most, if that is many times."""
    jumps = []
    for split in splits:
        if split.in_order < _SEPARATES:
            continue
        sides = [float(np.median(response[side])) for side in (split.upper, ~split.upper)]
        if min(sides) > 0 and (ratio := max(sides) / min(sides)) >= _IMPLAUSIBLE:
            jumps.append((split.in_order, ratio, split.knob))
    if not jumps:
        return None
    _, times, knob = max(jumps)
    alike = next((len(group) - 1 for group in aliased if knob in group), 0)
    return Jump(knob=knob, times=times, alike=alike)


def _count_duplicates(settings: Settings, response: Floats) -> Duplicates | None:
    rows = np.column_stack([settings.groups(), np.unique(response, return_inverse=True)[1]])
    copies = len(rows) - len(np.unique(rows, axis=0))
    # Where the response has few values, replicates agree by chance.
    return Duplicates(rows=copies) if copies and len(np.unique(response)) > len(response) / 2 else None
