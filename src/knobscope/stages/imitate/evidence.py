"""The runs behind a finding, and the I/O pattern that they had on the device."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from knobscope.stages.detect import find_runs_behind
from knobscope.stages.imitate.pattern import Pattern

if TYPE_CHECKING:
    import duckdb

_PROFILE = """
SELECT op, sum(requests), sum(sequential_requests), sum(fua) FROM io_profile
WHERE run_id IN (SELECT unnest($runs::VARCHAR[])) GROUP BY op
"""

_SIZES = """
SELECT op, bytes, sum(requests) FROM io_sizes
WHERE run_id IN (SELECT unnest($runs::VARCHAR[])) AND bytes > 0 AND op IN ('read', 'write') GROUP BY ALL
"""

_OPERATIONS = "SELECT sum(operations) FROM runs WHERE run_id IN (SELECT unnest($runs::VARCHAR[]))"

#: Mean over the time in which the device had anything to do.
_DEPTH = """
SELECT sum(depth * time_ns::DOUBLE) / sum(time_ns) FROM queue_depth
WHERE run_id IN (SELECT unnest($runs::VARCHAR[])) AND queue = -1 AND depth > 0
"""


@dataclass(frozen=True)
class Side:
    """One of the two configurations that a finding compares, with its runs."""

    name: str
    runs: list[str]
    watched_runs: frozenset[str]

    @property
    def watched(self) -> list[str]:
        """Its runs that BPF watched without losing events: sizes and depths are whole only there."""
        return [run for run in self.runs if run in self.watched_runs]


def name_value(finding: Mapping[str, Any]) -> str:
    """Return the configuration that a finding speaks of, in words."""
    return f"{finding['knob']} = {finding['value']}" if finding["knob"] is not None else "the default configuration"


def name_reference(finding: Mapping[str, Any]) -> str:
    """Return the configuration that a finding's value is compared with, in words."""
    beside_values = json.loads(finding.get("evidence") or "{}").get("beside") or {}
    beside = " and ".join(f"{knob} = {value}" for knob, value in beside_values.items())
    return f"the default with {beside}" if beside else "the default configuration"


def find_sides(connection: "duckdb.DuckDBPyConnection", finding: Mapping[str, Any]) -> tuple[Side, Side]:
    """Return the slower side of a finding, whose I/O is to blame, and the faster one.

    The rules say in the evidence which one is slower (`slower`: value | baseline). A finding about the default
    configuration itself has nothing on its other side.
    """
    runs = find_runs_behind(connection, finding)
    value = Side(name_value(finding), runs.value, runs.watched)
    default = Side(name_reference(finding), runs.default, runs.watched)
    if finding["knob"] is None:
        return default, Side("", [], runs.watched)
    slower = json.loads(finding.get("evidence") or "{}").get("slower", "value")
    return (default, value) if slower == "baseline" else (value, default)


def find_preferred_bytes(connection: "duckdb.DuckDBPyConnection", device: str) -> int | None:
    """Return the preferred write size of a device, None if it was not characterised; a page where it prefers none."""
    row = connection.execute(
        "SELECT coalesce(preferred_write_bytes, 4096) FROM device_profile WHERE device = ?", [device]
    ).fetchone()
    return row[0] if row is not None else None


def find_clients(connection: "duckdb.DuckDBPyConnection", finding: Mapping[str, Any]) -> int | None:
    """Return how many clients the workload of a finding has, None where nobody knows or its settings differ in that."""
    beside_values = json.loads(finding.get("evidence") or "{}").get("beside") or {}
    if "workload.threads" in (finding["knob"], *beside_values):
        return None
    case = [finding["dbms"], finding["device"], finding["workload"]]
    row = connection.execute("SELECT threads FROM cases WHERE (dbms, device, workload) = (?, ?, ?)", case).fetchone()
    return row[0] if row is not None else None


def read_pattern(connection: "duckdb.DuckDBPyConnection", side: Side) -> Pattern | None:
    """Return the I/O pattern of a side's runs taken together, or None where BPF watched none of them without losses."""
    watched = {"runs": side.watched}
    sizes: dict[str, dict[int, int]] = {"read": {}, "write": {}}
    for op, size, requests in connection.execute(_SIZES, watched).fetchall():
        sizes[op][int(size)] = int(requests)
    (depth,) = connection.execute(_DEPTH, watched).fetchone() or (None,)
    profile = {row[0]: row[1:] for row in connection.execute(_PROFILE, watched).fetchall()}
    if depth is None or not (sizes["read"] or sizes["write"]):
        return None
    (operations,) = connection.execute(_OPERATIONS, watched).fetchone() or (None,)
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
        operations=float(operations or 0),
    )


def _random_share(counts: tuple[Any, ...]) -> float:
    return 1 - (counts[1] or 0) / counts[0] if counts[0] else 1.0
