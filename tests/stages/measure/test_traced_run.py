"""A run whose requests are kept, and what of a study asks for it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from knobscope.commands.trace import open_trace, profile_trace
from knobscope.devices import find_block_device
from knobscope.errors import UserError
from knobscope.generators import SessionOperation
from knobscope.specs import Case, Dbms, StudySpecs, Workload, load_study
from knobscope.stages.measure.operation_io import locate_sessions
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.measure.store import run_id_of
from knobscope.stages.prepare import Snapshot
from knobscope.tables import PlanRow
from knobscope.watch import open_watch


@pytest.mark.real
def test_trace_of_a_run_has_its_requests_and_files(
    sqlite: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], tmp_path: Path
) -> None:
    snapshot = prepare(sqlite, short_workload, tmp_path)
    traces = tmp_path / "traces"
    with open_watch(find_block_device(tmp_path), 4096, "process", trace=traces) as watch:
        if watch.reason is not None:
            pytest.skip(f"no BPF: {watch.reason}")
        bench = Bench(sqlite, short_workload, tmp_path, watch, traces=traces)
        record = measure_run(bench, "run", {"journal_mode": "wal", "synchronous": "full"}, snapshot)
    assert record["run"]["status"] == "ok", record["run"]
    with open_trace(traces / "run") as trace:
        profile = profile_trace(trace, 4096)
    unseen = record["run"]["starts_without_completion"]
    for kept, counted in zip(profile["io_profile"], record["io_profile"], strict=True):
        assert counted["requests"] - unseen <= kept["requests"] <= counted["requests"]
    assert sum(row["requests"] for row in profile["io_profile"]) > 0
    files = (
        duckdb.read_parquet(str(traces / "run" / "events.parquet")).filter("owner = 'own'").unique("file").fetchall()
    )
    assert any(name and name.endswith("-wal") for (name,) in files), files


@pytest.fixture
def quickstart() -> StudySpecs:
    root = Path(__file__).parents[3]
    return load_study(root / "specs/studies/quickstart.yaml", root)


def test_only_runs_of_the_sweep_are_other_runs_when_traced(quickstart: StudySpecs) -> None:
    traced = replace(quickstart, study=quickstart.study.model_copy(update={"trace": True}))
    case = Case(
        *(names[0] for names in (quickstart.study.dbms, quickstart.study.devices, [*quickstart.study.workloads]))
    )

    def identify(specs: StudySpecs, phase: str) -> str:
        row: PlanRow = {"block_id": f"{case}/{phase}-0-0", "phase": phase, "repeat": 0}
        return run_id_of(specs, case, {}, "1", row, None)

    assert identify(traced, "sweep") != identify(quickstart, "sweep")
    assert identify(traced, "screen") == identify(quickstart, "screen")


def test_a_session_is_found_by_the_number_that_the_kernel_gives_its_thread(postgresql: Dbms) -> None:
    payment = SessionOperation(7, "PAYMENT", 1, 2)
    assert locate_sessions([payment], {7: 4007, 8: 4008}, postgresql) == [(4007, "PAYMENT", 1, 2)]
    with pytest.raises(UserError, match="postgresql: session_thread: found 7; expected the number of a thread of the"):
        locate_sessions([payment], {8: 4008}, postgresql)
