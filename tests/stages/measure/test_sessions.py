"""Which session a run belongs to, and what a session measures beside what is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from shipped_specs import shipped_study

from knobscope.errors import UserError
from knobscope.specs import StudySpecs
from knobscope.stages.measure import BlockProgress, Measurer, RunStore, block
from knobscope.stages.measure.machine import describe_machine
from knobscope.stages.measure.sessions import find_session
from knobscope.stages.plan import plan_sweep
from knobscope.stages.prepare import Snapshot
from knobscope.tables import PlanRow, RunRecord, RunRow


def run_of(minutes_ago: float, **more: Any) -> RunRow:
    started = datetime.now(UTC).replace(tzinfo=None) - timedelta(minutes=minutes_ago)
    row: RunRow = {"started_at": started.isoformat(), "machine": describe_machine(), "session": "first"}
    return {**row, **more}  # type: ignore[typeddict-item]


def test_an_interrupted_block_goes_on_when_it_is_taken_up_at_once() -> None:
    assert find_session([run_of(2)], is_interrupted=True, warmup_s=0) == "first"
    assert find_session([run_of(30)], is_interrupted=True, warmup_s=0) is None
    assert find_session([run_of(2, machine="another")], is_interrupted=True, warmup_s=0) is None
    assert find_session([run_of(2)], is_interrupted=False, warmup_s=0) is None
    assert find_session([], is_interrupted=True, warmup_s=0) is None
    assert find_session([run_of(14)], is_interrupted=True, warmup_s=0) is None
    assert (
        find_session([run_of(14)], is_interrupted=True, warmup_s=300) == "first"
    )  # one lasted so long, and one was cut off


@dataclass
class Measurements:
    """A store, and calls of `measure` on it whose runs take no time."""

    specs: StudySpecs
    store: RunStore
    scratch: Path
    break_minutes: float = 60.0
    calls: int = 0
    measured: list[str] = field(default_factory=list)
    status: str = "ok"

    def rows(self, values: list[int]) -> list[PlanRow]:
        """Plan the first block of a sweep over these values of `cache_size`."""
        study = self.specs.study
        choice = {
            **study.knobs["sqlite"],
            "cache_size": study.knobs["sqlite"]["cache_size"].model_copy(update={"values": values}),
        }  # type: ignore[union-attr]
        changed = study.model_copy(update={"knobs": {"sqlite": choice}})
        specs = StudySpecs(changed, self.specs.dbms, self.specs.devices, self.specs.workloads)
        rows = plan_sweep(specs, specs.cases[0], ["cache_size"])
        return [row for row in rows if row["block_id"] == rows[0]["block_id"]]

    def call(self, rows: list[PlanRow], killed_after: int | None = None) -> list[RunRecord]:
        """Return the records of one call of `measure`; with `killed_after` runs it dies."""
        self.calls += 1
        self.measured = []
        with fake_runs(self, killed_after):
            progress = BlockProgress("x", len(rows), {})
            bench: Any = type("Bench", (), {"scratch": self.scratch, "dbms": self.specs.dbms["sqlite"]})
            measurer = Measurer(self.specs, self.specs.cases[0], bench, "hdd", self.store, progress)
            measurer.session = f"call {self.calls}"
            try:
                return measurer.measure_block(rows)
            except KeyboardInterrupt:
                return []


@contextmanager
def fake_runs(measurements: Measurements, killed_after: int | None) -> Iterator[None]:
    """Let runs take no time, and a break lie between two calls."""

    def measure_run(_: Any, run_id: str, *__: Any) -> RunRecord:
        if len(measurements.measured) == killed_after:
            raise KeyboardInterrupt
        measurements.measured.append(run_id)
        back = timedelta(minutes=measurements.break_minutes * (100 - measurements.calls))
        started = datetime.now(UTC).replace(tzinfo=None) - back
        return {
            "run": {
                "started_at": started.isoformat(),
                "status": measurements.status,
                "throughput_ops": 1.0,
                "reason": "x",
                "disturbance": None,
            }
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block, "measure_run", measure_run)
        patch.setattr(block, "_snapshot_finder", lambda _: lambda _: (Snapshot(measurements.scratch, "1", ""), {}))
        yield


@pytest.fixture
def measurements(tmp_path: Path) -> Measurements:
    specs = shipped_study("quickstart")
    return Measurements(specs, RunStore(tmp_path / "store"), tmp_path)


def kinds(records: list[RunRecord], session: str) -> str:
    """Return the order of a session's runs: d for the default configuration, v for another one."""
    return "".join("d" if one["run"]["is_sentinel"] else "v" for one in records if one["run"]["session"] == session)


