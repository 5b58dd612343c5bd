"""Reads a trace from the text that blkparse prints when no format is requested: a line per event.

A request is one issue (D) with the next completion (C) of the same offset, size and operation. What was requeued (R)
counts when it is issued again. Devices without requests of their own (LVM, LUKS, md, RAM disks, pmem) have no issue: a
request is then what was queued (Q); of a trace that has only completions, these. Letters of the column RWBS are those
of blkparse(1); kernels and blkparse differ in what they print for a flush (FN, FF, FWS, ...), but it always begins with
F and has no sectors.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.commands.trace.columns import (
    ISSUE_TO_COMPLETION,
    MAX_SECTOR,
    MAX_SECTORS,
    MAX_TIME_NS,
    Counts,
    open_text,
    quote,
)
from knobscope.commands.trace.limits import MOST_REQUESTS, require_few
from knobscope.errors import UserError

if TYPE_CHECKING:
    import duckdb

_HEAD = r"^ *\d+,\d+ +\d+ +\d+ +\d+\.\d+ +\d+ +"
#: Action that a request starts with -> what it lasts. The first one that a trace has is taken.
_STARTS = {"D": ISSUE_TO_COMPLETION, "Q": "from queueing to completion", "C": "not known, only completions are"}
#: Action that a request starts with -> an event that is no start, completion or requeue.
_ASIDE = {
    "D": _HEAD + "([ABE-QS-Zm][A-Z]*|[CDR][A-Z]+) ",
    "Q": _HEAD + "([ABDE-PS-Zm][A-Z]*|[CQR][A-Z]+) ",
    "C": _HEAD + "([ABDE-Zm][A-Z]*|C[A-Z]+) ",
}
# Two expressions with few groups: the library of regular expressions behind DuckDB has a fast way for up to four.
_WHEN = r"^ *(\d+,\d+) +\d+ +\d+ +(\d+)\.(\d{9}) "
_WHAT = _HEAD + r"([DCRQ]) +([A-Z]+) (?:(\d+) )?(?:\+ (\d+) )?(?:\(.*\) )?\["
#: Lines of the summary that follows the events.
_SUMMARY = r"^\s*((CPU\d+|Total|Throughput|Events|Skips|Input file|Reads?|Writes?|PC|IO|Timer)\b.*)?$"
_EXPECTED = "expected a line of blkparse like `8,0 1 42 0.000123456 697 D WS 223490 + 8 [name]`"


def read_blkparse(connection: "duckdb.DuckDBPyConnection", path: Path, device: str | None) -> Counts:
    """Make table `raw` of blkparse's text; raises UserError with the first line that makes no sense.

    Only requests that were issued are in it; of several devices one must be chosen (MAJ:MIN).
    """
    for start, life in _STARTS.items():
        _load_events(connection, path, start)
        counts = Counts(truncated_lines=_check_lines(connection, path, start), life=life)
        counts.lost_events = _count_skipped(connection)
        _choose_device(connection, path, device, is_last=start == "C")
        if connection.execute("SELECT count(*) FROM events WHERE action = 'D'").fetchall()[0][0]:
            break
    # before they are sorted: what was issued, and not requeued as far as that can be seen here
    (issued,) = connection.execute(
        "SELECT count(*) FILTER (action = 'D' AND sectors > 0 AND regexp_matches(rwbs, '[DNWR]')) "
        "- count(*) FILTER (action = 'R') FROM events"
    ).fetchall()[0]
    require_few(path, "requests", issued, MOST_REQUESTS)
    _pair(connection)
    (counts.completions_without_start, counts.requeues, counts.others) = connection.execute(
        "SELECT count(*) FILTER (action = 'C' AND op IS NOT NULL AND before IS DISTINCT FROM 'D'), "
        "count(*) FILTER (action = 'D' AND after = 'R'), count(*) FILTER (action = 'D' AND op IS NULL) FROM paired"
    ).fetchall()[0]
    connection.execute(
        "CREATE TABLE raw AS SELECT ts_ns, lba, sectors * 512 AS bytes, op, "
        "rwbs LIKE 'F%' AND sectors > 0 AS preflush, regexp_matches(rwbs, '[RWD]F') AS fua, "
        "contains(rwbs, 'S') AS sync, contains(rwbs, 'M') AS meta, "
        "CASE WHEN after = 'C' THEN after_ns - ts_ns END AS lat_ns "
        "FROM paired WHERE action = 'D' AND op IS NOT NULL AND after IS DISTINCT FROM 'R' ORDER BY number"
    )
    connection.execute("DROP TABLE paired")
    return counts


def _load_events(connection: "duckdb.DuckDBPyConnection", path: Path, start: str) -> None:
    """Make table `events` of starts (as D), completions and requeues, and of lines that are no event."""
    lines = (
        f"read_csv({quote(str(path))}, header = false, delim = '\\x01', quote = '', escape = '', auto_detect = false, "
        "strict_mode = false, "  # else lines that end as on Windows are an error among others
        "columns = {line: 'VARCHAR'})"
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE events AS
        SELECT
            CASE what.action WHEN '{start}' THEN 'D' ELSE what.action END AS action, moment.device,
            try_cast(moment.s AS BIGINT) * 1000000000 + try_cast(moment.ns AS BIGINT) AS ts_ns,
            what.rwbs, coalesce(try_cast(what.lba AS BIGINT), 0) AS lba,
            coalesce(try_cast(what.sectors AS BIGINT), 0) AS sectors,
            CASE WHEN what.rwbs = '' OR moment.s = '' OR line NOT LIKE '%]'
                OR {_exceeds("moment.s", MAX_TIME_NS // 10**9)} OR {_exceeds("what.lba", MAX_SECTOR)}
                OR {_exceeds("what.sectors", MAX_SECTORS)} THEN line END AS unreadable
        FROM (
            SELECT
                line,
                regexp_extract(line, '{_WHEN}', ['device', 's', 'ns']) AS moment,
                regexp_extract(line, '{_WHAT}', ['action', 'rwbs', 'lba', 'sectors']) AS what
            FROM {lines} WHERE NOT regexp_matches(line, '{_ASIDE[start]}')
        )
        """  # noqa: S608
    )


