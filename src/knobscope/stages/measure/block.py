"""A block of runs on one device: measured in order, each stored at once, what is stored is not measured again."""

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from knobscope.durable_files import read_sealed, whole_directory
from knobscope.errors import UserError
from knobscope.identity import require_same_programs
from knobscope.specs import Case, StudySpecs, Value, split_kernel
from knobscope.stages.measure.care import DeviceCare
from knobscope.stages.measure.machine import describe_machine
from knobscope.stages.measure.progress import BlockProgress
from knobscope.stages.measure.run import Bench, measure_run, now_text
from knobscope.stages.measure.sessions import find_session
from knobscope.stages.measure.store import RunStore, run_id_of
from knobscope.stages.prepare import Snapshot, SnapshotFailedError, load_values_of, prepare_snapshot
from knobscope.tables import BLOCK_TABLES, PlanRow, RunRecord, RunRow, rows_of, write_tables

if TYPE_CHECKING:
    import pandas as pd


def measure_block(plan: "pd.DataFrame", measurer: "Measurer") -> list[RunRecord]:
    """Measure what is missing of a block; returns the records of its runs, in the order in which they ran.

    There is one for each planned run, and those of the default configuration that sessions have added. A configuration
    that fails is recorded, and the block goes on; when the default configuration itself fails twice at the beginning,
    there is nothing to compare with: UserError says why, and a block of the sweep ends with that run, so that there is
    a report of all that was found before.
    """
    return measurer.measure_block(cast("list[PlanRow]", plan.sort_values("position").to_dict("records")))


def find_stored(
    plan: "pd.DataFrame", specs: StudySpecs, case: Case, loaded: Path, store: RunStore, progress: BlockProgress
) -> list[RunRecord] | None:
    """Return what measure_block would, if the store has all of it; None otherwise. No device is needed.

    `loaded`: what `knobscope prepare` wrote. With the programs' digests, which the ids of runs depend on, it says of
    which version of the DBMS they are.
    """
    require_same_programs(specs, case)
    snapshots, sentinels = read_sealed(loaded), itertools.count()
    rows = cast("list[PlanRow]", plan.sort_values("position").to_dict("records"))
    default = next(row for row in rows if row["is_sentinel"])

    def identify(row: PlanRow) -> tuple[str, int | None]:
        version = snapshots[row["load_id"]].get("version", "")  # none of data that could not be loaded
        configuration, sentinel = json.loads(row["configuration"]), next(sentinels) if row["is_sentinel"] else None
        return run_id_of(specs, case, configuration, version, row, sentinel), sentinel

    stored = _load_block([identify(row) for row in rows], lambda: identify(default)[0], store)
    if stored.missing:
        return None
    stored.tell(progress, {row["config_id"]: json.loads(row["configuration"]) for row in rows})
    return sorted(stored.records, key=lambda record: record["run"]["position"])


@dataclass(frozen=True)
class _StoredBlock:
    """What the store has of a block, the runs of the default configuration that sessions have added included."""

    records: list[RunRecord]
    added: int
    missing: set[str]  # ids of planned runs that are still to be measured

    def tell(self, progress: BlockProgress, configurations: Mapping[str, Mapping[str, Value]]) -> None:
        """Say that these runs are not measured again; `configurations` by their ids."""
        progress.planned += self.added
        for record in self.records:
            progress.skip(record["run"], configurations[record["run"]["config_id"]])


def _load_block(
    planned: Sequence[tuple[str, int | None]], next_default: Callable[[], str], store: RunStore
) -> _StoredBlock:
    """Load planned runs (id, number among those of the default configuration), and those that sessions have added."""
    stored = {run_id: store.load(run_id) for run_id, _ in planned}
    added = []
    while (record := store.load(next_default())) is not None:
        added.append(record)
    # As where it was measured: there is nothing to compare with.
    is_over = any(sentinel == 0 and _has_failed(stored[run_id]) for run_id, sentinel in planned)
    missing = set() if is_over else {run_id for run_id, record in stored.items() if record is None}
    return _StoredBlock([*(one for one in stored.values() if one is not None), *added], len(added), missing)


