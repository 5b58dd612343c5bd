"""Which runs behind a finding were measured while the load paused or changed its speed.

The guards exclude a run that stood still for a third of its window (`silent`), where its configuration has enough runs
to call that an exception. Every shorter pause, and any pause of a configuration with fewer runs, is part of the effect,
so the finding says so itself. A default run is part of all effects of its case: mismatches alone mention it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from knobscope.statistics.steadiness import UNEVEN
from knobscope.text.formats import format_count, format_seconds, loosen_units, plural

if TYPE_CHECKING:
    import duckdb

_QUERY = f"""
    WITH interrupted AS (
        SELECT run_id, window_pause_s FROM runs
        WHERE window_pause_s > 0 OR window_halves <= {1 / UNEVEN} OR window_halves >= {UNEVEN}
    )
    SELECT b.dbms, b.device, b.workload, b.knob, b.value,
        count(*) FILTER (side = 'value') AS runs,
        count(u.run_id) FILTER (side = 'value') AS unsteady,
        count(*) FILTER (side = 'default') AS reference_runs,
        count(u.run_id) FILTER (side = 'default') AS reference_unsteady,
        max(u.window_pause_s) AS longest_s
    FROM runs_behind b LEFT JOIN interrupted u USING (run_id)
    WHERE b.knob IS NOT NULL
    GROUP BY ALL HAVING count(u.run_id) > 0
"""  # noqa: S608 - a constant of ours


@dataclass(frozen=True)
class Pause:
    """What a finding says of interrupted runs; `is_of_value`: some have its value."""

    sentence: str
    is_of_value: bool


def read_pauses(connection: "duckdb.DuckDBPyConnection") -> dict[tuple[str | None, ...], Pause]:
    """Return what to say of each swept value (dbms, device, workload, knob, value) with interrupted runs behind it."""
    rows = connection.execute(_QUERY).fetchall()
    return {row[:5]: Pause(_describe(*row[5:]), is_of_value=row[6] > 0) for row in rows}


def describe_paused(paused: int, lines: int) -> str:
    """Say once for several findings that some of them have interrupted runs behind them."""
    return loosen_units(
        f"In some runs behind {format_count(paused)} of {plural(lines, 'line')} above, the load paused or changed its "
        f"speed by {UNEVEN:g}x or more; the effects include them."
    )


def _describe(runs: int, unsteady: int, reference_runs: int, reference_unsteady: int, longest_s: Any) -> str:
    pause = f" (longest pause {format_seconds(longest_s)})" if longest_s else ""
    return loosen_units(
        f" The load paused{pause} or changed its speed by {UNEVEN:g}x or more in {unsteady} of {runs} runs with this "
        f"value and in {reference_unsteady} of {reference_runs} that it is compared with; the effect includes them."
    )
