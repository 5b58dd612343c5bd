"""Which runs of a sweep may be compared: blocks that drifted, blocks that were resumed, sentinels that failed.

A group is what one session measured of one block; each has a level of its own in every model, so that no comparison
crosses groups. Drift is looked for in throughput, with all runs of a group and not only its few sentinels: the order of
runs is random, so that configurations and position hardly overlap. Then

- a group without a successful sentinel is dropped: there is nothing to compare with;
- a group in which configuration and order go together (the default always first, repeats directly after each other) is
  dropped: no drift could be told from an effect;
- a group whose throughput moves along a straight line gets that line as a term of the model (treatment `position`);
- a group that bends away from its line is dropped: no term of ours describes what happened to it.

A group on another level than the others (several times faster or slower throughout) stays: an effect comes from within
its group, and a ratio there is as good as elsewhere. It is marked, because speeds themselves must not be compared with
it: what compares them across groups leaves it out (view `unusual_groups`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from knobscope.statistics.arrays import Bools, Floats, Ints, average_groups
from knobscope.statistics.level_shifts import judge_levels
from knobscope.statistics.regression import (
    BlockDesign,
    Nuisance,
    number_levels,
    t_probability,
)

if TYPE_CHECKING:
    import pandas as pd

#: Why a group is dropped of which nobody can say whether it drifted: its reason begins like this.
CONFOUNDED = "configurations and their order go together"


#: A drift must be this improbable as noise, and larger than the smallest effect worth a finding.
_DRIFT_P = 0.01
#: Where configurations leave less than both of a group's positions (sum of squares, share of it), they go together.
_LEAST_LEFT = 0.25
_LEAST_SHARE_LEFT = 0.1
#: Fewer residual degrees of freedom cannot tell drift from noise.
_LEAST_DEGREES = 3
#: Compared with the largest, a sum of squares smaller than this is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Groups:
    """Runs of a case with their group: `code` (runs,), `position` (runs,) from -0.5 (first run of the group) to 0.5.

    `drifts` and `dropped` have an entry per group.
    """

    code: Ints
    position: Floats
    is_sentinel: Bools
    drifts: Bools
    dropped: Bools

    def comparable(self, usable: Bools) -> Bools:
        """Return which usable runs can be compared: their group has a usable sentinel, or two where it drifts."""
        sentinels = np.bincount(self.code[usable & self.is_sentinel], minlength=len(self.drifts))
        whole = ~self.dropped & (sentinels >= np.where(self.drifts, 2, 1))
        comparable: Bools = usable & whole[self.code]
        return comparable

    def nuisance(self, rows: Bools, lines: Bools | None = None, bends: Bools | None = None) -> Nuisance:
        """Return nuisance columns of the rows: a level per group but the first, lines and bends of marked groups."""
        code, position = self.code[rows], self.position[rows]
        parts: list[tuple[Ints, Floats | int, int]] = [number_levels(code)]
        for marked, values in ((self.drifts if lines is None else lines, position), (bends, 4 * position**2)):
            if marked is not None:
                number = np.where(marked, np.cumsum(marked) - 1, -1)
                parts.append((number[code], values, int(marked.sum())))
        return Nuisance.join(parts)


def judge_blocks(runs: "pd.DataFrame", min_effect: float) -> tuple[Groups, "pd.DataFrame"]:
    """Return the groups of one case, and its rows of table `blocks`.

    `runs` has a row per measurement (`knobscope.stages.detect.units`).
    """
    keys = runs.groupby(["block_id", "session"], dropna=False, sort=True)
    code = keys.ngroup().to_numpy(np.int64)
    ok = np.isfinite(runs["log_throughput"].to_numpy(float))
    is_sentinel = runs["is_sentinel"].to_numpy(bool)
    count = keys.ngroups
    position = _scale_positions(runs["position"].to_numpy(float), code)
    sentinels = np.bincount(code[ok & is_sentinel], minlength=count)
    bare = Groups(code, position, is_sentinel, np.zeros(count, bool), sentinels == 0)
    drift, drift_p, bend, bend_p = _find_drift(bare, runs, sentinels, smallest := np.log1p(min_effect))
    bent = _is_clear(bend, bend_p, smallest)
    drifts = _is_clear(drift, drift_p, smallest) & ~bent
    confounded = _find_confounded(bare, runs)
    groups = Groups(code, position, is_sentinel, drifts & ~confounded, bent | confounded | (sentinels == 0))
    setting = runs["setting"].to_numpy(np.int64)
    response = np.where(groups.dropped[code], np.nan, runs["log_throughput"].to_numpy(float))
    level, other_level = judge_levels(response, setting, code, count)
    table = keys[["block_id", "session", "dbms", "device", "workload"]].first()
    table = table.reset_index(drop=True).assign(
        runs=_sum_runs(runs, code, ok, count),
        sentinels=_sum_runs(runs, code, ok & is_sentinel, count),
        sentinel_change=_sentinel_changes(runs[ok & is_sentinel], code[ok & is_sentinel], count),
        drift=drift,
        drift_p=drift_p,
        bend=bend,
        bend_p=bend_p,
        treatment=np.select([groups.dropped, drifts], ["dropped", "position"], "none"),
        reason=[_reason(*values) for values in zip(sentinels, confounded, bent, drift, bend, drift_p, strict=True)],
        level=level,
        other_level=other_level,
    )
    return groups, table.assign(sessions=table.groupby("block_id")["session"].transform("size"))


def _scale_positions(position: Floats, code: Ints) -> Floats:
    low = np.full(code.max(initial=-1) + 1, np.inf)
    high = np.full(len(low), -np.inf)
    np.minimum.at(low, code, position)
    np.maximum.at(high, code, position)
    return np.asarray((position - low[code]) / np.maximum(high - low, 1)[code] - 0.5)


def _sum_runs(runs: "pd.DataFrame", code: Ints, rows: Bools, count: int) -> Ints:
    return np.bincount(code[rows], runs["runs"].to_numpy(float)[rows], minlength=count).astype(np.int64)


def _find_confounded(groups: Groups, runs: "pd.DataFrame") -> Bools:
    """Return in which groups hardly anything of the position is left apart from the configurations.

    What is left, a sum of squares in units of the group's length, says how well a drift could be seen: its standard
    error is the noise divided by the root of it. Other groups help, where they have another order.
    """
    setting = runs["setting"].to_numpy(np.int64)
    rows = groups.comparable(np.isfinite(runs["log_throughput"].to_numpy(float)))
    count = len(groups.drifts)
    if not rows.any():
        return np.zeros(count, bool)
    columns = groups.nuisance(rows, np.ones(count, bool))
    gram = BlockDesign.of(setting[rows], columns, int(setting.max()) + 1).gram
    whole = np.bincount(groups.code[rows], groups.position[rows] ** 2, minlength=count)
    unexplained = _unexplained(gram)[columns.count - count :]
    confounded: Bools = (unexplained < _LEAST_LEFT) & (unexplained < _LEAST_SHARE_LEFT * whole) & (whole > 0)
    return confounded


def _unexplained(gram: Floats) -> Floats:
    """Return the sum of squares of each column that the others leave, from the cross products of all.

    It is the reciprocal of the inverse's diagonal, and 0 for a column that is a sum of others.
    """
    sizes, vectors = np.linalg.eigh(gram)
    is_null = sizes <= _ROUNDING * sizes.max(initial=0)
    depends = (vectors[:, is_null] ** 2).sum(axis=1) > _ROUNDING
    inverse = (vectors[:, ~is_null] ** 2 / sizes[~is_null]).sum(axis=1)
    return np.where(depends, 0.0, 1 / np.where(depends, 1.0, inverse))


def _find_drift(
    groups: Groups, runs: "pd.DataFrame", sentinels: Ints, smallest: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return drift, its p value, bend and its p value per group; NaN where there are too few runs to tell."""
    lines = sentinels >= 2
    drift, drift_p = _judge_terms(groups, runs, lines, None, lines)
    moving = _is_clear(drift, drift_p, smallest)
    return drift, drift_p, *_judge_terms(groups, runs, lines, sentinels >= 3, moving)