@dataclass(frozen=True)
class _Planned:
    """A planned run with all that is known before it runs."""

    row: PlanRow
    configuration: dict[str, Value]
    snapshot: Snapshot | None
    failure: RunRow  # why there is no snapshot
    sentinel: int | None  # number in its block
    run_id: str


class Measurer:
    """Measures planned runs of a case, rows of table `plan`, one after another; what the store has is not repeated."""

    def __init__(
        self,
        specs: StudySpecs,
        case: Case,
        bench: Bench,
        tier: str,
        store: RunStore,
        progress: BlockProgress,
        care: DeviceCare | None = None,
        on_filesystem: Callable[[Mapping[str, Value]], Bench] | None = None,
    ) -> None:
        self.specs, self.case, self.bench, self.tier = specs, case, bench, tier
        self.store, self.progress, self.care = store, progress, care or DeviceCare({})
        self.session = datetime.now(UTC).isoformat(timespec="seconds")
        self._on_filesystem, self._benches = on_filesystem, {"{}": bench}
        self._snapshots = _snapshot_finder(self._bench_of)
        self._sentinels: Counter[str] = Counter()  # by block
        self._default: _Planned | None = None
        self._is_prepared = False  # whether the device was, for runs that belong to no block

    def _bench_of(self, configuration: Mapping[str, Value]) -> Bench:
        """Return the bench with the file system that a configuration names; each is opened once."""
        settings = split_kernel(configuration)[0].get("filesystem", {})
        key = json.dumps(settings, sort_keys=True)
        if key not in self._benches:
            assert self._on_filesystem is not None  # noqa: S101 - who varies file systems can make them
            self._benches[key] = self._on_filesystem(settings)
        return self._benches[key]

    def measure(self, row: PlanRow) -> RunRecord:
        """Return the record of a planned run. Errors as in measure_block."""
        return self.measure_together([row])[0]

    def measure_together(self, rows: Sequence[PlanRow], *, prepares: bool = False) -> list[RunRecord]:
        """Return the records of runs that are compared with each other: those of one session, or all measured now.

        With `prepares` the device is prepared before the first of them that is measured, as before a block.
        """
        planned = [self._identify(row) for row in rows]
        records = [record for plan in planned if (record := self.store.load(plan.run_id)) is not None]
        if len(records) < len(planned) or len({record["run"].get("session") for record in records}) > 1:
            if prepares and not self._is_prepared:
                self.care.precondition(self.progress)
                self._is_prepared = True
            return [self._carry_out(plan, self.session, plan.row["position"]) for plan in planned]
        for plan, record in zip(planned, records, strict=True):
            self.progress.skip(record["run"], plan.configuration)
        return records

    def measure_block(self, rows: Sequence[PlanRow]) -> list[RunRecord]:
        """Return the records of a whole block, as the function measure_block does."""
        planned = [self._identify(row) for row in rows]
        default = next(row for row in rows if row["is_sentinel"])
        stored = _load_block(
            [(plan.run_id, plan.sentinel) for plan in planned], lambda: self._identify(default).run_id, self.store
        )
        self._sentinels[default["block_id"]] -= 1  # the one that was not there is the next to be added
        stored.tell(self.progress, {plan.row["config_id"]: plan.configuration for plan in planned})
        records, missing = stored.records, [plan for plan in planned if plan.run_id in stored.missing]
        if missing:
            records += self._measure_session(missing, [record["run"] for record in records], default)
        return sorted(records, key=lambda record: record["run"]["position"])

    def _measure_session(
        self, missing: list[_Planned], finished_runs: Sequence[RunRow], default: PlanRow
    ) -> Iterator[RunRecord]:
        """Yield the records of what is missing of a block, of which some runs are done."""
        is_interrupted = any(plan.sentinel is not None for plan in missing)
        warmup_s = self.specs.workloads[self.case.workload].warmup_s
        session = find_session(finished_runs, is_interrupted=is_interrupted, warmup_s=warmup_s)
        if finished_runs and session is None:
            planned, missing = len(missing), self._put_default_first(missing, default)
            self.progress.planned += len(missing) - planned
        first = max((run["position"] + 1 for run in finished_runs), default=0)
        self.care.precondition(self.progress)
        for position, plan in enumerate(missing, start=first):
            record = self._carry_out(plan, session or self.session, position)
            yield record
            if plan.sentinel == 0 and record["run"]["status"] != "ok":
                self.progress.say(f"{self.progress.name}  the rest is left out: there is nothing to compare with")
                return

    def _put_default_first(self, missing: list[_Planned], default: PlanRow) -> list[_Planned]:
        """Return what a new session measures: see `knobscope.stages.measure.sessions`."""
        first = next((plan for plan in missing if plan.sentinel is not None), None)
        if first is None:
            return [self._identify(default), *missing, self._identify(default)]
        return [first, *(plan for plan in missing if plan is not first)]

    def _identify(self, row: PlanRow) -> _Planned:
        configuration: dict[str, Value] = json.loads(row["configuration"])
        snapshot, failure = self._snapshots(configuration)
        sentinel = self._sentinels[row["block_id"]] if row["is_sentinel"] else None
        self._sentinels[row["block_id"]] += int(row["is_sentinel"])
        version = snapshot.version if snapshot else ""
        run_id = run_id_of(self.specs, self.case, configuration, version, row, sentinel)
        planned = _Planned(row, configuration, snapshot, failure, sentinel, run_id)
        if row["is_sentinel"]:
            self._default = planned
        return planned

    def _attempt(self, planned: _Planned, snapshot: Snapshot) -> RunRecord:
        """Measure a run, and once more when it fails: a busy machine, too, ends runs early. A refused value stays so.

        What is disturbed twice is the configuration's own doing (it fills the disk, say) only if the default
        configuration runs well afterwards; else UserError says what disturbs.
        """
        record = measure_run(self._bench_of(planned.configuration), planned.run_id, planned.configuration, snapshot)
        run = record["run"]
        is_refused = run["status"] == "rejected_value" and planned.sentinel is None and run["disturbance"] is None
        if run["status"] == "ok" or is_refused:
            return record
        self.progress.tell_repeat(run)
        record = measure_run(self._bench_of(planned.configuration), planned.run_id, planned.configuration, snapshot)
        if record["run"]["status"] == "ok" and run["disturbance"] is None:
            record["run"]["first_failure"] = f"{run['status']}: {run['reason']}"
        default = self._default
        if record["run"].get("disturbance") is not None and default is not None and default.snapshot is not None:
            bench, is_default = self._bench_of(default.configuration), planned.sentinel is not None
            check_id = planned.run_id if is_default else f"{planned.run_id}-check"
            check = measure_run(bench, check_id, default.configuration, default.snapshot)
            _require_undisturbed(check["run"])
            if is_default:
                return check
        return record

    def _carry_out(self, planned: _Planned, session: str, position: int) -> RunRecord:
        begin = time.monotonic()
        if planned.snapshot is None:
            record: RunRecord = {"run": {"started_at": now_text(), **planned.failure}}
        else:
            with self.care.reading_health() as health:
                record = self._attempt(planned, planned.snapshot)
            record["device_health"] = health
        record["run"] |= _identity(self.specs, self.case, planned, self.tier, session, position)
        _require_sentinel(record, planned.sentinel)
        self._require_same_programs(planned)
        self.store.save(planned.run_id, record)
        self.progress.report(record["run"], planned.configuration, time.monotonic() - begin)
        return record

    def _require_same_programs(self, planned: _Planned) -> None:
        """Raise UserError when a program or library was replaced: nobody can say which of the two was measured."""
        version = planned.snapshot.version if planned.snapshot else ""
        run_id = run_id_of(self.specs, self.case, planned.configuration, version, planned.row, planned.sentinel)
        if run_id != planned.run_id:
            raise UserError(
                f"a program, or a library of the load client, that {self.case.dbms} runs with "
                "was replaced during the measurement, as by an upgrade; call again: all runs of the study are measured "
                "with the new one"
            )


