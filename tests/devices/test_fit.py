"""Models fitted to published figures, checked in simulated time: nothing here needs root."""

import csv
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from knobscope.devices.fit import Figures, find_misfits, fit_device, fit_model, read_figures
from knobscope.devices.program import early_arguments, find_program, model_arguments
from knobscope.errors import UserError
from knobscope.specs import Device, FlashModel
from knobscope.specs.checks.emulation_limits import describe_limits
from knobscope.specs.models.device_figures import random_read_iops, random_write_iops, sequential_write_rate
from knobscope.specs.models.quantity import Duration
from knobscope.specs.models.transport import WAIT_US, Transport, write_transport

pytestmark = pytest.mark.real  # the simulator is built by `make setup`

DRIVE = Figures("DRIVE_1", "nvme_ssd", 1, 2.0e9, 200_000, 250_000, 800e6, 40_000, 60_000)
HEADER = "model,dev,rbps,rrandiops,rseqiops,wbps,wrandiops,wseqiops\n"
TABLE = Path(__file__).parents[3] / "shared/data/iocost_device_models.csv"


def simulate(model: FlashModel, operation: str, length: int, depth: int, order: str) -> float:
    """Return bytes per second in simulated time, in the sustained state."""
    command = [str(find_program("simulate")), str(1 << 30), operation, str(length), str(depth), order, "5", "5"]
    done = subprocess.run([*command, *model_arguments(model)], capture_output=True, text=True, check=True)
    return float(done.stdout) * length


def test_fitted_model_comes_to_the_figures() -> None:
    model = fit_model(DRIVE)
    assert simulate(model, "read", 4096, 256, "random") / 4096 == pytest.approx(DRIVE.rrandiops, rel=0.01)
    assert simulate(model, "read", 4096, 256, "sequential") / 4096 == pytest.approx(DRIVE.rseqiops, rel=0.01)
    assert simulate(model, "read", 131072, 256, "sequential") == pytest.approx(DRIVE.rbps, rel=0.01)
    assert simulate(model, "write", 4096, 256, "random") / 4096 == pytest.approx(DRIVE.wrandiops, rel=0.01)
    assert simulate(model, "write", 4096, 256, "sequential") / 4096 == pytest.approx(DRIVE.wseqiops, rel=0.01)
    assert simulate(model, "write", 131072, 256, "sequential") == pytest.approx(DRIVE.wbps, rel=0.01)
    assert find_misfits(DRIVE, model) == []


@pytest.mark.parametrize("depth", [1, 8, 32])
def test_closed_forms_say_what_the_simulation_does(depth: int) -> None:
    model = fit_model(DRIVE)
    assert random_read_iops(model, depth) == pytest.approx(
        simulate(model, "read", 4096, depth, "random") / 4096, rel=0.03
    )
    assert random_write_iops(model, depth) == pytest.approx(
        simulate(model, "write", 4096, depth, "random") / 4096, rel=0.03
    )
    assert sequential_write_rate(model, depth=depth) == pytest.approx(
        simulate(model, "write", 131072, depth, "sequential"), rel=0.03
    )


def test_fitted_device_is_a_valid_spec_that_names_its_source() -> None:
    device = fit_device(DRIVE, "figures.csv")
    again = Device.model_validate(device.model_dump(mode="json", exclude_defaults=True))
    assert (again.name, again.tier, again.source) == ("drive-1", "nvme_ssd", ["figures.csv: DRIVE_1"])


def test_figures_that_contradict_each_other_are_named() -> None:
    odd = Figures("ODD", "sata_ssd", 1, 300e6, 100_000, 100_000, 300e6, 50_000, 50_000)  # 100,000 reads are 410 MB/s
    assert [misfit.figure for misfit in find_misfits(odd, fit_model(odd))] == ["rrandiops", "rseqiops"]


