"""The files of a trace: what went to each, and in which pattern."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

from knobscope.commands.trace.columns import OPERATIONS, fetch_columns, fetch_rows
from knobscope.commands.trace.streams import Appends, count_followers, find_appends, find_strides, follow_streams
from knobscope.tables import empty_row
from knobscope.tables.block_layer import OrderColumns
from knobscope.watch.patterns import name_pattern
from knobscope.watch.profile import CountedFile

if TYPE_CHECKING:
    import duckdb

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class _Order:
    """Per file (the last one: no file) what `name_pattern` needs, and how many begin where the one before ended."""

    sequential: Integers
    appends: Appends
    strided: Integers
    followers: int


class _Counts(TypedDict):
    file: str | None
    op: str
    requests: int
    bytes: int
    device: str | None
    inode: int | None


def list_files(connection: "duckdb.DuckDBPyConnection") -> tuple[list[CountedFile], dict[str, int]]:
    """Return a row per file and operation, and per operation how many begin where the one before in their file ended.

    Order is judged by the offset in the file where the trace tells it, else by the address on the device. Flushes have
    no file.
    """
    rows = fetch_rows(
        connection,
        _Counts,
        "SELECT file, op, count(*) AS requests, sum(bytes)::BIGINT AS bytes, any_value(device) AS device, "
        "any_value(inode) AS inode FROM requests WHERE op <> 3 GROUP BY file, op ORDER BY file NULLS LAST, op",
    )
    names = [name for name in dict.fromkeys(row["file"] for row in rows) if name is not None]
    connection.execute("CREATE OR REPLACE TABLE file_names AS SELECT unnest(?::VARCHAR[]) AS file", [names])
    connection.execute("CREATE TYPE file_name AS ENUM (SELECT file FROM file_names)")
    orders = {op: _judge(connection, number, len(names)) for number, op in enumerate(OPERATIONS[:2])}
    connection.execute("DROP TYPE file_name")
    groups: dict[str | None, int] = {name: group for group, name in enumerate(names)}
    files = [_file_row(row, orders.get(row["op"]), groups.get(row["file"], len(names))) for row in rows]
    return files, {op: order.followers for op, order in orders.items()}


def _judge(connection: "duckdb.DuckDBPyConnection", op: int, files: int) -> _Order:
    start = 'coalesce("offset", lba * 512)'
    groups, starts, lengths = fetch_columns(
        connection,
        f'SELECT coalesce(enum_code(file::file_name)::BIGINT, {files}) * 2 + ("offset" IS NULL)::BIGINT AS g, '  # noqa: S608
        f"{start} AS start, bytes FROM requests WHERE op = {op}",
    )
    # One sort puts files one after another, each in order of issue.
    order = (np.sort((groups << 32) | np.arange(len(groups))) & 0xFFFFFFFF).astype(np.int64)
    groups, starts, lengths = groups[order], starts[order], lengths[order]
    marks = groups.astype(np.uint64) << np.uint64(44)  # apart from each other: no file reaches 16 TiB
    sequential = follow_streams(
        starts.astype(np.uint64) ^ marks, (starts + lengths).astype(np.uint64) ^ marks, by_slot=False
    )
    appends = find_appends(starts, lengths, groups, sequential, 2 * files + 2)
    strided = np.where(sequential == 0, find_strides(starts, lengths, groups), 0)
    sums = [np.bincount(groups >> 1, turns, files + 1).astype(np.int64) for turns in (sequential, strided)]
    by_file = Appends(*(counts.reshape(-1, 2).sum(axis=1) for counts in (appends.all, appends.alone)))
    return _Order(sums[0], by_file, sums[1], count_followers(starts, starts + lengths, groups))


def _file_row(row: _Counts, order: _Order | None, group: int) -> CountedFile:
    shares = _order_columns(row, order, group) if order else empty_row(OrderColumns)
    return {
        "file": row["file"] if row["file"] is not None else "unknown",
        "found_by": "name" if row["file"] is not None else "pseudo",
        "op": row["op"],
        "device": row["device"],
        "inode": row["inode"],
        "requests": row["requests"],
        "bytes": row["bytes"],
        "address_requests": 0,
        "sequential_requests": int(order.sequential[group]) if order else None,
        "sequential_share": shares["sequential_share"],
        "append_share": shares["append_share"],
        "strided_share": shares["strided_share"],
        "random_share": shares["random_share"],
        "pattern": shares["pattern"],
    }


def _order_columns(row: _Counts, order: _Order, group: int) -> OrderColumns:
    requests, sequential = row["requests"], int(order.sequential[group])
    is_log = row["op"] == "write" and row["file"] is not None  # what belongs to no file has no end
    alone = min(int(order.appends.alone[group]), requests - sequential) if is_log else 0
    strided = min(int(order.strided[group]), requests - sequential - alone)
    shares: OrderColumns = {
        "sequential_share": sequential / requests,
        "append_share": int(order.appends.all[group]) / requests if is_log else None,
        "strided_share": strided / requests,
        "random_share": (requests - sequential - alone - strided) / requests,
    }
    shares["pattern"] = name_pattern(requests, shares)
    return shares
