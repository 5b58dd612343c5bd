"""The runs behind a finding, as view `runs_behind` defines them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

_QUERY = """
    SELECT side, run_id, watched FROM runs_behind
    WHERE dbms = $dbms AND device = $device AND workload = $workload
        AND knob IS NOT DISTINCT FROM $knob AND value IS NOT DISTINCT FROM $value
    ORDER BY run_id
"""
_BUSY_SHARE = """
    WITH asked AS (
        SELECT unnest($runs::VARCHAR[]) AS run_id
    ), devices AS (
        SELECT run_id, device, max(busy_share) AS busy_share FROM layout_io SEMI JOIN asked USING (run_id) GROUP BY ALL
    ), layouts AS (
        SELECT run_id, least(sum(busy_share), 1) AS busy_share FROM devices GROUP BY run_id
    )
    SELECT median(coalesce(l.busy_share, d.busy_share))
    FROM asked
    LEFT JOIN run_depths d USING (run_id)
    LEFT JOIN layouts l USING (run_id)
"""


@dataclass(frozen=True)
class RunsBehind:
    """Ids of the runs behind a finding: with its value (none where it has no knob), and of the default configuration.

    `watched` are those among them whose facts of the block layer are whole.
    """

    value: list[str]
    default: list[str]
    watched: frozenset[str]


def find_runs_behind(connection: "duckdb.DuckDBPyConnection", finding: Mapping[str, Any]) -> RunsBehind:
    """Return the runs behind a finding, which is told by its case, knob and value."""
    parameters = {name: finding[name] for name in ("dbms", "device", "workload", "knob", "value")}
    rows = connection.execute(_QUERY, parameters).fetchall()
    sides = {side: [run for where, run, _ in rows if where == side] for side in ("value", "default")}
    return RunsBehind(sides["value"], sides["default"], frozenset(run for _, run, watched in rows if watched))


def find_busy_share(connection: "duckdb.DuckDBPyConnection", runs: Sequence[str]) -> float | None:
    """Return for which share of the time the device was busy in the median of runs; None where no run says.

    Of a layout: for which share any of its devices was, at most.
    """
    (share,) = connection.execute(_BUSY_SHARE, {"runs": list(runs)}).fetchone() or (None,)
    return None if share is None else float(share)