def _is_clear(change: Floats, p_value: Floats, smallest: float) -> Bools:
    clear: Bools = (p_value < _DRIFT_P) & (np.abs(change) > smallest)
    return clear


def _judge_terms(
    groups: Groups, runs: "pd.DataFrame", lines: Bools, bends: Bools | None, moving: Bools
) -> tuple[Floats, Floats]:
    """Return value and p value of a fit's last terms, bends or else lines, per group.

    Three sentinels are nearly fitted by their level, line and bend, so that what a fit leaves is the noise of the other
    configurations. If the default is noisier than they, its part of a term's error comes from the sentinels of the
    other groups instead, around their levels and the lines of those that are `moving`.
    """
    marked = lines if bends is None else bends
    values, p_values = np.full((2, len(marked)), np.nan)
    response, setting = runs["log_throughput"].to_numpy(float), runs["setting"].to_numpy(np.int64)
    rows = groups.comparable(np.isfinite(response))
    columns = groups.nuisance(rows, lines, bends)
    design = BlockDesign.of(setting[rows], columns, int(setting.max(initial=0)) + 1)
    if not marked.any() or design.degrees < _LEAST_DEGREES:
        return values, p_values
    fit = design.fit(response[rows])
    last = slice(columns.count - int(marked.sum()), None)
    of_sentinels = groups.nuisance(rows & groups.is_sentinel, lines, bends)
    gram = BlockDesign.of(np.zeros(len(of_sentinels.values), np.int64), of_sentinels, 1).gram
    weights = design.inverse[last]
    variance, sentinel_part = np.diag(design.inverse)[last], ((weights @ gram) * weights).sum(axis=1)
    of_others, others = (part[marked] for part in _sentinel_variances(groups, response, rows, moving))
    excess = np.maximum(of_others - fit.noise**2, 0)
    square = fit.noise**2 * variance + excess * sentinel_part
    degrees = np.full(len(square), float(fit.degrees))
    if bends is not None:  # a line costs little where there is none, a bend its block: Welch and Satterthwaite's
        own = (of_others * sentinel_part) ** 2 / np.maximum(others, 1)
        rest = (fit.noise**2 * (variance - sentinel_part)) ** 2 / fit.degrees
        joint = np.divide(square**2, own + rest, out=degrees.copy(), where=excess > 0)
        degrees = np.minimum(joint, degrees)
    values[marked] = fit.nuisance[last]
    p_values[marked] = t_probability(values[marked], np.sqrt(square), degrees)
    return values, p_values


