"""Which transaction or query made which requests: sessions of the load client, as the trace has their threads."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from knobscope.errors import UserError
from knobscope.generators import SessionOperation, has_own_tables
from knobscope.specs import Dbms, Workload
from knobscope.tables import BACKGROUND, OperationIoRow, RunRecord, open_files


def find_session_question(dbms: Dbms, workload: Workload) -> str | None:
    """Return what a session is asked for its thread: empty for a DBMS inside the client, None where nothing is logged.

    YCSB's operations are not logged: they are single statements, and too many.
    """
    if not has_own_tables(workload):
        return None
    return dbms.session_thread if dbms.lifecycle else ""


def locate_sessions(
    operations: Sequence[SessionOperation], threads: Mapping[int, int], dbms: Dbms
) -> list[SessionOperation]:
    """Return the operations with threads as the kernel numbers them; `threads` as of number_threads.

    UserError: the DBMS names a thread that none of its processes had when all sessions were open.
    """
    strangers = {operation.thread for operation in operations} - threads.keys()
    if strangers:
        raise UserError(
            f"the spec of {dbms.name}: session_thread: found {min(strangers)}; expected the number of a thread of the "
            "server"
        )
    return [operation._replace(thread=threads[operation.thread]) for operation in operations]


def list_operation_io(trace: Path, record: RunRecord) -> list[OperationIoRow]:
    """Return the rows of table `operation_io` of a run from its trace, and from what else is recorded of it."""
    done = {row["operation"]: row["ok"] for row in record["operations"]} | {BACKGROUND: record["run"]["operations"]}
    known = {row["file"]: row for row in record["files"]}
    events = trace / "events.parquet"
    with open_files([events]) as connection:
        summed = connection.execute(
            """
            SELECT coalesce(operation, ?) AS operation, op, count(*) AS requests, sum(bytes)::BIGINT AS bytes,
                CASE WHEN op <> 'flush' THEN coalesce(file, if(owner = 'journal', owner, 'unknown')) END AS file
            FROM read_parquet(?) GROUP BY ALL ORDER BY ALL
            """,
            [BACKGROUND, str(events)],
        ).fetchall()
    return [
        {
            "operation": operation,
            "transactions": done.get(operation, 0),
            "file": file,
            "role": known[file]["role"] if file in known else file,
            "table_name": known[file]["table_name"] if file in known else None,
            "op": op,
            "requests": requests,
            "bytes": size,
        }
        for operation, op, requests, size, file in summed
    ]
