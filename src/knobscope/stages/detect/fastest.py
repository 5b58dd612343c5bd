"""Picks the configuration of each case that was fastest, and the fastest without a risk to committed data.

Of many noisy runs the best one owes a part of its speed to luck, so what is picked here has no figure: stage `explain`
measures it again, against the default, in new pairs of runs. A configuration is reduced to its changes of knobs that
stand out from the noise. All others return to their defaults, which is what somebody who copies it needs.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from knobscope.specs import Case, StudySpecs, Value, is_factor, value_text
from knobscope.stages.plan import DesignSpace, case_space
from knobscope.tables import FastestRow

if TYPE_CHECKING:
    import duckdb

__all__ = ["pick_fastest"]

Changes = tuple[tuple[str, Value], ...]

_NAMES = "(dbms, device, workload) = ($dbms, $device, $workload)"
_STANDING_OUT = f"""
    SELECT knob FROM importance WHERE above_noise AND {_NAMES}
    UNION
    SELECT knob FROM effects
    WHERE metric = 'throughput_ops' AND {_NAMES} AND q_value <= $fdr AND abs(exp(estimate) - 1) >= $min_effect
"""  # noqa: S608
_MEASURED = f"""
    WITH usable AS (
        SELECT block_id, config_id, is_sentinel, ln(throughput_ops) AS response
        FROM runs ANTI JOIN set_aside_runs USING (run_id)
        WHERE status = 'ok' AND throughput_ops > 0 AND {_NAMES}
    ), defaults AS (
        SELECT block_id, avg(response) AS default_response FROM usable WHERE is_sentinel GROUP BY block_id
    )
    SELECT configuration, list(response - default_response)
    FROM usable JOIN defaults USING (block_id)
    JOIN (SELECT DISTINCT ON (block_id, config_id) * FROM plan) USING (block_id, config_id)
    GROUP BY configuration
"""  # noqa: S608


def pick_fastest(connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> Iterator[FastestRow]:
    """Yield for each case the fastest configuration without a risk, and that at any risk where it is another one."""
    for case in specs.cases:
        names = {"dbms": case.dbms, "device": case.device, "workload": case.workload}
        space, changed = case_space(specs, case), _list_changed(connection, specs, case, names)
        order = _rank(changed)
        safe = next((option for option in order if not _risks(space, option) and _is_possible(space, option)), None)
        fastest = next((option for option in order if _is_possible(space, option)), None)
        picked = [("none", safe)] if safe == fastest else [("none", safe), ("any", fastest)]
        for risk, changes in picked:
            if changes is not None:
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
    thresholds, default = specs.study.thresholds, case_space(specs, case).default
    parameters = {**names, "fdr": thresholds.fdr, "min_effect": thresholds.min_effect}
    knobs = specs.dbms[case.dbms].knobs
    standing_out = [
        knob
        for (knob,) in connection.execute(_STANDING_OUT, parameters).fetchall()
        if knob in default and not knobs[knob].control
    ]
    ratios: dict[Changes, list[float]] = defaultdict(list)
    factors = {name for name in default if is_factor(name)}
    for text, measured in connection.execute(_MEASURED, names).fetchall():
        configuration: dict[str, Any] = json.loads(text)
        varied = factors.union(name for name in configuration.keys() - default.keys() if is_factor(name))
        if all(configuration.get(name) == default.get(name) for name in varied):
            changed = ((name, configuration[name]) for name in sorted(standing_out) if name in configuration)
            ratios[tuple((name, value) for name, value in changed if value != default[name])] += measured
    return ratios


def _rank(changed: Mapping[Changes, Sequence[float]]) -> list[Changes]:
    """Return changes that made it faster, the best first: by their mean less its standard error.

    The standard deviation of a run is the same for all, since most of them were measured once.
    """
    squares = [(ratio - fmean(ratios)) ** 2 for ratios in changed.values() for ratio in ratios]
    degrees = len(squares) - len(changed)
    noise = math.sqrt(math.fsum(squares) / degrees) if degrees else 0.0
    least = {changes: fmean(ratios) - noise / math.sqrt(len(ratios)) for changes, ratios in changed.items()}
    return sorted(
        (changes for changes in changed if changes and least[changes] > 0),
        key=lambda changes: (-least[changes], changes.__repr__()),
    )


def _risks(space: DesignSpace, changes: Changes) -> bool:
    return any(space.dbms.knobs[name].risks(value_text(value)) for name, value in changes)


def _is_possible(space: DesignSpace, changes: Changes) -> bool:
    """Whether the changes are allowed without those of knobs that do not stand out."""
    return space.allows({**space.default, **dict(changes)})
