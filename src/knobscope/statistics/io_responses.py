"""Which knobs are I/O-related, told from runs alone: a knob is when it explains a significant part of the I/O profile.

Responses are facts of the I/O of a run, counted per operation of the load, so that a faster run is not mistaken for one
with more I/O. Each is replaced by its normal scores (Conover & Iman 1981): counts per operation are skewed, often zero,
and a rank is as good for a byte as for a share. Knobs enter a main-effects model one by one, the strongest first, as
long as the next has a p value that passes Bonferroni's bound; every knob is then tested by F beside those that are in.
So strong knobs do not hide weak ones, and twenty knobs can be tested with fewer runs than a full model has columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare_with_marks", "find_io_related"]

SIGNIFICANCE = 0.05
#: Fewer residual degrees of freedom cannot tell an effect from noise.
LEAST_DEGREES = 10


def find_io_related(runs: "pd.DataFrame", knobs: Sequence[str], responses: Sequence[str], fdr: float) -> "pd.DataFrame":
    """Test every knob against every response; one row per pair, with columns of table `io_related`.

    `runs` has one row per successful run: a column per knob (its setting) and per response (NaN where not measured).
    Runs of one configuration are averaged. `q_value` is Benjamini and Hochberg's over all pairs, `verdict` is related
    (q <= fdr), none, or insufficient where a response was measured in too few configurations to test.
    """
    import pandas as pd
    from scipy.stats import false_discovery_control

    rows = []
    for response in responses:
        measured = runs[np.isfinite(runs[response].to_numpy(float))]
        means = measured.groupby(list(knobs), as_index=False, dropna=False)[response].mean()
        rows += _test_knobs(means, knobs, response)
    found = pd.DataFrame(rows, columns=["knob", "response", "runs", "explained_share", "p_value"])
    known = found["p_value"].notna()
    found["q_value"] = np.nan
    if known.any():
        found.loc[known, "q_value"] = false_discovery_control(found.loc[known, "p_value"].to_numpy(float))
    found["verdict"] = np.select([~known, found["q_value"] <= fdr], ["insufficient", "related"], "none")
    return found


def _test_knobs(means: "pd.DataFrame", knobs: Sequence[str], response: str) -> list[dict[str, Any]]:
    """Return the test of each knob; without figures where the response does not vary or configurations are too few."""
    columns = [_contrasts(Settings.from_frame(means, [knob]).codes[:, 0]) for knob in knobs] if len(means) else []
    about = [{"knob": knob, "response": response, "runs": len(means)} for knob in knobs]
    values = means[response].to_numpy(float)
    widest = max((one.shape[1] for one in columns), default=0)
    if len(means) <= LEAST_DEGREES + widest:
        return [{**row, "explained_share": None, "p_value": None} for row in about]
    if np.ptp(values) == 0:  # it is always the same, whatever the knobs: nothing to explain
        return [{**row, "explained_share": 0.0, "p_value": 1.0} for row in about]
    scores = _normal_scores(values)
    inside: list[int] = []
    while True:
        tests = [_test(scores, columns, inside, index) for index in range(len(knobs))]
        best = min((i for i in range(len(knobs)) if i not in inside), key=lambda i: tests[i][1], default=None)
        used = 1 + sum(columns[i].shape[1] for i in [*inside, *([] if best is None else [best])])
        if best is None or tests[best][1] > SIGNIFICANCE / len(knobs) or len(means) - used < LEAST_DEGREES:
            break
        inside.append(best)
    return [{**row, "explained_share": share, "p_value": p} for row, (share, p) in zip(about, tests, strict=True)]


def _normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the ranks (Blom 1958), ties sharing the mean rank; mean 0."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    scores = ndtri((rankdata(values) - 0.375) / (len(values) + 0.25))
    return np.asarray(scores - scores.mean())


def _contrasts(codes: Any) -> Floats:
    """Return dummy columns for all but one of the levels that occur, shape (rows, levels - 1)."""
    seen = np.unique(codes)
    return np.asarray((codes[:, None] == seen[1:]).astype(float))


def _test(scores: Floats, columns: Sequence[Floats], inside: Sequence[int], knob: int) -> tuple[float, float]:
    """Return explained share and p of one knob, beside the knobs inside the model."""
    from scipy.special import fdtrc

    others = [columns[i] for i in inside if i != knob]
    base, base_rank = _residual(scores, others)
    full, full_rank = _residual(scores, [*others, columns[knob]])
    degrees, left = full_rank - base_rank, len(scores) - full_rank
    if degrees == 0:
        return 0.0, 1.0
    share = (base - full) / float(scores @ scores)
    if full <= 1e-12 * base:
        return share, 0.0
    return share, float(fdtrc(degrees, left, (base - full) / degrees / (full / left)))


def _residual(scores: Floats, columns: Sequence[Floats]) -> tuple[float, int]:
    """Return the residual sum of squares and the rank of a model with an intercept."""
    matrix = np.column_stack([np.ones(len(scores)), *columns])
    solution, _, rank, _ = np.linalg.lstsq(matrix, scores, rcond=None)
    left = scores - matrix @ solution
    return float(left @ left), int(rank)


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
    found = sorted(knob for knob in judged if verdicts[knob])
    return Comparison(found, sorted(knob for knob in judged if marks[knob]), len(judged))
