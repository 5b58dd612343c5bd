"""Settings as integer codes, terms of a model, and the design matrix of a linear model with categorical factors."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from knobscope.errors import UserError
from knobscope.statistics.arrays import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, order=True)
class Term:
    """One term of a linear model: a factor (main effect) or several (interaction)."""

    factors: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name in the usual notation, `a` or `a:b`."""
        return ":".join(self.factors)

    def contains(self, other: "Term") -> bool:
        """Whether this term is an interaction that has `other` as a part."""
        return len(self.factors) > len(other.factors) and all(factor in self.factors for factor in other.factors)


def contained_terms(terms: Iterable[Term]) -> set[Term]:
    """Return the parts of all interactions among the terms, whether they are among the terms themselves or not."""
    return {
        Term(part)
        for term in terms
        for size in range(1, len(term.factors))
        for part in combinations(term.factors, size)
    }


def single_terms(factors: Sequence[str]) -> list[Term]:
    """Return the main effects."""
    return [Term((factor,)) for factor in factors]


def pairwise_terms(factors: Sequence[str]) -> list[Term]:
    """Return the main effects and all two-way interactions."""
    return single_terms(factors) + [Term(pair) for pair in combinations(factors, 2)]


def _as_numbers(values: Iterable[Any]) -> list[float] | None:
    """Return the values as finite numbers, or None when one of them is a word or a truth value."""
    numbers = []
    for value in values:
        if isinstance(value, bool | np.bool_):
            return None
        try:
            numbers.append(float(value))
        except (TypeError, ValueError):
            return None
    return numbers if np.isfinite(numbers).all() else None


@dataclass(frozen=True)
class Settings:
    """Configurations of runs: `codes` has a row per run and a column per factor, the index into the factor's levels.

    Levels are in order of size where all of a factor's levels are numbers, else in order of their text.
    """

    factors: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    codes: Ints
    noise_columns: int = 0  # so many factors at the end are random, see `with_noise_columns`
    # What `_lookup` has found, shared by all that have the same levels: thousands of them take a while to convert.
    _lookups: dict[str, Floats | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_frame(
        cls,
        frame: "pd.DataFrame",
        factors: Sequence[str],
        levels: Mapping[str, Sequence[Any]] | None = None,
        categories: Collection[str] = (),
    ) -> "Settings":
        """Encode the factor columns of a frame.

        `levels` adds levels that the frame does not hold (yet); those of `categories` are words, also where they could
        be numbers.
        """
        import pandas as pd

        columns, all_levels = [], []
        for factor in factors:
            if factor not in frame.columns:
                raise UserError(f"no column {factor!r}; the table has {', '.join(map(str, frame.columns))}")
            order, occurring = pd.factorize(frame[factor])  # in the order in which they occur; -1 is no value
            if missing := int((order < 0).sum()):
                raise UserError(f"column {factor!r} has no value in {missing} rows; every run needs a value")
            values = [*occurring.tolist(), *(levels or {}).get(factor, ())]
            keys: list[Any] = (factor not in categories and _as_numbers(values)) or [str(value) for value in values]
            distinct = sorted(set(keys))
            labels: dict[Any, Any] = dict(zip(reversed(keys), reversed(values), strict=True))
            index = {key: code for code, key in enumerate(distinct)}
            columns.append(np.array([index[key] for key in keys], np.int64)[order])
            all_levels.append(tuple(labels[key] for key in distinct))
        codes = np.column_stack(columns).astype(np.int64) if columns else np.zeros((len(frame), 0), np.int64)
        return cls(tuple(factors), tuple(all_levels), codes, _lookups=dict.fromkeys(categories))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.codes)

    def take(self, rows: Any) -> "Settings":
        """Return the given rows (indices or a mask)."""
        return replace(self, codes=self.codes[rows])

    def with_codes(self, codes: Ints) -> "Settings":
        """Return other rows over the same factors."""
        return replace(self, codes=codes)

    def with_noise_columns(self, count: int, rng: np.random.Generator) -> "Settings":
        """Add factors that cannot matter: shuffled copies of factors drawn at random, so of the same kinds."""
        copied = rng.integers(0, len(self.factors), count)
        columns = [rng.permutation(self.codes[:, column]) for column in copied]
        names = tuple(f"noise column {number + 1}" for number in range(count))
        levels = tuple(self.levels[column] for column in copied)
        lookups = {factor: self._lookup(factor) for factor in self.factors}
        lookups |= {name: self._lookup(self.factors[column]) for name, column in zip(names, copied, strict=True)}
        codes = np.column_stack([self.codes, *columns])
        return Settings(self.factors + names, self.levels + levels, codes, count, lookups)

    def column(self, factor: str) -> Ints:
        """Return the codes of one factor."""
        return self.codes[:, self.factors.index(factor)]

    @property
    def knobs(self) -> tuple[str, ...]:
        """The factors that are no noise columns."""
        return self.factors[: len(self.factors) - self.noise_columns]

    def levels_of(self, factor: str) -> tuple[Any, ...]:
        """Return the levels of a factor."""
        return self.levels[self.factors.index(factor)]

    def only(self, factors: Sequence[str]) -> "Settings":
        """Return the same rows with only these factors."""
        columns = [self.factors.index(factor) for factor in factors]
        levels = tuple(self.levels[j] for j in columns)
        return Settings(tuple(factors), levels, self.codes[:, columns], _lookups=self._lookups)

    def coarsened(self, most: int, parts: int) -> "Settings":
        """Cut every numeric factor with more than `most` levels into `parts` with about equally many rows.

        A part is named by its median level.
        """
        codes, all_levels = self.codes.copy(), list(self.levels)
        for column, factor in enumerate(self.factors):
            numbers = self.numbers(factor)
            if numbers is None or len(numbers) <= most:
                continue
            edges = np.unique(np.quantile(self.codes[:, column], np.arange(1, parts) / parts, method="higher"))
            _, codes[:, column] = np.unique(
                np.searchsorted(edges, self.codes[:, column], side="right"), return_inverse=True
            )
            all_levels[column] = tuple(
                numbers[int(np.median(self.codes[codes[:, column] == part, column]))]
                for part in range(int(codes[:, column].max()) + 1)
            )
        words = dict.fromkeys(factor for factor in self.factors if self._lookup(factor) is None)
        return Settings(self.factors, tuple(all_levels), codes, self.noise_columns, words)

    def numbers(self, factor: str) -> list[float] | None:
        """Return the levels of a factor as numbers, None where they are words."""
        lookup = self._lookup(factor)
        return None if lookup is None else lookup.tolist()

    def _lookup(self, factor: str) -> Floats | None:
        if factor not in self._lookups:
            numbers = _as_numbers(self.levels_of(factor))
            self._lookups[factor] = None if numbers is None else np.array(numbers)
        return self._lookups[factor]

    def values(self) -> Floats:
        """Return a row per run of what a tree or a net sees: the number, or the code where levels are words."""
        values = self.codes.astype(float)
        for column, factor in enumerate(self.factors):
            if (lookup := self._lookup(factor)) is not None:
                values[:, column] = lookup[self.codes[:, column]]
        return values

    def groups(self) -> Ints:
        """Number the distinct configurations; runs of the same one share a number."""
        return np.unique(self.codes, axis=0, return_inverse=True)[1].reshape(-1)

    def cells(self, term: Term) -> dict[tuple[int, ...], float]:
        """Return the combinations of levels of a term's factors that occur, and the share of the rows they hold."""
        columns = [self.factors.index(factor) for factor in term.factors]
        sizes = [len(self.levels[column]) for column in columns]
        # One number per cell: numbers are sorted a good deal faster than rows, and come in the same order.
        numbers = np.ravel_multi_index(tuple(self.codes[:, columns].T), sizes)
        distinct, counts = np.unique(numbers, return_counts=True)
        cells = np.column_stack(np.unravel_index(distinct, sizes)).tolist()
        return dict(zip(map(tuple, cells), (counts / len(self)).tolist(), strict=True))

    def some(self, count: int, rng: np.random.Generator) -> "Settings":
        """Return up to so many rows, at random."""
        return self if len(self) <= count else self.take(rng.permutation(len(self))[:count])

    def describe(self, term: Term, cell: tuple[int, ...]) -> str:
        """Write a cell for people, as `knob=value`."""
        names = [self.levels_of(factor)[code] for factor, code in zip(term.factors, cell, strict=True)]
        return ", ".join(f"{factor}={name}" for factor, name in zip(term.factors, names, strict=True))


