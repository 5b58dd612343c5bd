"""Times of runs that come in pairs: a value and its reference value, in the same round."""

import math
from collections.abc import Callable, Iterable, Iterator

from knobscope.tables import WhatIfRunRow


def list_usable(runs: Iterable[WhatIfRunRow]) -> list[WhatIfRunRow]:
    """Return the runs that have a throughput."""
    return [row for row in runs if row["status"] == "ok" and row["throughput_ops"]]


def list_differences(runs: Iterable[WhatIfRunRow], amount_of_run: Callable[[WhatIfRunRow], float]) -> Iterator[float]:
    """Yield by how much the run with the value exceeds the one with the reference value, in each whole pair."""
    pairs: dict[int, dict[bool, float]] = {}
    for row in runs:
        pairs.setdefault(row["pair"], {})[row["is_reference"]] = amount_of_run(row)
    yield from (pair[False] - pair[True] for pair in pairs.values() if len(pair) == 2)


def log_throughput(row: WhatIfRunRow) -> float:
    """Return the natural logarithm of operations per second."""
    return math.log(row["throughput_ops"] or math.nan)


def time_of(row: WhatIfRunRow) -> float:
    """Return the time per operation, microseconds."""
    return 1e6 / (row["throughput_ops"] or math.nan)


def micros_without_way(row: WhatIfRunRow) -> float:
    """Return the time per operation without the way of flushes to a modelled device."""
    return time_of(row) - (row.get("flush_way_us") or 0)


def micros_off_device(row: WhatIfRunRow) -> float:
    """Return the time per operation in which the device had no request."""
    return time_of(row) - max(row.get("flush_way_us") or 0, row.get("busy_us") or 0)
