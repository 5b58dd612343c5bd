"""Which effects are between runs that sent requests to other devices of a layout.

Tables of requests, sizes, order and flushes have those to the device of the data. Where a part lies on another device,
that one answers requests, too: a log that moves takes its flushes along, and its commits still wait for them. What
rules count is then no measure of what the DBMS did, while its waits are: they are those for any device.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from knobscope.tables.detection import ReturnedRow

if TYPE_CHECKING:
    import duckdb

#: A file system that holds nothing of the DBMS writes its own journal now and then.
_LEAST_SHARE = 0.01
_QUERY = f"""
    WITH by_device AS (
        SELECT run_id, device AS other, sum(requests) AS requests FROM layout_io GROUP BY ALL
    ), shares AS (
        SELECT run_id, other, requests / sum(requests) OVER (PARTITION BY run_id) AS share FROM by_device
    )
    SELECT b.dbms, b.device, b.workload, b.knob, b.value, list(DISTINCT other ORDER BY other)
    FROM runs_behind b JOIN shares USING (run_id)
    WHERE b.knob IS NOT NULL AND other <> b.device AND share >= {_LEAST_SHARE}
    GROUP BY ALL
"""  # noqa: S608 - a constant of ours
#: Views of which a rule needs one if it judges an effect by the requests to the device of the data.
_COUNTED = frozenset({"flushes_behind", "reads_behind"})


def read_other_devices(connection: "duckdb.DuckDBPyConnection") -> dict[tuple[str | None, ...], list[str]]:
    """Return what else served requests behind each swept value (dbms, device, workload, knob, value)."""
    return {row[:5]: row[5] for row in connection.execute(_QUERY).fetchall()}


def leave_open(row: ReturnedRow, needs: Collection[str], others: Sequence[str] | None) -> None:
    """Make what a rule concluded from requests to the device of the data insufficient where others served some.

    It stands where it rests on what clients waited for, or where throughput has no clear effect that needs a reason.
    """
    low, high = row["effect_low"], row["effect_high"]
    is_clear = low is not None and high is not None and (low > 0 or high < 0)
    by_counts = _COUNTED.intersection(needs) and not (row["evidence"].get("share") or {}).get("by_time")
    if others is None or not by_counts or not is_clear or row["verdict"] == "insufficient":
        return
    row["verdict"], row["penalty"] = "insufficient", None
    row["evidence"] |= {"obstacle": "other_devices", "other_devices": others}
