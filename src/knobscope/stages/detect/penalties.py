"""What better I/O gains, by the time in which the device is busy.

If all that happens while no request is in flight takes as long as before, better I/O makes throughput at most
1 / (1 - share) times as high, for a device that is busy for that share of the time. Part of the rest may be spent on
I/O, too: the kernel wakes threads and hands requests over. A cause whose share is known by the time that clients wait
for it has its limit there, and is not limited again.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from knobscope.specs import Rule
from knobscope.stages.detect.evidence import find_busy_share, find_runs_behind
from knobscope.stages.detect.shares import find_share
from knobscope.tables.detection import ReturnedRow
from knobscope.text.formats import format_fold, format_share, loosen_units

if TYPE_CHECKING:
    import duckdb


def most_gain(busy_share: float, faster: float = math.inf) -> float:
    """Return how many times the throughput is at most when requests of a device take 1/`faster` of their time."""
    remaining = 1 - busy_share + busy_share / faster
    return 1 / remaining if remaining > 0 else math.inf


def limit_penalty(connection: "duckdb.DuckDBPyConnection", rule: Rule, row: "ReturnedRow") -> str:
    """Limit the penalty of a row that a rule returned, with its evidence; return a sentence that says so, or nothing.

    Where no run recorded how long the device was busy, there is no penalty.
    """
    if row["penalty"] is None or rule.about.penalty == "measured" or is_timed(row["evidence"]):
        return ""
    busy_share = find_busy_share(connection, _slower_runs(connection, row))
    if busy_share is None:
        row["penalty"] = None
        return " What that costs cannot be bounded: no run recorded how long the device was busy."
    most = most_gain(busy_share)
    if row["penalty"] <= most:
        return ""
    row["evidence"]["limit"] = {"busy_share": busy_share, "penalty": most, "without": row["penalty"]}
    row["penalty"] = most
    return loosen_units(
        f" The device is busy for {format_share(busy_share)} of the time. Without that, throughput would be "
        f"{format_fold(math.log(most))} as high, which limits the penalty."
    )


def is_timed(evidence: Mapping[str, Any]) -> bool:
    """Whether a finding goes by the time that clients waited, not by counts."""
    return bool((find_share(evidence) or {}).get("by_time"))


def _slower_runs(connection: "duckdb.DuckDBPyConnection", row: "ReturnedRow") -> list[str]:
    behind = find_runs_behind(connection, row)
    is_default = row["knob"] is None or row["evidence"].get("slower") == "baseline"
    return behind.default if is_default else behind.value
