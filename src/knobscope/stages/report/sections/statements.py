"""Statements by table and transaction next to what the tables' files were asked for, of the default configuration."""

from collections import Counter
from dataclasses import dataclass

from knobscope.specs import Case
from knobscope.stages.report.sections.evidence import default_only
from knobscope.study_data.study import Rows, StudyData, name_case
from knobscope.text.formats import (
    UNKNOWN,
    format_count,
    format_number,
    format_share,
    format_size,
    join_words,
    list_names,
    share_of,
)

_KINDS = ("select", "insert", "update", "delete")
_LEAST_SHARE = 0.1  # of all statements, for a sentence about a table
_MOST_TABLES = 40


@dataclass(frozen=True)
class TableLine:
    """One table: the share of each kind in all statements (or rows), rows and bytes of a run on average."""

    name: str
    shares: list[str]  # in the order of select, insert, update, delete
    fetched: str
    changed: str
    read: str
    written: str


@dataclass(frozen=True)
class TransactionLine:
    """One table: what each kind of transaction does to it, as statements per transaction."""

    name: str
    cells: list[str]


@dataclass(frozen=True)
class CaseStatements:
    """Statements of one case; `unit` is what shares are of, `sources` who counted rows that are fetched and changed."""

    name: str
    sentences: list[str]
    unit: str
    sources: dict[str, str]
    lines: list[TableLine]
    transactions: list[str]
    by_transaction: list[TransactionLine]


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
    bytes_by_table = _read_bytes(data, runs)
    tables = sorted({table for table, _ in shares}, key=lambda table: (-_total(shares, table), table))
    transactions, lines = _by_transaction(data, runs, tables) if by_client else ([], [])
    return CaseStatements(
        name=name_case(case),
        sentences=[*_sentences(shares, "statements" if by_client else "rows", bytes_by_table)],
        unit="statements" if by_client else "rows",
        sources=sources,
        lines=[
            TableLine(
                table,
                [format_share(share_of(shares[table, kind], shares.total())) for kind in _KINDS],
                format_count(rows[table, "fetched"]),
                format_count(rows[table, "changed"]),
                *(format_size(bytes_by_table[table, op]) if bytes_by_table else UNKNOWN for op in ("read", "write")),
            )
            for table in tables[:_MOST_TABLES]
        ],
        transactions=transactions,
        by_transaction=lines,
    )


def _total(shares: Counter[tuple[str, str]], table: str) -> int:
    return sum(shares[table, kind] for kind in _KINDS)


def _sum_rows(counted: Rows) -> tuple[Counter[tuple[str, str]], dict[str, str]]:
    """Return rows that a run fetches from and changes in each table, and who counted them: the server where it did."""
    sums: Counter[tuple[str, str]] = Counter()
    sources = {}
    for name, is_fetched in (("fetched", True), ("changed", False)):
        rows = [row for row in counted if (row["statement"] == "select") == is_fetched]
        sources[name] = max((row["source"] for row in rows), default="client")  # the server, or else the client
        for row in rows:
            if row["source"] == sources[name]:
                sums[row["table_name"], name] += row["rows"] / row["runs"]
    return sums, sources


def _read_bytes(data: StudyData, runs: list[str]) -> Counter[tuple[str, str]]:
    """Return the bytes of a run by table and operation; empty where requests are not known by file."""
    rows = data.rows(
        """
        SELECT table_name, op, sum(bytes) / (SELECT count(DISTINCT run_id) FROM files WHERE list_contains(?, run_id))
            AS bytes
        FROM files WHERE list_contains(?, run_id) AND table_name IS NOT NULL GROUP BY ALL ORDER BY ALL
        """,
        runs, runs,
    )  # fmt: skip
    return Counter({(row["table_name"], row["op"]): row["bytes"] for row in rows})


def _by_transaction(data: StudyData, runs: list[str], tables: list[str]) -> tuple[list[str], list[TransactionLine]]:
    """Return the kinds of transactions, and per table what each of them does: statements per transaction."""
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
        TransactionLine(table, [", ".join(cells.get((table, kind), [])) or UNKNOWN for kind in kinds])
        for table in tables[:_MOST_TABLES]
    ]
    return kinds, lines


def _sentences(shares: Counter[tuple[str, str]], unit: str, bytes_by_table: Counter[tuple[str, str]]) -> list[str]:
    sums: Counter[str] = Counter()
    for (_, kind), count in shares.items():
        sums[kind] += count
    kinds = [f"{format_share(count / sums.total())} {kind}" for kind, count in sums.most_common() if count]
    sentences = [f"Of the {unit}, {join_words(kinds)}."]
    tables = {table for table, _ in shares}
    only_read = sorted(table for table in tables if _total(shares, table) == shares[table, "select"])
    if only_read:
        sentences.append(f"Only read: {list_names(only_read)}.")
    totals = {op: sum(size for (_, side), size in bytes_by_table.items() if side == op) for op in ("read", "write")}
    for table in sorted(tables, key=lambda name: -_total(shares, name)):
        share = _total(shares, table) / shares.total()
        if share < _LEAST_SHARE or not bytes_by_table:
            continue
        parts = [
            f"{format_share(share_of(bytes_by_table[table, op], totals[op]))} of the bytes {verb}"
            for op, verb in (("read", "read"), ("write", "written"))
            if totals[op]
        ]
        if parts:
            sentences.append(f"{table} takes {format_share(share)} of the {unit}, {join_words(parts)} of all tables.")
    return sentences
