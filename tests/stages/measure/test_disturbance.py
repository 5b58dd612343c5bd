"""Runs that something outside ends: measured again, and never booked as a configuration's failure."""

import json
import os
import signal
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from knobscope.devices import find_block_device
from knobscope.errors import UserError
from knobscope.specs import Program, Workload, load_study
from knobscope.stages.measure import BlockProgress, Measurer, RunStore, open_measurer
from knobscope.stages.measure.run import Bench
from knobscope.stages.plan import plan_sweep
from knobscope.stages.prepare import load_values_of, prepare_snapshot
from knobscope.tables import PlanRow
from knobscope.watch import open_watch
from knobscope.workflow.pipeline import Pipeline

ROOT = Path(__file__).parents[3]
MARK = "KNOBSCOPE_TEST_MARK"

pytestmark = pytest.mark.real


@contextmanager
def opened(folder: Path, workload: Workload) -> Iterator[tuple[Measurer, list[PlanRow], RunStore]]:
    """A measurer of SQLite on a directory; the default configuration and one other to be measured; their store."""
    specs = load_study(ROOT / "specs/studies/quickstart.yaml", ROOT)
    specs.workloads["ycsb-a"] = workload
    dbms, case = specs.dbms["sqlite"], specs.cases[0]
    rows = plan_sweep(specs, case, ["synchronous"])
    default = next(row for row in rows if row["is_sentinel"])
    other = next(row for row in rows if not row["is_sentinel"] and row["block_id"] == default["block_id"])
    for row in (default, other):
        prepare_snapshot(dbms, workload, load_values_of(dbms, json.loads(row["configuration"])), folder)
    store = RunStore(folder / "store")
    with open_watch(find_block_device(ROOT), unit=4096, scope="process", prefer="procfs") as watch:
        bench = Bench(dbms, workload, folder, watch)
        yield Measurer(specs, case, bench, "hdd", store, BlockProgress("test", 2, {})), [default, other], store


def marked_clients(mark: str) -> list[int]:
    """Load clients that inherited our mark, in what phase ever."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes() and (process / "comm").read_text() == "java\n":
                found.append(int(process.name))
        except OSError:
            continue
    return found


@contextmanager
def whenever_a_client_runs(act: Callable[[int], None], times: int) -> Iterator[list[int]]:
    """Do something to so many load clients of ours, one after another, half a second after each was seen."""
    mark, ended, seen = uuid.uuid4().hex, threading.Event(), list[int]()

    def wait() -> None:
        while not ended.wait(0.05) and len(seen) < times:
            for pid in marked_clients(mark):
                if pid not in seen and not ended.wait(0.5):
                    seen.append(pid)
                    act(pid)

    thread = threading.Thread(target=wait)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark)
        thread.start()
        try:
            yield seen
        finally:
            ended.set()
            thread.join()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_a_client_that_is_killed_once_costs_no_run(
    open_directory: Path, short_workload: Workload, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(open_directory, short_workload) as (measurer, rows, _), whenever_a_client_runs(kill, 1) as killed:
        records = [measurer.measure(row) for row in rows]
    assert len(killed) == 1
    assert [record["run"]["status"] for record in records] == ["ok", "ok"]
    assert not any("first_failure" in record["run"] for record in records)
    assert "the load client was ended by SIGKILL, which knobscope did not send" in capsys.readouterr().err


def test_what_fails_once_by_chance_is_measured_again_before_it_counts(
    open_directory: Path, short_workload: Workload, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(open_directory, short_workload) as (measurer, rows, _):
        measurer.measure(rows[0])
        with whenever_a_client_runs(lambda pid: os.kill(pid, signal.SIGALRM), 1) as ended:  # nobody's usual signal
            record = measurer.measure(rows[1])
    assert len(ended) == 1
    assert record["run"]["status"] == "ok"
    assert record["run"]["first_failure"].startswith("failed_run: the load client ended with code ")
    assert "measured again, once" in capsys.readouterr().err


@pytest.mark.long
def test_what_kills_every_client_ends_the_study_and_blames_no_configuration(
    open_directory: Path, short_workload: Workload
) -> None:
    with opened(open_directory, short_workload) as (measurer, rows, store):
        measurer.measure(rows[0])
        with (
            whenever_a_client_runs(kill, 9) as killed,
            pytest.raises(UserError, match=r"something outside disturbs the measurement: .*SIGKILL"),
        ):
            measurer.measure(rows[1])
        assert len(killed) == 3  # the run, its repetition, the default configuration
        assert len(list(store.directory.glob("*.json"))) == 1
        assert measurer.measure(rows[1])["run"]["status"] == "ok"


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_ends_the_study_and_blames_no_configuration(open_directory: Path, short_workload: Workload) -> None:
    small = open_directory / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=711", "none", small], check=True)

    def fill(_: int) -> None:
        with (small / "filler").open("ab") as file, pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(1 << 20))
                file.flush()

    writing = short_workload.model_copy(
        update={"parameters": {**short_workload.parameters, "updateproportion": 1.0, "readproportion": 0.0}}
    )
    try:
        with opened(small, writing) as (measurer, rows, store):
            measurer.measure(rows[0])
            with whenever_a_client_runs(fill, 9), pytest.raises(UserError) as caught:
                measurer.measure(rows[1])
            assert "space" in str(caught.value) or "full" in str(caught.value) or "MiB free" in str(caught.value)
            assert len(list(store.directory.glob("*.json"))) == 1
            (small / "filler").unlink()
            assert measurer.measure(rows[1])["run"]["status"] == "ok"
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_program_that_is_replaced_during_the_measurement_ends_it(
    open_directory: Path, short_workload: Workload
) -> None:
    program = open_directory / "program"
    program.write_text("of one version")
    with opened(open_directory, short_workload) as (measurer, rows, store):
        sqlite = measurer.specs.dbms["sqlite"]
        measurer.specs.dbms["sqlite"] = sqlite.model_copy(update={"paths": {"more": Program(find=[str(program)])}})
        measurer.measure(rows[0])
        with (
            whenever_a_client_runs(lambda _: program.write_text("of another one"), 1),
            pytest.raises(UserError, match="was replaced during the measurement"),
        ):
            measurer.measure(rows[1])
        assert len(list(store.directory.glob("*.json"))) == 1


def test_a_program_that_is_replaced_between_two_blocks_ends_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block is a process of its own, which knows the program that it finds, and not that of the blocks before."""
    (tmp_path / "program").write_text("of one version")
    specs = load_study(ROOT / "specs/studies/quickstart.yaml", ROOT)
    more = {"paths": {"more": Program(find=[str(tmp_path / "program")])}}
    specs.dbms["sqlite"] = specs.dbms["sqlite"].model_copy(update=more)
    monkeypatch.setenv("KNOBSCOPE_PROGRAMS", "{}")
    Pipeline(specs, "specs/studies/quickstart.yaml").check_versions(SimpleNamespace(local_exec=True))
    progress = BlockProgress("test", 2, {})
    for content, error in (("of one version", FileNotFoundError), ("of another one", UserError)):
        (tmp_path / "program").write_text(content)
        says = "was replaced after this call of snakemake began" if error is UserError else "no-profile"
        with (
            pytest.raises(error, match=says),
            open_measurer(specs, specs.cases[0], ROOT, tmp_path / "no-profile", tmp_path, progress),
        ):
            pass
