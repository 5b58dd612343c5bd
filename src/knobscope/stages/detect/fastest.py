"""Picks the configuration of each case that was fastest, and the fastest without a risk to committed data.

Of many noisy runs the best one owes a part of its speed to luck, so what is picked here has no figure: `remeasure`
measures it again, against the default, in new pairs of runs. A configuration is reduced to its changes of knobs that
stand out from the noise, and of those that act only together with one of them. All others return to their defaults,
which is what somebody who copies it needs. Of several that are equally fast as far as the runs tell, the one that
changes least is picked.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from knobscope.specs import Case, StudySpecs, Value, is_factor, value_text
from knobscope.stages.detect.value_order import steps_from
from knobscope.stages.plan import DesignSpace, case_space
from knobscope.tables import FastestRow

if TYPE_CHECKING:
    import duckdb

Changes = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class _Option:
    """Changes of knobs, with their mean natural-log ratio to the default; `steps`: from the default's values."""

    changes: Changes
    mean: float
    error: float
    steps: int

    @property
    def least(self) -> float:
        return self.mean - self.error


_NAMES = "(dbms, device, workload) = ($dbms, $device, $workload)"
_STANDING_OUT = f"""
    SELECT knob FROM importance WHERE above_noise AND {_NAMES}
    UNION
    SELECT knob FROM effects
    WHERE metric = 'throughput_ops' AND {_NAMES} AND q_value <= $fdr AND abs(exp(estimate) - 1) >= $min_effect
"""  # noqa: S608
_MEASURED = f"""
    WITH usable AS (
        SELECT block_id, session, config_id, is_sentinel, ln(throughput_ops) AS response
        FROM runs ANTI JOIN set_aside_runs USING (run_id)
        WHERE status = 'ok' AND throughput_ops > 0 AND {_NAMES}
    ), defaults AS (
        -- A block that was resumed has several sessions, which may differ in speed.
        SELECT block_id, session, avg(response) AS default_response
        FROM usable WHERE is_sentinel GROUP BY block_id, session
    )
    SELECT configuration, list(response - default_response)
    FROM usable u
    JOIN defaults d ON d.block_id = u.block_id AND d.session IS NOT DISTINCT FROM u.session
    JOIN (SELECT DISTINCT ON (block_id, config_id) * FROM plan) p
        ON p.block_id = u.block_id AND p.config_id = u.config_id
    GROUP BY configuration
"""  # noqa: S608


def pick_fastest(connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> Iterator[FastestRow]:
    """Yield for each case the fastest configuration without a risk, and that at any risk where it is faster."""
    for case in specs.cases:
        names = {"dbms": case.dbms, "device": case.device, "workload": case.workload}
        space, changed = case_space(specs, case), _list_changed(connection, specs, case, names)
        options = [option for option in _list_options(space, changed) if _is_possible(space, option.changes)]
        least = math.log1p(specs.study.thresholds.min_effect)
        without_risk = [option for option in options if not _risks(space, dict(option.changes))]
        picked = [("none", option.changes) for option in _list_fastest(without_risk, least)[:1]]
        fastest = _list_fastest(options, least)
        if fastest and not any(option in without_risk for option in fastest):
            picked.append(("any", fastest[0].changes))
        for risk, changes in picked:
            whole = {**space.default, **dict(changes)}
            yield {
                "dbms": case.dbms,
                "device": case.device,
                "workload": case.workload,
                "risk": risk,
                "changes": json.dumps(dict(changes)),
                "configuration": json.dumps(whole, sort_keys=True),
                "runs": len(changed[changes]),
            }


def _list_changed(
    connection: "duckdb.DuckDBPyConnection", specs: StudySpecs, case: Case, names: Mapping[str, str]
) -> dict[Changes, list[float]]:
    """Return changes of knobs that stand out -> natural-log ratios of their runs to the default of the same block.

    Runs with another load or another kernel setting than the default's are no configurations of the DBMS.
    """
    thresholds, space = specs.study.thresholds, case_space(specs, case)
    default = space.default
    parameters = {**names, "fdr": thresholds.fdr, "min_effect": thresholds.min_effect}
    knobs = specs.dbms[case.dbms].knobs
    standing_out = [
        knob
        for (knob,) in connection.execute(_STANDING_OUT, parameters).fetchall()
        if knob in default and not knobs[knob].control
    ]
    woken = set(space.list_woken(set(standing_out))).difference(standing_out)
    ratios: dict[Changes, list[float]] = defaultdict(list)
    factors = {name for name in default if is_factor(name)}
    for text, measured in connection.execute(_MEASURED, names).fetchall():
        configuration: dict[str, Any] = json.loads(text)
        varied = factors.union(name for name in configuration.keys() - default.keys() if is_factor(name))
        if all(configuration.get(name) == default.get(name) for name in varied):
            kept = [*standing_out, *(name for name in woken if space.counts(name, configuration))]
            changed = ((name, configuration[name]) for name in sorted(kept) if name in configuration)
            ratios[tuple((name, value) for name, value in changed if value != default[name])] += measured
    return ratios


def _list_options(space: DesignSpace, changed: Mapping[Changes, Sequence[float]]) -> list[_Option]:
    """Return changes that made it faster.

    The standard deviation of a run is the same for all, since most of them were measured once.
    """
    squares = [(ratio - fmean(ratios)) ** 2 for ratios in changed.values() for ratio in ratios]
    degrees = len(squares) - len(changed)
    noise = math.sqrt(math.fsum(squares) / degrees) if degrees else 0.0
    distances = _measure_distances(space, changed)
    options = [
        _Option(changes, fmean(ratios), noise / math.sqrt(len(ratios)), sum(map(distances.__getitem__, changes)))
        for changes, ratios in changed.items()
        if changes
    ]
    return [option for option in options if option.least > 0]


def _measure_distances(space: DesignSpace, changed: Iterable[Changes]) -> dict[tuple[str, Value], int]:
    """Return knob and value -> steps from the default; a value without a position is one step away."""
    values: dict[str, dict[str, Value]] = defaultdict(dict)
    for changes in changed:
        for name, value in changes:
            values[name][value_text(value)] = value
    return {
        (name, by_text[text]): abs(step or 1)
        for name, by_text in values.items()
        for text, step in steps_from(space.dbms.knobs[name], value_text(space.default[name]), list(by_text)).items()
    }


def _list_fastest(options: Sequence[_Option], least: float) -> list[_Option]:
    """Return the best one by its mean less its standard error and all that are as fast, what changes least first.

    As fast is within the standard error of the difference (Breiman et al., Classification and Regression Trees, 1984,
    section 3.4.3), and within the least effect that matters.
    """
    if not options:
        return []
    best = max(options, key=lambda option: (option.least, repr(option.changes)))
    close = (
        option for option in options if best.mean - option.mean <= min(math.hypot(best.error, option.error), least)
    )
    return sorted(close, key=lambda option: (len(option.changes), option.steps, -option.least, repr(option.changes)))


def _risks(space: DesignSpace, changes: Mapping[str, Value]) -> bool:
    return bool(space.dbms.list_risks({**space.default, **changes}, changes))


def _is_possible(space: DesignSpace, changes: Changes) -> bool:
    """Whether the changes are allowed without those of knobs that do not stand out."""
    return space.allows({**space.default, **dict(changes)})
