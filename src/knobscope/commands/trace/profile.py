"""The I/O profile of a trace: the same numbers under the same keys as those that the kernel side counts live."""

from itertools import groupby
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from knobscope.commands.trace.columns import OPERATIONS, Edges, fetch_columns, fetch_rows
from knobscope.commands.trace.depth import Depth, measure_depth
from knobscope.commands.trace.reading import Trace
from knobscope.commands.trace.streams import count_followers, follow_streams
from knobscope.commands.trace.sums import (
    IntervalRow,
    TracedOperation,
    list_intervals,
    list_latencies,
    list_sizes,
    list_times,
    sum_operations,
)
from knobscope.commands.trace.traffic import list_files
from knobscope.tables.block_layer import IoSeriesRow, QueueDepthRow
from knobscope.watch import Profile

if TYPE_CHECKING:
    import duckdb


_INTERVAL_NS = 100_000_000  # of the series, as live
_MAX_INTERVALS = 36_000  # an hour; longer traces have longer intervals


class TraceDocument(Profile):
    """What `knobscope trace` writes: the profile of a trace, with the columns of docs/reference/tables.md."""

    io_profile: list[TracedOperation]  # type: ignore[misc] # with more columns than live


def profile_trace(trace: Trace, unit: int) -> Profile:
    """Return the profile of a trace; a request is aligned when address and length are multiples of `unit` bytes.

    What the trace does not tell is None, or an empty list. `duration_s` is that of the recording where the trace knows
    it, else from the first issue to the last.
    """
    connection, counts = trace.connection, trace.counts
    sums = _sum_all(connection)
    is_timed = counts.duration_ns is not None
    begin = 0 if is_timed else sums["first"]
    duration_ns = counts.duration_ns if counts.duration_ns is not None else sums["last"] - begin
    end = max(begin + duration_ns, sums["done"])
    interval_ns = _choose_interval(end - begin)
    edges = _make_edges(begin, end, interval_ns)
    depths = _measure_depths(connection, edges) if sums["completed"] else {}
    files, followers = list_files(connection)
    return {
        "trace": str(trace.path),
        "format": trace.format,
        "unit": unit,
        "life": counts.life,
        "duration_s": duration_ns / 1e9,
        "interval_s": interval_ns / 1e9,
        "monitor": "trace",
        "scope": "device",
        "lost_events": counts.lost_events,
        "unattributed_share": _share_unattributed(sums),
        "completions_without_start": counts.completions_without_start,
        "starts_without_completion": sums["requests"] - sums["completed"] if sums["completed"] else None,
        "requeues": counts.requeues,
        "failed_requests": sums["failed"],
        "truncated_lines": counts.truncated_lines,
        "out_of_order": counts.out_of_order,
        "other_requests": counts.others,
        "io_profile": [*_list_operations(connection, unit, duration_ns, followers)],
        "io_sizes": list_sizes(connection),
        "queue_depth": _list_depths(depths),
        "io_latency": list_times(connection, "lat_ns"),
        "queue_wait": list_times(connection, "wait_ns"),
        "latency": list_latencies(connection),
        "files": files,
        "series": _list_series(connection, edges, interval_ns, depths.get(-1)),
        "cpu_s": None,
    }


class _Sums(TypedDict):
    first: int  # ns, as all times
    last: int
    done: int
    requests: int
    completed: int
    failed: int | None
    owned: int
    data: int
    unattributed: int


def _sum_all(connection: "duckdb.DuckDBPyConnection") -> _Sums:
    (sums,) = fetch_rows(
        connection,
        _Sums,
        "SELECT min(ts_ns) AS first, max(ts_ns) AS last, max(ts_ns + coalesce(lat_ns, 0)) AS done, "
        "count(*) AS requests, count(lat_ns) AS completed, sum(failed::INTEGER)::BIGINT AS failed, "
        "count(owner) AS owned, count(*) FILTER (op <> 3) AS data, "
        "count(*) FILTER (op <> 3 AND owner IN ('unknown', 'unseen')) AS unattributed FROM requests",
    )
    return sums


def _share_unattributed(sums: _Sums) -> float | None:
    """Return the share of data requests without an owner, as live: a flush has none; None where no owner is known."""
    if not sums["owned"]:
        return None
    return sums["unattributed"] / sums["data"] if sums["data"] else 0.0


def _choose_interval(span_ns: int) -> int:
    """Return 100 ms, or 1, 2 or 5 times a power of ten of that where it would make too many intervals."""
    steps = (_INTERVAL_NS * factor * int(10**power) for power in range(12) for factor in (1, 2, 5))
    return next(step for step in steps if span_ns <= step * _MAX_INTERVALS)


