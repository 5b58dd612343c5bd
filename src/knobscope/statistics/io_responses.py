"""Which knobs are I/O-related, told from runs alone: a knob is when it explains a significant part of the I/O profile.

Responses are facts of the I/O of a run, counted per operation of the load, so that a faster run is not mistaken for one
with more I/O. Each is replaced by its normal scores (Conover & Iman 1981): counts per operation are skewed, often zero,
and a rank is as good for a byte as for a share. Knobs enter a main-effects model one by one, the strongest first, as
long as the next has a p value that passes Bonferroni's bound; every knob is then tested by F together with those that
are in. So strong knobs do not hide weak ones, and twenty knobs can be tested with fewer runs than a full model has
columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.design import Settings
from knobscope.statistics.ranks import normal_scores
from knobscope.statistics.regression import adjust_for_fdr

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANCE = 0.05
#: Fewer residual degrees of freedom cannot tell an effect from noise.
LEAST_DEGREES = 10
#: What is left of a knob's columns below this share of its own cross products is rounding: others explain the same.
_ALIASED = 1e-9
#: The same for the scores: nothing of them is left.
_ROUNDING = 1e-10


def find_io_related(runs: "pd.DataFrame", knobs: Sequence[str], responses: Sequence[str], fdr: float) -> "pd.DataFrame":
    """Test every knob against every response; one row per pair, with columns of table `io_related`.

    `runs` has one row per successful run: a column per knob (its setting) and per response (NaN where not measured).
    Runs of one configuration are averaged. `q_value` is Benjamini and Hochberg's over all pairs, `verdict` is related
    (q <= fdr), none, or insufficient where a response was measured in too few configurations to test.
    """
    import pandas as pd

    figures = runs[list(responses)].to_numpy(float)
    runs, figures = runs[np.isfinite(figures).any(axis=1)], figures[np.isfinite(figures).any(axis=1)]
    settings, configuration = np.unique(Settings.from_frame(runs, knobs).codes, axis=0, return_inverse=True)
    designs: dict[bytes, _Design] = {}  # by the configurations that a response was measured in: mostly all of them
    rows = []
    for response, values in zip(responses, figures.T, strict=True):
        is_finite = np.isfinite(values)
        counts = np.bincount(configuration[is_finite], minlength=len(settings))
        sums = np.bincount(configuration[is_finite], values[is_finite], minlength=len(settings))
        measured = counts > 0
        if (key := measured.tobytes()) not in designs:
            designs[key] = _Design.of(settings[measured])
        rows += _test_knobs(designs[key], sums[measured] / counts[measured], knobs, response)
    table = pd.DataFrame(rows, columns=["knob", "response", "runs", "explained_share", "p_value"])
    table["q_value"] = adjust_for_fdr(table["p_value"].to_numpy(float))
    table["verdict"] = np.select(
        [table["p_value"].isna(), table["q_value"] <= fdr], ["insufficient", "related"], "none"
    )
    return table


@dataclass(frozen=True)
class _Design:
    """Dummy columns of all knobs, without their means, each knob with as many as the widest (the others are zeros).

    `columns` is of shape (configurations, knobs x width); `gram` are their cross products.
    """

    columns: Floats
    gram: Floats
    knobs: int

    @classmethod
    def of(cls, codes: Ints) -> "_Design":
        """Make the columns from the codes of the settings, shape (configurations, knobs)."""
        contrasts = [_contrasts(codes[:, knob]) for knob in range(codes.shape[1])]
        width = max((matrix.shape[1] for matrix in contrasts), default=0)
        columns = np.hstack([np.pad(matrix, ((0, 0), (0, width - matrix.shape[1]))) for matrix in contrasts])
        columns = columns - columns.mean(axis=0) if len(columns) else columns
        return cls(columns, columns.T @ columns, codes.shape[1])

    @property
    def width(self) -> int:
        """Columns of each knob."""
        return int(self.columns.shape[1]) // self.knobs

    @property
    def varies(self) -> list[bool]:
        """Whether each knob has more than one setting here."""
        return [bool(squares.any()) for squares in self.gram.diagonal().reshape(self.knobs, self.width)]


def _test_knobs(design: _Design, values: Floats, knobs: Sequence[str], response: str) -> list[dict[str, Any]]:
    """Return the test of each knob; without figures where configurations are too few, or all have one setting of it."""
    about = [{"knob": knob, "response": response, "runs": len(values)} for knob in knobs]
    unknown = {"explained_share": None, "p_value": None}
    if len(values) <= LEAST_DEGREES + design.width:
        return [{**row, **unknown} for row in about]
    if np.ptp(values) == 0:  # it is always the same, whatever the knobs: nothing to explain
        known = {"explained_share": 0.0, "p_value": 1.0}
        return [{**row, **(known if varies else unknown)} for row, varies in zip(about, design.varies, strict=True)]
    model = _Model(design, normal_scores(values))
    while True:
        shares, p_values, ranks = model.test()
        outside = [knob for knob in range(len(knobs)) if knob not in model.inside]
        best = min(outside, key=lambda knob: p_values[knob], default=None)
        used = 1 + model.rank + (0 if best is None else int(ranks[best]))
        if best is None or p_values[best] > SIGNIFICANCE / len(knobs) or len(values) - used < LEAST_DEGREES:
            break
        model.add(best)
    for knob in model.inside:
        reduced = _Model(design, model.scores)
        for covariate in model.inside:
            if covariate != knob:
                reduced.add(covariate)
        tested = reduced.test()
        shares[knob], p_values[knob] = tested[0][knob], tested[1][knob]
    return [
        {**row, **({"explained_share": float(share), "p_value": float(p)} if varies else unknown)}
        for row, share, p, varies in zip(about, shares, p_values, design.varies, strict=True)
    ]


class _Model:
    """A main-effects model to which knobs are added; what it leaves of the other knobs and of the scores.

    Only cross products are kept, from which each knob that enters is swept out (Goodnight, The American Statistician
    33, 1979): a step costs the same for thousands of runs as for a hundred.
    """

    def __init__(self, design: _Design, scores: Floats) -> None:
        self.design, self.scores = design, scores
        self.inside: list[int] = []
        self.rank = 0
        self._gram, self._with_scores = design.gram, design.columns.T @ scores
        self._total = self._left = float(scores @ scores)

    def test(self) -> tuple[Floats, Floats, Floats]:
        """Return explained share, p value and degrees of freedom of each knob next to those inside; shape (knobs,)."""
        from scipy.special import fdtrc

        count, width = self.design.knobs, self.design.width
        inverses, degrees = self._inverses()
        parts = self._with_scores.reshape(count, width)
        explained = np.einsum("ki,kij,kj->k", parts, inverses, parts)
        residuals = np.maximum(self._left - explained, 0.0)
        free = len(self.scores) - 1 - self.rank - degrees
        with np.errstate(divide="ignore", invalid="ignore"):
            p_values = fdtrc(degrees, free, explained / degrees / (residuals / free))
        p_values = np.where(residuals <= _ROUNDING * self._total, 0.0, p_values)
        adds_nothing = (degrees == 0) | (self._left <= _ROUNDING * self._total)
        return np.where(adds_nothing, 0.0, explained / self._total), np.where(adds_nothing, 1.0, p_values), degrees

    def add(self, knob: int) -> None:
        """Take a knob into the model."""
        width = self.design.width
        own = slice(knob * width, (knob + 1) * width)
        inverses, degrees = self._inverses()
        weights = self._gram[:, own] @ inverses[knob]
        part = self._with_scores[own]
        self._left -= float(part @ inverses[knob] @ part)
        self._with_scores = self._with_scores - weights @ part
        self._gram = self._gram - weights @ self._gram[own]
        self.rank += int(degrees[knob])
        self.inside.append(knob)

    def _inverses(self) -> tuple[Floats, Floats]:
        """Return pseudoinverses of the knobs' own cross products, (knobs, width, width), and their ranks, (knobs,)."""
        count, width = self.design.knobs, self.design.width
        index = np.arange(count)
        own = self._gram.reshape(count, width, count, width)[index, :, index, :]
        whole = self.design.gram.reshape(count, width, count, width)[index, :, index, :]
        values, vectors = np.linalg.eigh(own)
        least = _ALIASED * np.trace(whole, axis1=1, axis2=2)[:, None]
        is_estimable = values > least
        inverse = np.where(is_estimable, 1 / np.where(is_estimable, values, 1.0), 0.0)
        return np.einsum("kia,ka,kja->kij", vectors, inverse, vectors), is_estimable.sum(axis=1).astype(float)


