"""Locality of the requests of a trace, whoever recorded it: what a query selects is measured, in words and figures."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from knobscope.statistics.locality import Access, Locality, measure_locality
from knobscope.text.formats import LEAST_REQUESTS, format_share, format_size, join_words, loosen_units

if TYPE_CHECKING:
    import duckdb

#: Largest times (ns) and addresses (bytes), the longest request, and as many requests as `knobscope trace` reads.
_MOST, _LONGEST, _MOST_REQUESTS = 1 << 61, 1 << 40, 12_000_000
_FILES_NAMED = 3


class TracedLocality(NamedTuple):
    """Locality, and the names of the files that it has codes of."""

    locality: Locality
    files: list[str]

    def name(self, code: int | None) -> str:
        """Return the name of a file."""
        return "unknown" if code is None else self.files[code]

    def record(self) -> Mapping[str, Any]:
        """Return all of it as plain values, files by their names."""
        files = [asdict(heat) | {"file": self.name(heat.file)} for heat in self.locality.files]
        return asdict(self.locality) | {"files": files}


def trace_locality(connection: "duckdb.DuckDBPyConnection", query: str, *parameters: object) -> TracedLocality | None:
    """Return the locality of what a query selects, reads and writes in order of issue; None without a read.

    Its columns: `ts_ns`, `lba` (sectors of 512 bytes), `bytes`, `file`, `offset`, `is_read`. What cannot be true, or is
    more than fits into memory, is left out: a stranger may have written the trace.
    """
    requests = (
        f"(SELECT * FROM ({query}) WHERE ts_ns BETWEEN -{_MOST} AND {_MOST} AND lba BETWEEN 0 AND {_MOST // 512} "  # noqa: S608
        f'AND bytes BETWEEN 0 AND {_LONGEST} AND coalesce("offset", 0) BETWEEN 0 AND {_MOST} LIMIT {_MOST_REQUESTS})'
    )
    named = f"SELECT DISTINCT file FROM {requests} WHERE file IS NOT NULL ORDER BY file"  # noqa: S608
    files = [name for (name,) in connection.execute(named, parameters).fetchall()]
    connection.execute("CREATE OR REPLACE TABLE traced_files AS SELECT unnest(?::VARCHAR[]) AS file", [files])
    connection.execute("CREATE TYPE traced_file AS ENUM (SELECT file FROM traced_files)")
    # Direct I/O has no offset: of a file that both read, only addresses are places in one order.
    offset = f'SELECT DISTINCT file FROM {requests} WHERE "offset" IS NULL AND file IS NOT NULL'  # noqa: S608
    direct = [name for (name,) in connection.execute(offset, parameters).fetchall()]
    columns = connection.execute(
        "SELECT ts_ns::BIGINT, lba::BIGINT * 512 AS start, bytes::BIGINT, coalesce(is_read, false), "  # noqa: S608
        "coalesce(enum_code(file::traced_file)::INTEGER, -1) AS code, "
        'CASE WHEN "offset" IS NULL OR list_contains(?::VARCHAR[], file) THEN lba * 512 ELSE "offset" END::BIGINT '
        f"AS place FROM {requests}",
        [direct, *parameters],
    ).fetchnumpy()
    connection.execute("DROP TYPE traced_file")
    locality = measure_locality(Access(*(np.asarray(column) for column in columns.values())))
    return None if locality is None else TracedLocality(locality, files)


def describe_locality(locality: Locality) -> str:
    """Return in one sentence what a larger cache would save, and what no cache could."""
    read, first = format_size(locality.read_bytes), format_share(locality.first_share)
    size = locality.useful_cache_bytes
    if size is None:
        part, less = ("All", "nothing") if locality.first_share == 1 else (first, "next to nothing")
        return loosen_units(
            f"{part} of the {read} read were read for the first time: a larger cache would save {less}."
        )
    saved = format_share(1 - locality.miss_share(size))
    return loosen_units(
        f"An LRU cache of {format_size(size)} in addition to those in place would save {saved} of the {read} read; "
        f"{first} were read for the first time, which no cache saves."
    )


def describe_heat(traced: TracedLocality) -> str:
    """Return in one sentence which part of its busiest files most requests go to; nothing if they are few."""
    parts = [
        f"{format_share(heat.hot_share)} of {traced.name(heat.file)}"
        for heat in traced.locality.files[:_FILES_NAMED]
        if heat.file is not None and sum(part.reads + part.writes for part in heat.ranges) >= LEAST_REQUESTS
    ]
    return loosen_units(f"80 % of the requests to a file go to {join_words(parts)}.") if parts else ""