def _require_undisturbed(run: RunRow) -> None:
    """Raise UserError when the default configuration fails, too, after a run that was disturbed twice."""
    if run["status"] != "ok":
        sign = run["disturbance"] or "runs end early"
        raise UserError(
            f"something outside disturbs the measurement: {sign}. A run failed twice, and so did the default "
            f"configuration after it ({run['status']}: {run['reason']}). Correct that and call again: all finished "
            "runs are kept"
        )


def _has_failed(record: RunRecord | None) -> bool:
    return record is not None and record["run"]["status"] != "ok"


def _snapshot_finder(
    bench_of: Callable[[Mapping[str, Value]], Bench],
) -> Callable[[dict[str, Value]], tuple[Snapshot | None, RunRow]]:
    """Return a function configuration -> (snapshot, or None and why there is none); each is looked for once."""
    snapshots: dict[str, tuple[Snapshot | None, RunRow]] = {}

    def find(configuration: dict[str, Value]) -> tuple[Snapshot | None, RunRow]:
        bench = bench_of(configuration)
        values = load_values_of(bench.dbms, configuration)
        key = json.dumps(values, sort_keys=True)
        if key not in snapshots:
            try:
                snapshots[key] = (
                    prepare_snapshot(bench.dbms, bench.workload, values, bench.scratch, bench.generator, bench.room),
                    {},
                )
            except SnapshotFailedError as error:
                snapshots[key] = (
                    None,
                    {"status": "failed_start", "reason": str(error), "log_tail": error.log_tail},
                )
        return snapshots[key]

    return find


