"""A block of runs on one device: measured in order, each stored at once, what is stored is not measured again."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knobscope.errors import UserError
from knobscope.measure.machine import describe_machine
from knobscope.measure.progress import BlockProgress
from knobscope.measure.run import Bench, measure_run
from knobscope.measure.store import RunStore, run_id_of
from knobscope.prepare import Snapshot, SnapshotFailedError, load_values_of, prepare_snapshot
from knobscope.specs import Case, StudySpecs, Value
from knobscope.tables import write_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BLOCK_TABLES", "Measurer", "measure_block", "write_block"]

#: Tables of a block directory, beside `runs`.
BLOCK_TABLES = (
    "effective_values",
    "phases",
    "intervals",
    "operations",
    "checks",
    "io_profile",
    "io_sizes",
    "queue_depth",
    "io_latency",
    "io_series",
    "submitters",
    "files",
    "file_access",
    "syscalls",
    "io_modes",
    "faults",
)


def measure_block(plan: "pd.DataFrame", measurer: "Measurer") -> list[dict[str, Any]]:
    """Measure what is missing of a block; returns one record per planned run, in order.

    A configuration that fails is recorded, and the block goes on; when the default configuration itself fails twice at
    the beginning, there is nothing to compare with, and UserError says why.
    """
    return [measurer.measure(row) for row in plan.sort_values("position").to_dict("records")]


class Measurer:
    """Measures planned runs of a case, rows of table `plan`, one after another; what the store has is not repeated."""

    def __init__(
        self, specs: StudySpecs, case: Case, bench: Bench, tier: str, store: RunStore, progress: BlockProgress
    ) -> None:
        shutil.rmtree(bench.scratch / "runs", ignore_errors=True)  # of a run that was killed
        self.specs, self.case, self.bench, self.tier = specs, case, bench, tier
        self.store, self.progress = store, progress
        self.session = datetime.now(UTC).isoformat(timespec="seconds")
        self._snapshots = _snapshot_finder(bench)
        self._sentinels: Counter[str] = Counter()  # by block

    def measure(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the record of a planned run. Errors as in measure_block."""
        configuration: dict[str, Value] = json.loads(row["configuration"])
        snapshot, failure = self._snapshots(configuration)
        sentinel = self._sentinels[row["block_id"]] if row["is_sentinel"] else None
        self._sentinels[row["block_id"]] += int(row["is_sentinel"])
        version = snapshot.version if snapshot else ""
        run_id = run_id_of(self.specs, self.case, configuration, version, row["block_id"], sentinel, row["repeat"])
        record = self.store.load(run_id)
        if record is not None:
            self.progress.skip()
            return record
        begin = time.monotonic()
        if snapshot is None:
            record = {"run": failure}
        else:
            record = measure_run(self.bench, run_id, configuration, snapshot)
            if row["is_sentinel"] and record["run"]["status"] != "ok":
                record = measure_run(self.bench, run_id, configuration, snapshot)
        record["run"] |= _identity(self.specs, self.case, row, run_id, version, self.tier, self.session)
        _require_sentinel(record, sentinel)
        self.store.save(run_id, record)
        self.progress.report(record["run"], configuration, time.monotonic() - begin)
        return record


def _snapshot_finder(bench: Bench) -> Callable[[dict[str, Value]], tuple[Snapshot | None, dict[str, Any]]]:
    """Return a function configuration -> (snapshot, or None and why there is none); each is looked for once."""
    found: dict[str, tuple[Snapshot | None, dict[str, Any]]] = {}

    def find(configuration: dict[str, Value]) -> tuple[Snapshot | None, dict[str, Any]]:
        values = load_values_of(bench.dbms, configuration)
        key = json.dumps(values, sort_keys=True)
        if key not in found:
            try:
                found[key] = (
                    prepare_snapshot(bench.dbms, bench.workload, values, bench.scratch, bench.generator, bench.room),
                    {},
                )
            except SnapshotFailedError as error:
                found[key] = (
                    None,
                    {"status": "failed_start", "reason": str(error), "log_tail": error.log_tail},
                )
        return found[key]

    return find


def _identity(
    specs: StudySpecs, case: Case, row: dict[str, Any], run_id: str, version: str, tier: str, session: str
) -> dict[str, Any]:
    names = ("block_id", "phase", "round", "position", "config_id", "is_sentinel", "repeat")
    return {
        "run_id": run_id,
        "study": specs.study.name,
        **{name: row[name] for name in names},
        "dbms": case.dbms,
        "device": case.device,
        "workload": case.workload,
        "dbms_version": version,
        "tier": tier,
        "workload_class": specs.workloads[case.workload].class_,
        "session": session,
        "machine": describe_machine(),
    }


def _require_sentinel(record: dict[str, Any], sentinel: int | None) -> None:
    run = record["run"]
    if sentinel == 0 and run["status"] != "ok":
        raise UserError(
            f"the default configuration of {run['dbms']} does not run on {run['device']} "
            f"({run['status']}: {run['reason']}), so there is nothing to compare with.\n{run.get('log_tail', '')}"
        )


def write_block(
    records: list[dict[str, Any]], directory: Path, more: Mapping[str, list[dict[str, Any]]] | None = None
) -> None:
    """Write the tables of a block, and `more` tables by name, into a directory, which appears whole."""
    part = directory.with_name(directory.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    write_table(part / "runs.parquet", "runs", (record["run"] for record in records))
    for table in BLOCK_TABLES:
        rows = ({"run_id": record["run"]["run_id"], **row} for record in records for row in record.get(table, []))
        write_table(part / f"{table}.parquet", table, rows)
    for table, own in (more or {}).items():
        write_table(part / f"{table}.parquet", table, own)
    shutil.rmtree(directory, ignore_errors=True)
    part.rename(directory)
