"""Statements by table and transaction next to what the tables' files were asked for, of the default configuration."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from knobscope.specs import Case
from knobscope.stages.report.sections.evidence import default_only
from knobscope.stages.report.sections.html_table import NUMBER, TEXT, break_name, render_table
from knobscope.study_data.study import Rows, StudyData, name_case
from knobscope.text.formats import (
    LEAST_REQUESTS,
    UNKNOWN,
    format_count,
    format_number,
    format_part,
    format_share,
    format_size,
    join_words,
    list_names,
)

_KINDS = ("select", "insert", "update", "delete")
_LEAST_SHARE = 0.1  # of all statements, for a sentence about a table
_MOST_TABLES = 40
#: Table and statement, or table and operation -> how many.
_Counts = Counter[tuple[str, str]]


@dataclass(frozen=True)
class CaseStatements:
    """Statements of one case by table: of all in a run on average, and per transaction of each kind."""

    name: str
    sentences: list[str]
    tables: Markup
    by_transaction: Markup


def build_statements(data: StudyData) -> list[CaseStatements]:
    """Return the cases whose load client or server counted statements by table."""
    cases = (_case_statements(data, case) for case in data.shown_cases)
    return [case for case in cases if case is not None]


def _case_statements(data: StudyData, case: Case) -> CaseStatements | None:
    runs = [run["run_id"] for run in default_only(data, case, "").settings[0].runs]
    counted = data.rows(
        """
        WITH measured AS (SELECT * FROM statements WHERE list_contains(?, run_id))
        SELECT source, table_name, statement, sum(calls) AS calls, sum(rows) AS rows,
            (SELECT count(DISTINCT run_id) FROM measured) AS runs
        FROM measured GROUP BY source, table_name, statement ORDER BY ALL
        """,
        runs,
    )
    if not counted:
        return None
    by_client = any(row["source"] == "client" for row in counted)
    column, source = ("calls", "client") if by_client else ("rows", "server")
    shares = Counter({(row["table_name"], row["statement"]): row[column] for row in counted if row["source"] == source})
    rows, sources = _sum_rows(counted)
    bytes_by_table, requests = _read_traffic(data, runs)
    tables = sorted({table for table, _ in shares}, key=lambda table: (-_total(shares, table), table))
    unit = "statements" if by_client else "rows"
    numbers = (
        *(f"Select, of all {unit}", "Insert", "Update", "Delete"),
        *(f"Rows {name} ({source})" for name, source in sources.items()),
        *("Read from the device", "Written to it"),
    )
    cells = [
        (
            table,
            *(format_part(shares[table, kind], shares.total()) for kind in _KINDS),
            format_count(rows[table, "fetched"]),
            format_count(rows[table, "changed"]),
            *(format_size(bytes_by_table[table, op]) if bytes_by_table else UNKNOWN for op in ("read", "write")),
        )
        for table in tables[:_MOST_TABLES]
    ]
    name = name_case(case)
    return CaseStatements(
        name,
        [*_sentences(shares, unit, bytes_by_table, requests)],
        render_table((("Table", TEXT), *((head, NUMBER) for head in numbers)), cells, sortable=f"statements of {name}"),
        _by_transaction(data, runs, tables) if by_client else Markup(),
    )


def _total(shares: _Counts, table: str) -> int:
    return sum(shares[table, kind] for kind in _KINDS)


def _sum_rows(counted: Rows) -> tuple[_Counts, dict[str, str]]:
    """Return rows that a run fetches from and changes in each table, and who counted them: the server where it did."""
    sums: _Counts = Counter()
    sources = {}
    for name, is_fetched in (("fetched", True), ("changed", False)):
        rows = [row for row in counted if (row["statement"] == "select") == is_fetched]
        sources[name] = max((row["source"] for row in rows), default="client")  # the server, or else the client
        for row in rows:
            if row["source"] == sources[name]:
                sums[row["table_name"], name] += row["rows"] / row["runs"]
    return sums, sources


def _read_traffic(data: StudyData, runs: list[str]) -> tuple[_Counts, _Counts]:
    """Return the bytes of a run, and the requests of all, by table and operation; nothing where no file is known."""
    rows = data.rows(
        """
        SELECT table_name, op, sum(requests) AS requests,
            sum(bytes) / (SELECT count(DISTINCT run_id) FROM files WHERE list_contains(?, run_id)) AS bytes
        FROM files WHERE list_contains(?, run_id) AND table_name IS NOT NULL GROUP BY ALL ORDER BY ALL
        """,
        runs, runs,
    )  # fmt: skip
    bytes_by_table, requests = (
        Counter({(row["table_name"], row["op"]): row[column] for row in rows}) for column in ("bytes", "requests")
    )
    return bytes_by_table, requests


def _by_transaction(data: StudyData, runs: list[str], tables: list[str]) -> Markup:
    """Return per table what each kind of transaction does to it, as statements per transaction."""
    rows = data.rows(
        """
        WITH done AS (
            SELECT operation, sum(ok) AS ok FROM operations WHERE list_contains(?, run_id) GROUP BY operation
        )
        SELECT s.operation, table_name, statement, sum(calls) / any_value(ok) AS calls
        FROM statements s JOIN done USING (operation)
        WHERE list_contains(?, run_id) AND source = 'client' AND ok > 0 GROUP BY ALL ORDER BY ALL
        """,
        runs, runs,
    )  # fmt: skip
    kinds = sorted({row["operation"] for row in rows})
    cells: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        cells.setdefault((row["table_name"], row["operation"]), []).append(
            f"{format_number(row['calls'])} {row['statement']}"
        )
    lines = [
        (table, *(", ".join(cells.get((table, kind), [])) or UNKNOWN for kind in kinds))
        for table in tables[:_MOST_TABLES]
    ]
    columns = (("Table", TEXT), *((break_name(kind), TEXT) for kind in kinds))
    return render_table(columns, lines if kinds else [])


def _sentences(shares: _Counts, unit: str, bytes_by_table: _Counts, requests: _Counts) -> list[str]:
    sums: Counter[str] = Counter()
    for (_, kind), count in shares.items():
        sums[kind] += count
    total = sums.total()
    of_few = total < LEAST_REQUESTS
    kinds = [
        f"{format_count(count) if of_few else format_share(count / total)} {kind}"
        for kind, count in sums.most_common()
        if count
    ]
    sentences = [f"Of the {f'{format_count(total)} ' if of_few else ''}{unit}, {join_words(kinds)}."]
    tables = {table for table, _ in shares}
    only_read = sorted(table for table in tables if _total(shares, table) == shares[table, "select"])
    if only_read:
        sentences.append(f"Only read: {list_names(only_read)}.")
    for table in sorted(tables, key=lambda name: -_total(shares, name)):
        statements = _total(shares, table)
        parts = list(_parts_of_traffic(table, bytes_by_table, requests))
        if statements >= _LEAST_SHARE * total and parts:
            part = format_part(statements, total, unit)
            sentences.append(f"{table} takes {part}, {join_words(parts)} of all tables.")
    return sentences


def _parts_of_traffic(table: str, bytes_by_table: _Counts, requests: _Counts) -> Iterator[str]:
    """Yield which part of the bytes of all tables a table has; of few requests, how many of them."""
    for op, verb in (("read", "read"), ("write", "written")):
        size, count = (sum(part for (_, side), part in of.items() if side == op) for of in (bytes_by_table, requests))
        if 0 < count < LEAST_REQUESTS:
            yield format_part(requests[table, op], count, f"{op}s")
        elif size:
            yield f"{format_share(bytes_by_table[table, op] / size)} of the bytes {verb}"
