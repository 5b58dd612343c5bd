"""The runs behind a finding, and the I/O pattern that they had on the device."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from knobscope.confirm.pattern import Pattern

if TYPE_CHECKING:
    import duckdb

__all__ = ["Side", "find_preferred_bytes", "find_runs", "find_sentinels", "find_sides", "name_value", "read_pattern"]

_CASE = "status = 'ok' AND dbms = $dbms AND device = $device AND workload = $workload"

_SENTINELS = f"SELECT run_id FROM runs WHERE {_CASE} AND is_sentinel ORDER BY run_id"  # noqa: S608

#: Runs whose configuration has the knob at the value, and no other knob away from where a sentinel has it.
_RUNS = f"""
WITH baseline AS (
    SELECT DISTINCT knob, value FROM knob_values
    WHERE config_id IN (SELECT config_id FROM runs WHERE {_CASE} AND is_sentinel)
), others AS (
    SELECT DISTINCT v.config_id FROM knob_values v
    ANTI JOIN baseline b ON v.knob = b.knob AND v.value = b.value
    WHERE v.knob <> $knob
)
SELECT run_id FROM runs
WHERE {_CASE}
    AND config_id IN (SELECT config_id FROM knob_values WHERE knob = $knob AND value = $value)
    AND config_id NOT IN (SELECT config_id FROM others)
ORDER BY run_id
"""  # noqa: S608

#: Sizes and depths are whole only where BPF watched and lost nothing.
_WATCHED = """
SELECT run_id FROM runs
WHERE run_id IN (SELECT unnest($runs::VARCHAR[])) AND monitor = 'bpf' AND coalesce(lost_events, 0) = 0
"""

_PROFILE = """
SELECT op, sum(requests), sum(sequential_requests), sum(fua) FROM io_profile
WHERE run_id IN (SELECT unnest($runs::VARCHAR[])) GROUP BY op
"""

_SIZES = """
SELECT op, bytes, sum(requests) FROM io_sizes
WHERE run_id IN (SELECT unnest($runs::VARCHAR[])) AND bytes > 0 AND op IN ('read', 'write') GROUP BY ALL
"""

#: Mean over the time in which the device had anything to do.
_DEPTH = """
SELECT sum(depth * time_ns::DOUBLE) / sum(time_ns) FROM queue_depth
WHERE run_id IN (SELECT unnest($runs::VARCHAR[])) AND queue = -1 AND depth > 0
"""


def find_sentinels(connection: "duckdb.DuckDBPyConnection", finding: Mapping[str, Any]) -> list[str]:
    """Return the runs of the default configuration in the finding's case."""
    case = {name: finding[name] for name in ("dbms", "device", "workload")}
    return [row[0] for row in connection.execute(_SENTINELS, case).fetchall()]


def find_runs(connection: "duckdb.DuckDBPyConnection", finding: Mapping[str, Any]) -> list[str]:
    """Return the runs that a finding speaks of: its knob at its value, all others as in the sentinel.

    A finding without a knob speaks of the default configuration.
    """
    if finding["knob"] is None:
        return find_sentinels(connection, finding)
    asked = {name: finding[name] for name in ("dbms", "device", "workload", "knob", "value")}
    return [row[0] for row in connection.execute(_RUNS, asked).fetchall()]


@dataclass(frozen=True)
class Side:
    """One of the two configurations that a finding compares, with its runs."""

    name: str
    runs: list[str]


def name_value(finding: Mapping[str, Any]) -> str:
    """Return the configuration that a finding speaks of, in words."""
    return f"{finding['knob']}={finding['value']}" if finding["knob"] is not None else "the default configuration"


def find_sides(connection: "duckdb.DuckDBPyConnection", finding: Mapping[str, Any]) -> tuple[Side, Side]:
    """Return the slower side of a finding, whose I/O is to blame, and the faster one.

    The rules say in the evidence which one is slower (`slower`: value | baseline). A finding about the default
    configuration itself has nothing on its other side.
    """
    value = Side(name_value(finding), find_runs(connection, finding))
    default = Side("the default configuration", find_sentinels(connection, finding))
    if finding["knob"] is None:
        return default, Side("", [])
    slower = json.loads(finding.get("evidence") or "{}").get("slower", "value")
    return (default, value) if slower == "baseline" else (value, default)


def find_preferred_bytes(connection: "duckdb.DuckDBPyConnection", device: str) -> int | None:
    """Return the preferred write size of a device, if it was characterised."""
    row = connection.execute("SELECT preferred_write_bytes FROM device_profile WHERE device = ?", [device]).fetchone()
    return row[0] if row is not None else None


def read_pattern(connection: "duckdb.DuckDBPyConnection", runs: list[str]) -> Pattern | None:
    """Return the I/O pattern of some runs taken together, or None where BPF watched none of them without losses."""
    watched = {"runs": [row[0] for row in connection.execute(_WATCHED, {"runs": runs}).fetchall()]}
    sizes: dict[str, dict[int, int]] = {"read": {}, "write": {}}
    for op, size, requests in connection.execute(_SIZES, watched).fetchall():
        sizes[op][int(size)] = int(requests)
    (depth,) = connection.execute(_DEPTH, watched).fetchone() or (None,)
    profile = {row[0]: row[1:] for row in connection.execute(_PROFILE, watched).fetchall()}
    if depth is None or not (sizes["read"] or sizes["write"]):
        return None
    reads, writes, flushes = (profile.get(op, (0, 0, 0)) for op in ("read", "write", "flush"))
    return Pattern(
        reads=int(reads[0] or 0),
        writes=int(writes[0] or 0),
        read_sizes=sizes["read"],
        write_sizes=sizes["write"],
        read_random=_random_share(reads),
        write_random=_random_share(writes),
        flushes=int(flushes[0] or 0) + int(writes[2] or 0),  # a forced write (FUA) is a write and its flush in one
        depth=float(depth),
    )


def _random_share(counts: tuple[Any, ...]) -> float:
    return 1 - (counts[1] or 0) / counts[0] if counts[0] else 1.0