def test_medians_of_several_rows(tmp_path: Path) -> None:
    table = tmp_path / "figures.csv"
    rows = [f"D,sda,{n}00,{n}0,{n}1,{n}2,{n}3,{n}4\n" for n in (1, 2, 9)]
    table.write_text(HEADER + "".join(rows))
    assert read_figures(table, "D") == Figures("D", "sata_ssd", 3, 200, 20, 21, 22, 23, 24)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,rbps\nD,1\n", r"5 problems .*\n.*figures.csv:1: rrandiops: found no such column; expected this column"),
        (HEADER + "\nD,sda,1,2,x,4,5,6\n", r"figures.csv:3: rseqiops: found 'x'; expected a number from 1 to 100,000"),
        (HEADER + "D,sda,inf,1e12,3,4,5,6\n", r"2 problems .*\n.*rbps: found 'inf'; .*\n.*rrandiops: found '1e12';"),
        (HEADER + "D,sda,1,2\n", r"figures.csv:2: file: found 4 cells; expected 8, as in the header"),
        (HEADER, r"figures.csv:1: file: found a header and no rows; expected a row per measurement of a drive"),
        (HEADER + "E,sda,1,2,3,4,5,6\n", r"has no drive 'D'; expected .*E"),
    ],
)
def test_wrong_tables_are_explained(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "figures.csv").write_text(text)
    with pytest.raises(UserError, match=message):
        read_figures(tmp_path / "figures.csv", "D")


@pytest.mark.parametrize(("drive", "name"), [("Ünit 7", "nit-7"), ("7_GB", "drive-7-gb"), ("***", "drive")])
def test_a_drive_of_any_name_becomes_a_device(tmp_path: Path, drive: str, name: str) -> None:
    table = tmp_path / "figures.csv"
    table.write_text(f"\ufeff{HEADER}{drive},nvme0n1,2e9,200000,250000,8e8,40000,60000\n".replace(",", ";"))
    assert fit_device(read_figures(table, drive), "figures.csv").name == name


def test_limits_are_those_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    device = fit_device(DRIVE, "figures.csv")
    assert "was not measured yet" in describe_limits(device)[0]
    write_transport(Transport(40, 30, 50, 20, 0, 100_000, 90_000, 1e10, 1e10))
    assert describe_limits(device) == [
        "drive-1: random reads are not emulated reliably here above 87,000 IOPS; the device has 200,000 at depth",
        "drive-1: a write cannot be emulated here below 30 µs; the device takes 22 µs",
    ]
    write_transport(Transport(10, 10, 10, 5, 0, 1e6, 1e6, 1e10, 1e10))
    assert describe_limits(device) == []


def test_a_device_answers_early_by_what_its_way_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps from 60 us of a read on, which are the way and waking; from WAIT_US on all processors do."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    times = {"read": f"{(60 + WAIT_US) / 2}us", "write": f"{2 * WAIT_US}us", "flush": "0us"}
    model = FlashModel(kind="flash", channels=1, cache="1MiB", drain="1GB/s", **times)
    assert early_arguments(model) == []  # nothing is known of the way
    way = Transport(40, 30, 50, 20, 30, 1e5, 2e5, 131072 / 72e-6, 131072 / 36e-6, 2, 3, queue=((1, 0.5), (7, 4)))
    way = replace(way, page_queue=((3, 1.5),), outside=(0.1, 0.2, 0.3))
    write_transport(way)
    assert early_arguments(model) == [
        "--early=55000,60000,50000",
        "--page=2000,3000,0",
        "--work=10000,5000,5000",
        "--page-work=2000,1000,0",
        "--spin=20000",
        "--outside=0.1000,0.2000,0.3000",
        "--queue=1=0.5000,7=4.0000",
        "--page-queue=3=1.5000",
    ]
    instant = model.model_copy(update={"read": Duration("0us"), "write": Duration("0us")})
    assert early_arguments(instant)[0] == "--early=40000,30000,50000"


@pytest.mark.skipif(not TABLE.is_file(), reason=f"no {TABLE}: figures of others are not part of the repository")
def test_most_drives_of_the_published_table_are_met() -> None:
    drives = {row["model"] for row in csv.DictReader(TABLE.open())}
    figures = [read_figures(TABLE, drive) for drive in drives]
    misfits = [misfit for one in figures for misfit in find_misfits(one, fit_model(one), 0.1)]
    assert len(figures) == 36
    assert {misfit.figure for misfit in misfits} <= {"wseqiops", "wrandiops"}
