"""Parts of the data on other devices, real: servers on emulated devices, and what a run says of where its files lie."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from emulated import require_loops
from shipped_specs import shipped_dbms, shipped_workload

from knobscope.devices import OpenDevice, open_device, take_down
from knobscope.specs import Dbms, Device, Part, Study, Value, Workload, Writing
from knobscope.specs.completing.layout_knobs import spread_layout
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.prepare import prepare_snapshot
from knobscope.watch import SeveralWatch, open_watch

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.fixture
def devices(open_directory: Path) -> Iterator[dict[str, OpenDevice]]:
    """Two emulated devices, `here` for the data and `there` for parts of it."""
    with opened_devices(open_directory) as opened:
        yield opened


@contextmanager
def opened_devices(open_directory: Path) -> Iterator[dict[str, OpenDevice]]:
    require_loops()
    specs = [
        Device.model_validate(
            {
                "name": name,
                "description": "x",
                "tier": "auto",
                "emulate": {"image_directory": str(open_directory), "size": "512MiB"},
            }
        )
        for name in ("here", "there")
    ]
    with ExitStack() as stack:
        for spec in specs:
            stack.callback(take_down, spec, open_directory)
        yield {spec.name: stack.enter_context(open_device(spec, open_directory, "study")) for spec in specs}


@dataclass
class Rig:
    """A DBMS with a layout on two devices."""

    dbms: Dbms
    workload: Workload
    devices: dict[str, OpenDevice]

    def measure(self, run_id: str, configuration: dict[str, Value]) -> Any:
        here, there = self.devices["here"], self.devices["there"]
        snapshot = prepare_snapshot(self.dbms, self.workload, {}, here.directory)
        watches = (open_watch(one.block, 4096, "device") for one in (here, there))
        with SeveralWatch(next(watches), {"there": next(watches)}) as watch:
            bench = Bench(self.dbms, self.workload, here.directory, watch, device="here", layout={"there": there})
            record = measure_run(bench, run_id, configuration, snapshot)
        for one in (here, there):
            assert not (one.directory / "runs" / run_id).exists()
        return record


def lay_out(dbms: Dbms, parts: dict[str, list[str]]) -> Dbms:
    study = Study.model_validate(
        {
            "name": "study",
            "description": "x",
            "dbms": [dbms.name],
            "devices": ["here"],
            "workloads": {"ycsb-a": None},
            "knobs": {dbms.name: {}},
            "layout": {dbms.name: parts},
        }
    )
    return spread_layout(study, dbms)[1]


def effective_in(record: Any) -> dict[str, str]:
    return {row["knob"]: row["effective"] for row in record["effective_values"]}


def written_in(record: Any, device: str) -> int:
    rows = [row for row in record["layout_io"] if row["device"] == device and row["op"] == "write"]
    return sum(row["bytes"] or 0 for row in rows)


def test_postgresql_log_and_table_lie_where_the_layout_says(
    postgresql: Dbms, short_workload: Workload, devices: dict[str, OpenDevice]
) -> None:
    dbms = lay_out(postgresql, {"log": ["there"], "table.usertable": ["there"], "temp": ["there"]})
    rig = Rig(dbms, short_workload, devices)
    apart: dict[str, Value] = {"device.log": "there", "device.table.usertable": "there", "device.temp": "there"}
    together: dict[str, Value] = dict.fromkeys(apart, "data")

    record = rig.measure("together", together)
    assert record["run"]["status"] == "ok", record["run"]
    assert effective_in(record) == together
    assert written_in(record, "here") > 0
    # The file system there may still write what came before the run: that its folders were made.
    assert written_in(record, "there") < 0.1 * written_in(record, "here")

    record = rig.measure("apart", apart)
    assert record["run"]["status"] == "ok", record["run"]
    assert effective_in(record) == apart
    assert written_in(record, "there") > 0
    number = f"{devices['there'].block.major}:{devices['there'].block.minor}"
    logs = [row for row in record["files"] if row["role"] == "log"]
    assert logs
    assert {row["device"] for row in logs} == {number}
    assert all(row["file"].startswith("pg_wal/") for row in logs)


def test_part_that_does_not_lie_where_it_should_makes_the_run_invalid(
    postgresql: Dbms, short_workload: Workload, devices: dict[str, OpenDevice]
) -> None:
    # The server is told something that has nothing to do with the directory of its data, which it names when asked.
    deaf = Part(
        description="x",
        writing=Writing(argv=["-c", "cluster_name={value}"]),
        setting="data_directory",
        source="https://www.postgresql.org/docs/15/",
    )
    dbms = lay_out(postgresql.model_copy(update={"parts": {"log": deaf}}), {"log": ["there"]})
    run = Rig(dbms, short_workload, devices).measure("deaf", {"device.log": "there"})["run"]
    assert run["status"] == "invalid"
    assert "device.log=there reads back data" in run["reason"]


@pytest.mark.long
def test_mariadb_redo_log_and_temporary_files_lie_where_the_layout_says(
    short_workload: Workload, devices: dict[str, OpenDevice]
) -> None:
    mariadb = shipped_dbms("mariadb")
    rig = Rig(lay_out(mariadb, {"log": ["there"], "temp": ["there"]}), short_workload, devices)
    record = rig.measure("apart", {"device.log": "there", "device.temp": "there"})
    assert record["run"]["status"] == "ok", record["run"]
    assert effective_in(record) == {"device.log": "there", "device.temp": "there"}
    assert written_in(record, "there") > 0
    assert any(row["file"] == "ib_logfile0" for row in record["files"] if row["role"] == "log")


@pytest.mark.parametrize("name", ["postgresql", "mariadb", "sqlite"])
def test_parts_lie_below_a_directory_of_any_name(name: str, short_workload: Workload, open_directory: Path) -> None:
    directory = open_directory / 'it\'s; a "path"'
    directory.mkdir(0o755)
    dbms = lay_out(shipped_dbms(name), {"table.usertable": ["there"]})
    with opened_devices(directory) as devices:
        rig = Rig(dbms, short_workload, devices)
        for device in ("data", "there"):
            record = rig.measure(f"on-{device}", {"device.table.usertable": device})
            assert record["run"]["status"] == "ok", record["run"]
            assert effective_in(record) == {"device.table.usertable": device}


@pytest.mark.parametrize("name", ["postgresql", "mariadb", "sqlite"])
def test_a_table_of_tpcc_lies_where_the_layout_says(name: str, devices: dict[str, OpenDevice]) -> None:
    dbms = lay_out(shipped_dbms(name), {"table.history": ["there"]})
    small = {"records": 1, "threads": 2, "warmup_s": 0.5, "measure_s": 2, "parameters": {"scale": 100}}
    workload = shipped_workload("tpcc", **small)
    rig = Rig(dbms, workload, devices)
    for device in ("data", "there"):
        record = rig.measure(f"on-{device}", {"device.table.history": device})
        assert record["run"]["status"] == "ok", record["run"]
        assert effective_in(record) == {"device.table.history": device}
        block = devices["there" if device == "there" else "here"].block
        history = [row for row in record["files"] if row["table_name"] == "history"]
        assert {row["device"] for row in history if row["op"] == "write"} <= {f"{block.major}:{block.minor}"}
        calls = [row["calls"] for row in record["statements"] if row["table_name"] == "history"]
        assert sum(calls) > 0
    assert written_in(record, "there") > 0 or name == "postgresql"  # which writes tables at its checkpoints