def _identity(specs: StudySpecs, case: Case, planned: _Planned, tier: str, session: str, position: int) -> RunRow:
    row = planned.row
    return {
        "run_id": planned.run_id,
        "study": specs.study.name,
        "block_id": row["block_id"],
        "phase": row["phase"],
        "round": row["round"],
        "position": position,
        "config_id": row["config_id"],
        "is_sentinel": row["is_sentinel"],
        "repeat": row["repeat"],
        "dbms": case.dbms,
        "device": case.device,
        "workload": case.workload,
        "dbms_version": planned.snapshot.version if planned.snapshot else "",
        "tier": tier,
        "workload_class": specs.workloads[case.workload].class_,
        "session": session,
        "machine": describe_machine(),
    }


def _require_sentinel(record: RunRecord, sentinel: int | None) -> None:
    """Raise UserError when a block has nothing to compare with; a sweep goes on without it, to the report."""
    run = record["run"]
    if sentinel == 0 and run["status"] != "ok" and run["phase"] != "sweep":
        raise UserError(
            f"the default configuration of {run['dbms']} does not run on {run['device']} "
            f"({run['status']}: {run['reason']}), so there is nothing to compare with.\n{run.get('log_tail', '')}"
        )


def write_block(
    records: Sequence[RunRecord], directory: Path, more: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
) -> None:
    """Write the tables of a block, and `more` tables by name, into a directory, which appears whole.

    A table about runs that has no rows gets no file: to open it would take `detect` as long as one with rows.
    """
    with whole_directory(directory) as part:
        of_runs = {table: rows for table in BLOCK_TABLES if (rows := _rows_of_all(records, table))}
        write_tables(part, {"runs": [record["run"] for record in records], **of_runs, **(more or {})})


def _rows_of_all(records: Sequence[RunRecord], table: str) -> list[Mapping[str, Any]]:
    return [{"run_id": record["run"]["run_id"], **row} for record in records for row in rows_of(record, table)]
