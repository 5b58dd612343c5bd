"""What does not depend on the order of requests: sums per operation, sizes, times, intervals. DuckDB does the work."""

from typing import TYPE_CHECKING, TypedDict

from knobscope.commands.trace.columns import OPERATIONS, Edges, fetch_rows
from knobscope.tables import IoProfileRow
from knobscope.tables.block_layer import IoLatencyRow, IoSizeRow
from knobscope.watch.profile import LatencyRow

if TYPE_CHECKING:
    import duckdb


class TracedOperation(IoProfileRow, total=False):
    """Requests of an operation, with rates and two simpler measures of order."""

    iops: float | None
    mib_per_s: float | None
    last_sector_share: float | None  # begin where the one before on the device ended
    file_last_sector_share: float | None  # the same of the one before in their file


class IntervalRow(TypedDict):
    """What was issued and what was completed of an operation in an interval."""

    number: int
    op: str
    requests: int
    bytes: int
    completed: int
    latency_mean_us: float | None


class _TimeBucket(TypedDict):
    op: str
    bucket: int
    requests: int


_BUCKETS = 176  # of time, as on the kernel side
_FLAGS = ("fua", "preflush", "sync", "meta")
#: Part of the profile -> owners it is made of.
_PARTS = {
    "own": "('own')",
    "inode": "('inode')",
    "journal": "('journal')",
    "flush": "('flush')",
    "foreign": "('foreign', 'unknown', 'unseen')",
}


def sum_operations(connection: "duckdb.DuckDBPyConnection", unit: int) -> list[TracedOperation]:
    """Return requests, bytes, aligned ones, flags and parts of each operation; None is what the trace does not tell."""
    columns = ["count(r.op) AS requests", "coalesce(sum(bytes), 0)::BIGINT AS bytes"]
    columns += [f"count(*) FILTER (lba * 512 % {unit} = 0 AND bytes % {unit} = 0) AS aligned_requests"]
    for flag in _FLAGS:
        total = f"coalesce(sum({flag}::INTEGER), 0)::BIGINT"
        columns.append(f"CASE WHEN count(r.op) = count({flag}) THEN {total} END AS {flag}")
    for part, owners in _PARTS.items():
        for kind, aggregate in (("requests", "count(*)"), ("bytes", "sum(bytes)")):
            total = f"coalesce({aggregate} FILTER (owner IN {owners}), 0)::BIGINT"
            columns.append(f"CASE WHEN count(r.op) = count(owner) THEN {total} END AS {part}_{kind}")
    rows = fetch_rows(
        connection,
        TracedOperation,
        f"SELECT o.op, {', '.join(columns)} FROM range({len(OPERATIONS)}) o(op) "  # noqa: S608
        "LEFT JOIN requests r ON r.op = o.op GROUP BY o.op ORDER BY o.op",
    )
    for row in rows:
        aligned = row["aligned_requests"] if row["op"] != "flush" else None
        row["aligned_requests"] = aligned
        row["aligned_share"] = aligned / row["requests"] if aligned is not None and row["requests"] else None
        row |= {"device_requests": row["requests"], "device_bytes": row["bytes"]}
    return rows


def list_sizes(connection: "duckdb.DuckDBPyConnection") -> list[IoSizeRow]:
    """Return how many requests had which size; a flush has none."""
    query = "SELECT op, bytes, count(*) AS requests FROM requests WHERE op <> 3 GROUP BY op, bytes ORDER BY op, bytes"
    return fetch_rows(connection, IoSizeRow, query)


def list_times(connection: "duckdb.DuckDBPyConnection", column: str) -> list[IoLatencyRow]:
    """Return a histogram of times with the buckets of the kernel side: four per power of two ns."""
    power = f"floor(log2(greatest({column}, 1)))::BIGINT"
    bucket = (
        f"CASE WHEN {column} < 4 THEN 0 ELSE least({power} * 4 + (({column} >> ({power} - 2)) & 3), {_BUCKETS - 1}) END"
    )
    rows = fetch_rows(
        connection,
        _TimeBucket,
        f"SELECT op, {bucket} AS bucket, count(*) AS requests FROM requests WHERE {column} IS NOT NULL "  # noqa: S608
        "GROUP BY ALL ORDER BY ALL",
    )
    return [
        {
            "op": row["op"],
            "low_us": _edge(row["bucket"]) / 1e3,
            "high_us": _edge(row["bucket"] + 1) / 1e3,
            "requests": row["requests"],
        }
        for row in rows
    ]


def _edge(bucket: int) -> int:
    """Return the lower edge in ns of a bucket: four per power of two from 4 ns on, everything below in the first."""
    power, quarter = divmod(bucket, 4)
    return (4 + quarter) << power >> 2 if bucket >= 8 else 4 * (bucket > 0)


def list_latencies(connection: "duckdb.DuckDBPyConnection") -> list[LatencyRow]:
    """Return exact figures of the latency per operation, ns."""
    query = """
        SELECT
            op, count(lat_ns) AS requests, min(lat_ns) AS min_ns, avg(lat_ns) AS mean_ns, max(lat_ns) AS max_ns,
            quantile_disc(lat_ns, 0.5) AS p50_ns, quantile_disc(lat_ns, 0.95) AS p95_ns,
            quantile_disc(lat_ns, 0.99) AS p99_ns, quantile_disc(lat_ns, 0.999) AS p999_ns
        FROM requests WHERE lat_ns IS NOT NULL GROUP BY op ORDER BY op
        """
    return fetch_rows(connection, LatencyRow, query)


def list_intervals(connection: "duckdb.DuckDBPyConnection", edges: Edges, interval_ns: int) -> list[IntervalRow]:
    """Return per interval and operation what was issued and what was completed; `number` counts intervals from 0.

    What happens when the last interval ends belongs to it.
    """
    begin_ns, last = int(edges[0]), len(edges) - 2
    query = f"""
        WITH issued AS (
            SELECT
                least((ts_ns - {begin_ns}) // {interval_ns}, {last}) AS number, op, count(*) AS requests,
                sum(bytes)::BIGINT AS bytes
            FROM requests GROUP BY ALL
        ), completed AS (
            SELECT
                least((ts_ns + lat_ns - {begin_ns}) // {interval_ns}, {last}) AS number, op, count(*) AS completed,
                avg(lat_ns) / 1e3 AS latency_mean_us
            FROM requests WHERE lat_ns IS NOT NULL GROUP BY ALL
        )
        SELECT
            number, op, coalesce(requests, 0) AS requests, coalesce(bytes, 0) AS bytes,
            coalesce(completed, 0) AS completed, latency_mean_us
        FROM issued FULL JOIN completed USING (number, op) ORDER BY number, op
        """  # noqa: S608
    return fetch_rows(connection, IntervalRow, query)