def _exceeds(text: str, largest: int) -> str:
    """Return the condition that a number, if it is there, is none or too large to be true."""
    return f"({text} <> '' AND coalesce(try_cast({text} AS BIGINT) > {largest}, true))"


def _is_event(match: re.Match[str] | None) -> bool:
    """Whether an issue, completion or requeue has numbers that can be true."""
    if match is None or not (when := re.match(_WHEN, match[0])):
        return False
    limits = ((when[2], MAX_TIME_NS // 10**9), (match[3], MAX_SECTOR), (match[4], MAX_SECTORS))
    return all(len(text or "") < 30 and int(text or 0) <= largest for text, largest in limits)


def _check_lines(connection: "duckdb.DuckDBPyConnection", path: Path, start: str) -> int:
    """Raise UserError when a line is neither event nor summary; return 1 when the last one was cut off."""
    wrong = f"unreadable IS NOT NULL AND NOT regexp_matches(unreadable, '{_SUMMARY}')"
    if not connection.execute(f"SELECT count(*) FROM events WHERE {wrong}").fetchall()[0][0]:  # noqa: S608
        return 0
    number, line, is_last = _find_problem(path, start)
    if not is_last:
        raise UserError(f"{path}, line {number}: found {line[:100]!r}; {_EXPECTED}")
    connection.execute(f"DELETE FROM events WHERE {wrong}")  # noqa: S608
    return 1


def _count_skipped(connection: "duckdb.DuckDBPyConnection") -> int | None:
    """Return the events that blktrace lost by the summary of blkparse; None where there is none."""
    skipped = "regexp_extract(unreadable, '^ *Skips: *[0-9]+ forward \\( *([0-9,]+) -', 1)"
    ((lost,),) = connection.execute(
        f"SELECT sum(try_cast(replace({skipped}, ',', '') AS BIGINT)) FROM events"  # noqa: S608 - a text of ours
    ).fetchall()
    return None if lost is None else int(lost)


def _find_problem(path: Path, start: str) -> tuple[int, str, bool]:
    """Return number and text of the first line that is neither event nor summary, and whether it is the last."""
    # DuckDB's expressions know blanks and digits of ASCII alone.
    aside, event, summary = (re.compile(text, re.ASCII) for text in (_ASIDE[start], _WHAT + r".*\]$", _SUMMARY))
    with open_text(path) as text:
        for number, line in enumerate(text, 1):
            content = line.rstrip("\r\n")
            if not (aside.match(content) or _is_event(event.match(content)) or summary.match(content)):
                return number, content, next(text, None) is None
    raise UserError(f"{path}: found a line that cannot be read; {_EXPECTED}")


def _choose_device(connection: "duckdb.DuckDBPyConnection", path: Path, device: str | None, *, is_last: bool) -> None:
    devices = [row[0] for row in connection.execute("SELECT DISTINCT device FROM events WHERE device <> ''").fetchall()]
    names = ", ".join(sorted(name.replace(",", ":") for name in devices))
    if not devices and not is_last:
        return  # another action may have some
    if not devices:
        raise UserError(f"{path}: no event of blkparse in it; {_EXPECTED}")
    if device is None and len(devices) > 1:
        raise UserError(f"{path} has several devices ({names}); expected one of them as --device")
    if device is not None and device.replace(":", ",") not in devices:
        raise UserError(f"--device: {path} has no requests of {device}; expected one of {names}")
    chosen = (device or devices[0]).replace(":", ",")
    connection.execute(f"DELETE FROM events WHERE device IS DISTINCT FROM {quote(chosen)}")  # noqa: S608


def _pair(connection: "duckdb.DuckDBPyConnection") -> None:
    """Make table `paired`: events with what came before and after in the life of the request at this offset."""
    connection.execute(
        """
        CREATE TABLE paired AS
        SELECT
            number, action, ts_ns, rwbs, op, lba, sectors,
            lag(action) OVER life AS before, lead(action) OVER life AS after, lead(ts_ns) OVER life AS after_ns
        FROM (
            SELECT
                rowid AS number, action, ts_ns, rwbs, lba, sectors,
                CASE
                    WHEN sectors = 0 THEN CASE WHEN rwbs LIKE 'F%' THEN 3 END
                    WHEN ltrim(rwbs, 'F') LIKE 'N%' THEN 1  -- WRITE_ZEROES and zone append have no letter
                    WHEN contains(rwbs, 'D') THEN 2
                    WHEN contains(rwbs, 'W') THEN 1
                    WHEN contains(rwbs, 'R') THEN 0
                END::UTINYINT AS op
            FROM events
        )
        WINDOW life AS (PARTITION BY lba, sectors, op ORDER BY ts_ns, number)
        """
    )
    connection.execute("DROP TABLE events")