def positions(records: list[RunRecord]) -> list[int]:
    return [one["run"]["position"] for one in records]


def test_an_undisturbed_block_is_measured_as_planned(measurements: Measurements) -> None:
    rows = measurements.rows([-500, -8000, -32000, -128000])
    records = measurements.call(rows)
    assert [one["run"]["config_id"] for one in records] == [row["config_id"] for row in rows]
    assert positions(records) == list(range(len(rows)))
    assert measurements.call(rows) == records
    assert measurements.measured == []


def test_a_value_more_is_measured_between_runs_of_the_default_configuration(measurements: Measurements) -> None:
    first = measurements.call(measurements.rows([-500, -8000]))
    records = measurements.call(measurements.rows([-500, -8000, -32000]))
    assert kinds(records, "call 1") == kinds(first, "call 1")
    assert kinds(records, "call 2") == "dvd"
    assert positions(records) == list(range(len(first) + 3))
    assert measurements.call(measurements.rows([-500, -8000, -32000])) == records  # what was added is found again
    assert kinds(measurements.call(measurements.rows([-500, -8000, -32000, -128000])), "call 4") == "dvd"


@pytest.mark.slow
def test_a_block_that_was_cut_begins_with_the_next_planned_default(measurements: Measurements) -> None:
    rows = measurements.rows([-500, -8000, -32000, -128000])
    other = Measurements(measurements.specs, RunStore(measurements.scratch / "other"), measurements.scratch)
    whole = {one["run"]["run_id"] for one in other.call(rows)}
    measurements.call(rows, killed_after=2)
    measurements.call(rows, killed_after=2)
    records = measurements.call(rows)
    assert {one["run"]["run_id"] for one in records} == whole  # the same runs as without a kill
    for session in ("call 1", "call 2", "call 3"):
        assert kinds(records, session).startswith("d")
    assert positions(records) == list(range(len(rows)))


def test_a_block_that_goes_on_at_once_stays_one_session(measurements: Measurements) -> None:
    measurements.break_minutes = 0.0
    rows = measurements.rows([-500, -8000, -32000, -128000])
    for _ in range(4):
        measurements.call(rows, killed_after=1)
    records = measurements.call(rows)
    assert {one["run"]["session"] for one in records} == {"call 1"}
    assert [one["run"]["config_id"] for one in records] == [row["config_id"] for row in rows]


def test_a_block_of_the_sweep_whose_default_fails_ends_there(measurements: Measurements) -> None:
    rows = measurements.rows([-500, -8000, -32000, -128000])
    measurements.status = "failed_start"
    records = measurements.call(rows)
    assert [(one["run"]["is_sentinel"], one["run"]["status"]) for one in records] == [(True, "failed_start")]
    assert len(measurements.measured) == 2  # the default configuration is tried twice


def test_a_screening_block_whose_default_fails_says_why(measurements: Measurements) -> None:
    rows: list[PlanRow] = [{**row, "phase": "screen"} for row in measurements.rows([-500])]
    measurements.status = "failed_start"
    with pytest.raises(UserError, match="nothing to compare with"):
        measurements.call(rows)