def _make_edges(begin: int, end: int, interval_ns: int) -> Edges:
    """Return where intervals begin, and where the last one ends; that may be a shorter one."""
    return np.append(np.arange(begin, max(end, begin + 1), interval_ns, dtype=np.int64), np.int64(max(end, begin + 1)))


def _list_operations(
    connection: "duckdb.DuckDBPyConnection", unit: int, duration_ns: int, followers: dict[str, int]
) -> list[TracedOperation]:
    """Return the rows of `io_profile`, with rates and two simpler measures of sequentiality."""
    rows = sum_operations(connection, unit)
    for number, row in enumerate(rows):
        requests, size = row["requests"] or 0, row["bytes"] or 0
        sequential = sequential_bytes = followed = None
        if row["op"] in ("read", "write"):
            sequential, sequential_bytes, followed = _judge_order(connection, number)
        row["sequential_requests"] = sequential
        row["sequential_bytes"] = sequential_bytes
        row["sequential_share"] = _share(sequential, requests)
        row["last_sector_share"] = _share(followed, requests)
        row["file_last_sector_share"] = _share(followers.get(row["op"]), requests)
        row["iops"] = requests * 1e9 / duration_ns if duration_ns else None
        row["mib_per_s"] = size / 2**20 * 1e9 / duration_ns if duration_ns else None
    return rows


def _share(count: int | None, requests: int) -> float | None:
    return count / requests if count is not None and requests else None


def _judge_order(connection: "duckdb.DuckDBPyConnection", op: int) -> tuple[int, int, int]:
    """Return requests that are sequential in one of many streams, their bytes, and those that follow on the last."""
    starts, sectors = fetch_columns(connection, f"SELECT lba, bytes // 512 AS n FROM requests WHERE op = {op}")  # noqa: S608
    ends = starts + sectors
    turns = follow_streams(starts.astype(np.uint64), ends.astype(np.uint64), by_slot=True)
    return int(turns.sum()), int((turns * sectors).sum()) * 512, count_followers(starts, ends)


def _measure_depths(connection: "duckdb.DuckDBPyConnection", edges: Edges) -> dict[int, Depth]:
    """Return the depth of each hardware queue that the trace tells, and of the device, which is queue -1.

    A request whose end is not in the trace is left out: how long it was in flight is not known.
    """
    columns = "SELECT ts_ns, ts_ns + lat_ns AS done FROM requests WHERE lat_ns IS NOT NULL"
    query = "SELECT DISTINCT queue FROM requests WHERE queue IS NOT NULL ORDER BY queue"
    queues = [queue for (queue,) in connection.execute(query).fetchall()]
    span = int(edges[0]), int(edges[-1])
    starts, ends = fetch_columns(connection, columns)
    whole = measure_depth(starts, ends, span, edges)
    if len(queues) < 2:
        return {-1: whole} | dict.fromkeys(queues, whole)
    depths = {-1: whole}
    for queue in queues:
        starts, ends = fetch_columns(connection, f"{columns} AND queue = {queue}")
        depths[queue] = measure_depth(starts, ends, span, edges)
    return depths


def _list_depths(depths: dict[int, Depth]) -> list[QueueDepthRow]:
    return [
        {"queue": queue, "depth": depth, "time_ns": int(time_ns)}
        for queue, measured in sorted(depths.items())
        for depth, time_ns in enumerate(measured.times)
        if time_ns
    ]


def _list_series(
    connection: "duckdb.DuckDBPyConnection", edges: Edges, interval_ns: int, depth: Depth | None
) -> list[IoSeriesRow]:
    """Return rows per interval and operation; a stall has no requests, but a depth."""
    counted = list_intervals(connection, edges, interval_ns)
    by_interval = {number: {row["op"]: row for row in rows} for number, rows in groupby(counted, lambda r: r["number"])}
    in_flight = dict.fromkeys(OPERATIONS, 0)
    nothing: IntervalRow = {"number": 0, "op": "", "requests": 0, "bytes": 0, "completed": 0, "latency_mean_us": None}
    series: list[IoSeriesRow] = []
    for number in range(len(edges) - 1):
        mean = None if depth is None else float(depth.means[number])
        for op in OPERATIONS:
            row = by_interval.get(number, {}).get(op, nothing)
            is_stalled = bool(in_flight[op] and mean)
            in_flight[op] += row["requests"] - row["completed"]
            if row["requests"] or row["completed"] or is_stalled:
                series.append(
                    {
                        "t_s": (int(edges[number + 1]) - int(edges[0])) / 1e9,
                        "op": op,
                        "requests": row["requests"],
                        "bytes": row["bytes"],
                        "depth": mean,
                        "latency_mean_us": row["latency_mean_us"],
                    }
                )
    return series
