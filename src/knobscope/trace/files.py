"""The files of a trace: what went to each, and in which pattern."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from knobscope.trace.columns import OPERATIONS, fetch_columns, fetch_rows
from knobscope.trace.order import count_followers, find_strides, follow_streams
from knobscope.watch.patterns import SHARES, name_pattern

if TYPE_CHECKING:
    import duckdb

__all__ = ["describe_files"]


def describe_files(connection: "duckdb.DuckDBPyConnection") -> tuple[list[dict[str, Any]], dict[int, int]]:
    """Return a row per file and operation, and per operation how many begin where the one before in their file ended.

    Order is judged by the offset in the file where the trace tells it, else by the address on the device. Flushes have
    no file.
    """
    rows = fetch_rows(
        connection,
        "SELECT file, op, count(*) AS requests, sum(bytes)::BIGINT AS bytes, any_value(device) AS device, "
        "any_value(inode) AS inode FROM requests WHERE op <> 3 GROUP BY file, op ORDER BY file NULLS LAST, op",
    )
    names = [name for name in dict.fromkeys(row["file"] for row in rows) if name is not None]
    connection.execute("CREATE OR REPLACE TABLE file_names AS SELECT unnest(?::VARCHAR[]) AS file", [names])
    connection.execute("CREATE TYPE file_name AS ENUM (SELECT file FROM file_names)")
    patterns: dict[tuple[str | None, int], tuple[int, int]] = {}
    followers: dict[int, int] = {}
    for op in range(2):
        sequential, strided, followers[op] = _judge(connection, op, len(names))
        for group, name in enumerate([*names, None]):
            patterns[name, op] = int(sequential[group]), int(strided[group])
    connection.execute("DROP TYPE file_name")
    return [_describe(row, patterns.get((row["file"], row["op"]))) for row in rows], followers


def _judge(
    connection: "duckdb.DuckDBPyConnection", op: int, files: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return sequential and strided requests per file (the last one: no file), and how many follow in their file."""
    place = 'coalesce("offset", lba * 512)'
    groups, starts, lengths = fetch_columns(
        connection,
        f'SELECT coalesce(enum_code(file::file_name)::BIGINT, {files}) * 2 + ("offset" IS NULL)::BIGINT AS g, '  # noqa: S608
        f"{place} AS start, bytes FROM requests WHERE op = {op}",
    )
    # One sort puts files one after another, each in order of issue.
    order = (np.sort((groups << 32) | np.arange(len(groups))) & 0xFFFFFFFF).astype(np.int64)
    groups, starts, lengths = groups[order], starts[order], lengths[order]
    marks = groups.astype(np.uint64) << np.uint64(44)  # apart from each other: no file reaches 16 TiB
    sequential = follow_streams(
        starts.astype(np.uint64) ^ marks, (starts + lengths).astype(np.uint64) ^ marks, by_slot=False
    )
    strided = np.where(sequential == 0, find_strides(starts, lengths, groups), 0)
    sums = [np.bincount(groups >> 1, turns, files + 1).astype(np.int64) for turns in (sequential, strided)]
    return sums[0], sums[1], count_followers(starts, starts + lengths, groups)


def _describe(row: dict[str, Any], pattern: tuple[int, int] | None) -> dict[str, Any]:
    return {
        "file": row["file"] if row["file"] is not None else "unknown",
        "found_by": "name" if row["file"] is not None else "pseudo",
        "op": OPERATIONS[row["op"]],
        "device": row["device"],
        "inode": row["inode"],
        "requests": row["requests"],
        "bytes": row["bytes"],
        "address_requests": 0,
        "sequential_requests": pattern[0] if pattern else None,
        **_describe_pattern(row["requests"], *(pattern or (None, None))),
    }


def _describe_pattern(requests: int, sequential: int | None, strided: int | None) -> dict[str, Any]:
    if sequential is None or strided is None:
        return dict.fromkeys((*SHARES, "pattern"))
    counts = (sequential, strided, requests - sequential - strided)
    shares = {share: count / requests for share, count in zip(SHARES, counts, strict=True)}
    return {**shares, "pattern": name_pattern(requests, shares)}
