"""Does what the default configuration says of two studies hold for others? Configurations that both of them measured.

Hui et al. (SIGMOD 2024, figures 1 and 2) count settings at which two systems compare otherwise than at the one that was
looked at. Here these are the other configurations that both studies measured, as screening of the same knobs does.
A run is told as a ratio to the default configuration of its own block, so that blocks of different speed do not count
as a difference; how much single runs differ is known from the runs of the default configuration in the same block.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from knobscope.commands.compare.baselines import Measured, usable_runs
from knobscope.commands.compare.matching import CasePair
from knobscope.commands.compare.reading import StudyTables
from knobscope.statistics.arrays import Floats
from knobscope.statistics.independent import join_errors
from knobscope.statistics.regression import t_probability
from knobscope.study_data.study import Row

#: Of a hundred configurations without a difference one is called clear by chance.
_CERTAIN = 0.01
#: With fewer degrees of freedom nothing is known of the noise of a run.
_LEAST_DEGREES = 4


@dataclass(frozen=True)
class OtherConfigurations:
    """Configurations other than the default that both studies measured, by what throughput in B is against A.

    `most_against` has the configuration that most clearly contradicts the default one, with its natural-log ratio, B to
    A; None where none does. `reason` says why there is nothing to count.
    """

    faster: int = 0
    slower: int = 0
    unclear: int = 0
    most_against: tuple[str, float] | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Side:
    """Natural-log ratios to the default configuration of the block, by configuration, and the noise of one."""

    ratios: dict[str, list[float]]
    noise: float
    degrees: int


def compare_configurations(a: StudyTables, b: StudyTables, pair: CasePair, default: Measured) -> OtherConfigurations:
    """Count how the other configurations compare; `default` is the comparison of throughput of the default one."""
    if default.estimate is None or default.low is None or default.a.error is None or default.b.error is None:
        return OtherConfigurations(reason=default.reason)
    sides = [_relate(usable_runs(study, case)) for study, case in ((a, pair.a), (b, pair.b))]
    left, right = sides
    shared = sorted(left.ratios.keys() & right.ratios.keys())
    if not shared:
        return OtherConfigurations(reason="no other configuration was measured in both studies")
    if min(left.degrees, right.degrees) < _LEAST_DEGREES:
        return OtherConfigurations(reason="too few runs of the default configuration tell the noise of a single run")
    estimates = np.array([default.estimate + fmean(right.ratios[name]) - fmean(left.ratios[name]) for name in shared])
    levels = [(level.error, level.blocks - 1) for level in (default.a, default.b)]
    parts = [([error] * len(shared), degrees) for error, degrees in levels]
    parts += [([side.noise / math.sqrt(len(side.ratios[name])) for name in shared], side.degrees) for side in sides]
    errors = np.array([errors for errors, _ in parts], float)
    error, joint = join_errors(errors, np.array([[degrees] for _, degrees in parts], float))
    clear = t_probability(estimates, error, joint) <= _CERTAIN
    return OtherConfigurations(
        faster=int((clear & (estimates > 0)).sum()),
        slower=int((clear & (estimates < 0)).sum()),
        unclear=int((~clear).sum()),
        most_against=_most_against(shared, np.where(clear, estimates, 0.0), default),
    )


def _most_against(shared: Sequence[str], estimates: Floats, default: Measured) -> tuple[str, float] | None:
    """Return the configuration that contradicts the default most; None where none does, or the default is unclear."""
    if default.estimate is None or default.low is None or default.high is None or default.low <= 0 <= default.high:
        return None
    against = estimates * -math.copysign(1, default.estimate)
    worst = int(against.argmax())
    return (shared[worst], float(estimates[worst])) if against[worst] > 0 else None


def _relate(runs: Sequence[Row]) -> _Side:
    """Return the ratios of runs to the default configuration of their blocks; blocks without it tell nothing."""
    blocks: dict[tuple[str, str], list[tuple[Row, float]]] = defaultdict(list)
    for run in runs:
        if run["throughput_ops"] is not None and run["throughput_ops"] > 0:
            blocks[run["block_id"], run["session"]].append((run, math.log(run["throughput_ops"])))
    ratios: dict[str, list[float]] = defaultdict(list)
    squares, degrees, weights = 0.0, 0, []
    for members in blocks.values():
        usual = {run["run_id"]: log for run, log in members if run["is_sentinel"]}
        if not usual:
            continue
        center = fmean(usual.values())
        squares += sum((log - center) ** 2 for log in usual.values())
        degrees += len(usual) - 1
        default_ids = {run["config_id"] for run, _ in members if run["is_sentinel"]}
        for run, log in members:
            if run["config_id"] not in default_ids:
                ratios[run["config_id"]].append(log - center)
                weights.append(1 + 1 / len(usual))  # the default's own mean is not known exactly either
    noise = math.sqrt(squares / degrees * fmean(weights)) if degrees and weights else math.nan
    return _Side(dict(ratios), noise, degrees)
