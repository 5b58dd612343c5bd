"""What a call measures of a block of which earlier calls have measured something.

Runs are compared within a session only: between two sessions the machine may have changed. So a session that measures
anything measures the default configuration, too. Where runs of it are still planned, the next one comes first; where
none is left (a finished study was given another value), one is added at the start and one at the end. A block that
was interrupted a moment ago is no new session: it goes on as planned.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from knobscope.stages.measure.machine import describe_machine
from knobscope.tables import RunRow

#: A longer break begins a new session. About as long as drift is followed within a block of ordinary length.
_LONGEST_BREAK_S = 600


def find_session(finished_runs: Sequence[RunRow], *, is_interrupted: bool, warmup_s: float) -> str | None:
    """Return the session that goes on, None when a new one begins.

    It goes on when its block was interrupted less than ten minutes (and what a run takes: the one that was cut off left
    nothing) after its last run, and neither machine nor kernel are others.
    A block is interrupted while a run of the default configuration is still planned, since its last run is one.
    """
    if not finished_runs or not is_interrupted:
        return None
    last = max(finished_runs, key=lambda run: run["started_at"])
    begin = datetime.fromisoformat(last["started_at"]).replace(tzinfo=UTC).timestamp()
    same_machine = last["machine"] == describe_machine() and begin > time.time() - _uptime_s()
    run_s = warmup_s + (last.get("window_s") or 0) + (last.get("overhead_s") or 0)
    is_recent = 0 <= time.time() - begin < _LONGEST_BREAK_S + 2 * run_s
    return last["session"] if same_machine and is_recent else None


def _uptime_s() -> float:
    return float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