def _sentinel_variances(groups: Groups, response: Floats, rows: Bools, moving: Bools) -> tuple[Floats, Floats]:
    """Return variance and degrees of freedom of sentinels per group, from those of all others; 0 if unknown."""
    rows = rows & groups.is_sentinel
    code, count = groups.code[rows], len(moving)
    x, y = (values - average_groups(values, code) for values in (groups.position[rows], response[rows]))
    xx, xy, yy = (np.bincount(code, product, minlength=count) for product in (x * x, x * y, y * y))
    has_line = moving & (xx > 0)
    squares = yy - np.divide(xy**2, xx, out=np.zeros(count), where=has_line)
    degrees = np.maximum(np.bincount(code, minlength=count) - 1 - has_line, 0)
    others = degrees.sum() - degrees
    return np.divide(squares.sum() - squares, others, out=np.zeros(count), where=others > 0), others


def _sentinel_changes(sentinels: "pd.DataFrame", code: Ints, count: int) -> Floats:
    ordered = sentinels.assign(group=code).sort_values("position").groupby("group")["log_throughput"]
    return np.asarray((ordered.last() - ordered.first()).reindex(range(count)).to_numpy(float))


def _reason(sentinels: int, confounded: bool, bent: bool, drift: float, bend: float, drift_p: float) -> str:
    if sentinels == 0:
        return "no successful run of the default configuration in the same session to compare with"
    if confounded:
        return f"{CONFOUNDED}, so that drift cannot be distinguished from an effect"
    if bent:
        return f"throughput bends by {100 * np.expm1(bend):+.0f} % between middle and ends, more than noise explains"
    if np.isnan(drift_p):
        return "too few runs to tell drift from noise"
    return f"throughput moves by {100 * np.expm1(drift):+.1f} % from first to last run (p = {drift_p:.2g})"