class PossibleRuns(Protocol):
    """What could be run, as far as the stop rule looks at it; Settings are one."""

    def cells(self, term: Term) -> Mapping[tuple[int, ...], float]:
        """Return the possible combinations of levels of a term's factors, with the share of the space they hold."""

    def some(self, count: int, rng: np.random.Generator) -> Settings:
        """Return up to so many possible configurations, at random."""


@dataclass(frozen=True)
class FullGrid:
    """Every combination of the levels of some settings."""

    settings: Settings

    def cells(self, term: Term) -> dict[tuple[int, ...], float]:
        """Return all combinations of levels of a term's factors, of equal shares."""
        counts = [len(self.settings.levels_of(factor)) for factor in term.factors]
        return dict.fromkeys(product(*map(range, counts)), 1 / math.prod(counts))

    def some(self, count: int, rng: np.random.Generator) -> Settings:
        """Return so many combinations, at random."""
        counts = [len(levels) for levels in self.settings.levels]
        return self.settings.with_codes(rng.integers(0, counts, (count, len(counts))))


def _contrasts(codes: Ints, levels: int) -> Floats:
    """Sum-to-zero contrasts of the seen levels, one row per level; an unseen level is a row of zeros: the average.

    With treatment contrasts an unseen level would silently be predicted as the base level.
    """
    distinct = np.unique(codes)
    lookup = np.zeros((levels, max(len(distinct) - 1, 0)))
    if len(distinct) > 1:
        lookup[distinct[:-1]] = np.eye(len(distinct) - 1)
        lookup[distinct[-1]] = -1
    return lookup


@dataclass(frozen=True)
class DesignMatrix:
    """How to turn settings into columns: contrasts per factor (learned from the training rows) and terms."""

    terms: tuple[Term, ...]
    contrasts: Mapping[str, Floats]

    def columns(self, settings: Settings) -> tuple[Floats, list[slice]]:
        """Return the matrix (a row per run; the first column is the intercept) and where each term's columns are."""
        coded = {
            factor: self.contrasts[factor][settings.column(factor)] for term in self.terms for factor in term.factors
        }
        blocks, spans, end = [np.ones((len(settings), 1))], [], 1
        for term in self.terms:
            block = coded[term.factors[0]]
            for factor in term.factors[1:]:
                width = block.shape[1] * coded[factor].shape[1]
                block = (block[:, :, None] * coded[factor][:, None, :]).reshape(len(settings), width)
            blocks.append(block)
            spans.append(slice(end, end + block.shape[1]))
            end += block.shape[1]
        return np.hstack(blocks), spans


def design_matrix(settings: Settings, terms: Sequence[Term]) -> DesignMatrix:
    """Learn the contrasts of the terms' factors from training rows."""
    factors = dict.fromkeys(factor for term in terms for factor in term.factors)
    contrasts = {factor: _contrasts(settings.column(factor), len(settings.levels_of(factor))) for factor in factors}
    return DesignMatrix(tuple(terms), contrasts)