def _contrasts(codes: Ints) -> Floats:
    """Return dummy columns for all but one of the levels that occur, shape (rows, levels - 1)."""
    distinct = np.unique(codes)
    return np.asarray((codes[:, None] == distinct[1:]).astype(float))


@dataclass(frozen=True)
class Comparison:
    """Knobs that the runs call I/O-related against those that the specs mark as such."""

    found: list[str]
    marked: list[str]
    knobs: int

    @property
    def missed(self) -> list[str]:
        """Marked, but not found."""
        return sorted(set(self.marked) - set(self.found))

    @property
    def unexpected(self) -> list[str]:
        """Found, but not marked."""
        return sorted(set(self.found) - set(self.marked))

    @property
    def precision(self) -> float | None:
        """Share of the found knobs that are marked; None when none was found."""
        return len(set(self.found) & set(self.marked)) / len(self.found) if self.found else None

    @property
    def recall(self) -> float | None:
        """Share of the marked knobs that were found; None when none is marked."""
        return len(set(self.found) & set(self.marked)) / len(self.marked) if self.marked else None


def compare_with_marks(verdicts: Mapping[str, bool], marks: Mapping[str, bool]) -> Comparison:
    """Compare knob -> "is I/O-related" of the runs with that of the specs; knobs without a mark are left out."""
    judged = [knob for knob in verdicts if knob in marks]
    related = sorted(knob for knob in judged if verdicts[knob])
    return Comparison(related, sorted(knob for knob in judged if marks[knob]), len(judged))
