"""Finds a run in the results of a study: its record in the store, what was planned, and the runs next to it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from knobscope.errors import UserError
from knobscope.specs import Value
from knobscope.study_data.opening import open_study
from knobscope.tables import RunRecord, RunRow, read_document, read_table, select_columns
from knobscope.thread_classes import LISTENER, SESSION

if TYPE_CHECKING:
    import pandas as pd

_SUGGESTED = 3


class NeighbourRow(TypedDict):
    """A run of the same block."""

    run_id: str
    position: int
    config_id: str
    is_sentinel: bool
    status: str
    throughput_ops: float | None


class ShowDocument(RunRecord):
    """What `knobscope show` writes: tables of a run, of which those are missing that have no rows, and what it is of.

    Tables have the columns of docs/reference/tables.md; one that is missing has no value.
    """

    configuration: dict[str, Value]
    default: dict[str, Value]
    block: list[NeighbourRow]


@dataclass(frozen=True)
class ShownRun:
    """A run with what it is compared with; configurations and neighbours are empty where their files are not there."""

    record: RunRecord
    configuration: dict[str, Value]
    default: dict[str, Value]
    neighbours: list[RunRow]  # runs of the block in their order, this one among them

    def document(self) -> ShowDocument:
        """Return it as data for JSON."""
        block: list[NeighbourRow] = [
            select_columns(NeighbourRow, NeighbourRow.__annotations__, row) for row in self.neighbours
        ]
        return {**self.record, "configuration": self.configuration, "default": self.default, "block": block}


def find_run(run_id: str, stores: Sequence[Path]) -> ShownRun:
    """Return the run with this id, or with the only id that begins like it. UserError: there is none, or several."""
    files = {path.stem: path for store in stores for path in store.glob("*.json")}
    matches = [run_id] if run_id in files else [name for name in files if name.startswith(run_id)]
    if len(matches) != 1:
        close = sorted(matches)[:_SUGGESTED] or get_close_matches(run_id, files, n=_SUGGESTED, cutoff=0.4)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        where = ", ".join(str(store.parent) for store in stores) or "no results at all"
        raise UserError(f"{'several runs begin' if matches else 'no run'} {run_id!r} in {where}{hint}")
    path = files[matches[0]]
    record = read_document(path, RunRecord)
    results, run = path.parents[1], record["run"]
    parts, case = run["block_id"].split("/"), [run["dbms"], run["device"], run["workload"]]
    if len(parts) != 1 + len(case) or any(part in ("", ".", "..") or "/" in part for part in (*parts, *case)):
        raise UserError(f"{path}: found block {run['block_id']!r} of {case}; expected DBMS/DEVICE/WORKLOAD/BLOCK")
    # A device that differs in one property has no plan: its runs repeat configurations of the device itself.
    own, others = (f"{run['dbms']}/{device}/{run['workload']}/plan/*.parquet" for device in (run["device"], "*"))
    plan = _read(sorted(results.glob(own)) or sorted(results.glob(others)))
    block = results.joinpath(*case, "runs")
    tables = [block / parts[-1] / "runs.parquet", block / "tune/runs.parquet"]
    rows = _read([table for table in tables if table.is_file()])
    beside = rows[rows["block_id"] == run["block_id"]].sort_values("position") if len(rows) else rows
    neighbours = cast("list[RunRow]", beside.to_dict("records"))
    set_aside, has_listeners = _read_judged(results / "study.duckdb", case)
    for row in (run, *neighbours):
        if row["run_id"] in set_aside:
            row["status"], row["reason"] = set_aside[row["run_id"]]
    if has_listeners:
        _rename_sessions(record)
    return ShownRun(
        record,
        _configuration(plan, config_id=run["config_id"]),
        _configuration(plan, is_sentinel=True),
        neighbours,
    )


def _read_judged(database: Path, case: Sequence[str]) -> tuple[dict[str, tuple[str, str]], bool]:
    """Return what `detect` found, which knows all runs of the study where `measure` knows one; nothing before it ran.

    That is the status and reason of the runs that it set aside, and whether sessions of a case pass operations on.
    """
    if not database.is_file():
        return {}, False
    with open_study(database) as connection:
        rows = connection.execute(
            "SELECT run_id, status, s.reason FROM set_aside_runs s JOIN runs USING (run_id)"
        ).fetchall()
        listeners = connection.execute(
            "SELECT count(*) FROM waits JOIN runs USING (run_id) "
            "WHERE thread_class = ? AND dbms = ? AND device = ? AND workload = ?",
            [LISTENER, *case],
        ).fetchall()
    return {run_id: (status, reason) for run_id, status, reason in rows}, listeners[0][0] > 0


def _rename_sessions(record: RunRecord) -> None:
    """Give threads that pass operations on the class that they have in the database of the study."""
    rows = cast("list[dict[str, Any]]", [*record.get("waits", []), *record.get("wait_chains", [])])
    for row in rows:
        row.update({name: LISTENER for name in ("thread_class", "via_class") if row.get(name) == SESSION})


def _read(paths: Sequence[Path]) -> "pd.DataFrame":
    import pandas as pd

    return read_table(paths) if paths else pd.DataFrame()


def _configuration(plan: "pd.DataFrame", **wanted: Any) -> dict[str, Value]:
    (column, value), *_ = wanted.items()
    rows = plan[plan[column] == value] if len(plan) else plan
    return dict(json.loads(rows["configuration"].iloc[0])) if len(rows) else {}
