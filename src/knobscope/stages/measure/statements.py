"""The rows of table `statements`: what the load client sent, and what the server did to the rows of each table."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from knobscope.generators import own_tables
from knobscope.specs import TPCC, Workload
from knobscope.tables import StatementRow

Counted = Counter[tuple[str, str]]


def list_statements(
    sent: Sequence[dict[str, Any]], before: Counted, after: Counted, workload: Workload
) -> list[StatementRow]:
    """Return the client's rows, and the server's from its counters at the start and at the end of the window.

    Only tables of the workload are taken of what the client found in its statements: a name behind `from` may be that
    of a column or of a subquery. What the server selects is left out with TPC-C, whose client reads whole tables to
    check the data as soon as the window is over.
    """
    tables = own_tables(workload)
    rows: list[StatementRow] = [
        {
            "source": "client",
            "operation": row["operation"],
            "table_name": row["table_name"],
            "statement": row["statement"],
            "calls": row["calls"],
            "rows": row["rows"],
        }
        for row in sent
        if row["table_name"] in tables and row["calls"]
    ]
    counted = after - before  # without what is 0, or less because the counters began anew
    return rows + [
        {"source": "server", "table_name": table, "statement": statement, "rows": number}
        for (table, statement), number in sorted(counted.items())
        if statement != "select" or workload.generator != TPCC
    ]
