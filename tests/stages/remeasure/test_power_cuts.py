"""What real DBMSs lose when the power is cut, and what is made of it."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from emulated import require_loops
from json_documents import read_document
from shipped_specs import ROOT, shipped_dbms

from knobscope.cli import main
from knobscope.commands.durability import Tried, list_settings
from knobscope.devices import bring_up, take_down
from knobscope.devices.mounts import list_mounts
from knobscope.specs import Device, Emulation, Workload
from knobscope.stages.measure import PowerCut, loses_more, open_cutter


def cut(name: str, workload: Workload, directory: Path, changes: dict[str, Any], cuts: int) -> list[PowerCut]:
    dbms = shipped_dbms(name)
    with open_cutter(directory) as cutter:
        done, reason = cutter(dbms, workload, {knob: spec.default for knob, spec in dbms.knobs.items()} | changes, cuts)
    assert (len(done), reason) == (cuts, "")
    assert all(power_cut.acknowledged > 0 for power_cut in done)
    return done


@pytest.mark.real
@pytest.mark.long
def test_power_cuts_do_not_keep_devices_of_others_in_use(
    short_workload: Workload, open_directory: Path, tmp_path: Path
) -> None:
    require_loops()
    dbms = shipped_dbms("sqlite")
    emulation = Emulation(image_directory=str(tmp_path), size="64MiB")
    device = Device(name="loop", description="of another study", tier="auto", emulate=emulation)
    bring_up(device, tmp_path)
    with open_cutter(open_directory) as cutter:
        done, _ = cutter(dbms, short_workload, {knob: spec.default for knob, spec in dbms.knobs.items()}, 1)
        assert len(done) == 1
        assert take_down(device, tmp_path)


@pytest.mark.real
def test_sqlite_keeps_what_it_flushes_and_loses_the_rest(short_workload: Workload, open_directory: Path) -> None:
    # The default, `full`, may lose the last row: it does not sync the directory of which the journal is removed.
    extra = cut("sqlite", short_workload, open_directory, {"synchronous": "extra"}, 1)
    assert [power_cut.lost for power_cut in extra] == [0]
    for _ in range(10):  # others may have called `sync` just before a cut
        if [
            power_cut.lost for power_cut in cut("sqlite", short_workload, open_directory, {"synchronous": "off"}, 1)
        ] != [0]:
            break
    else:
        pytest.fail("nothing was lost")
    assert list(open_directory.iterdir()) == []
    assert not any(mount.point.is_relative_to(open_directory) for mount in list_mounts())


@pytest.mark.parametrize(
    ("lost", "of_default", "more"),
    [
        ([0, 0, 0, 0, 0], [0, 0, 0, 0, 0], False),
        ([1, 0, 0, 0, 0], [0, 0, 0, 0, 0], False),  # what SQLite's own default does, now and then
        ([140, 20, 3, 70, 0], [0, 0, 0, 0, 0], True),
        ([140, 20, 3, 70, 44], [0, 0, 1, 0, 0], True),
        ([140, 20, 3, 70, 44], [60, 0, 33, 150, 90], False),
        ([None, None, None, 0, None], [2, 0, 1, 0, 3], True),
        ([5, 3, 9, 4, 1], [None, None, None, None, None], False),
        ([5, 3, 9], [], False),
    ],
)
def test_a_loss_counts_against_that_of_the_default(
    lost: list[int | None], of_default: list[int | None], more: bool
) -> None:
    assert loses_more([PowerCut(200, rows) for rows in lost], [PowerCut(200, rows) for rows in of_default]) == more


def test_a_setting_is_tried_with_the_knobs_without_which_it_has_no_effect(short_workload: Workload) -> None:
    mariadb = shipped_dbms("mariadb")
    settings = {
        (knob, value): (risk, change) for knob, value, risk, change in list_settings(mariadb, short_workload, [])
    }
    assert settings["sync_binlog", 1000] == (True, {"log_bin": True})
    assert settings["sync_binlog", 1] == (False, {"log_bin": True})
    assert settings["innodb_doublewrite", False] == (True, {})
    assert settings[None, None] == (False, {})  # sync_binlog is 0, which has no effect without a log


#: Commits rows in a process that sets pragmas, cuts the power after the last commit, and prints how many rows are left.
COMMIT = """
import sqlite3, subprocess, sys
from pathlib import Path
from knobscope.devices import open_powered_disk
from knobscope.processes import keep_mounts_private

keep_mounts_private(None)
with open_powered_disk(Path(sys.argv[1]), 64 << 20) as disk:
    path = disk.directory / "x.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("create table t (x)")
    subprocess.run(["sync", "-f", str(disk.directory)], check=True)
    for pragma in sys.argv[2:]:
        connection.execute(f"pragma {pragma}").fetchall()
    for row in range(3):
        connection.execute("insert into t values (?)", (row,))
    disk.cut()
    connection.close()
    disk.restart()
    connection = sqlite3.connect(path)
    print(connection.execute("select count(*) from t").fetchone()[0])
    connection.close()
"""


@pytest.mark.real
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"synchronous": "extra"},
        {"locking_mode": "exclusive"},
        {"journal_mode": "truncate"},
        {"journal_mode": "persist"},
        {"journal_mode": "wal"},
        {"journal_mode": "wal", "synchronous": "normal"},
    ],
    ids=lambda changes: " ".join(changes.values()) or "default",
)
def test_sqlite_loses_the_last_row_exactly_where_its_spec_marks_a_risk(
    changes: dict[str, str], open_directory: Path
) -> None:
    sqlite = shipped_dbms("sqlite")
    pragmas = [f"{knob}={value}" for knob, value in changes.items()]
    command = [sys.executable, "-c", COMMIT, str(open_directory), *pragmas]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert (int(done.stdout) < 3) == bool(sqlite.list_risks(changes, sqlite.knobs))


def test_the_default_of_sqlite_is_marked_and_what_flushes_more_is_not(short_workload: Workload) -> None:
    sqlite = shipped_dbms("sqlite")
    settings = {(knob, value): risk for knob, value, risk, _ in list_settings(sqlite, short_workload, [])}
    assert settings[None, None]
    safe = [
        ("synchronous", "extra"),
        ("journal_mode", "truncate"),
        ("journal_mode", "persist"),
        ("journal_mode", "wal"),
    ]
    assert not any(settings[setting] for setting in safe)
    assert sqlite.list_risks({"locking_mode": "exclusive"}, sqlite.knobs) == []
    assert sqlite.list_risks({"journal_mode": "wal", "synchronous": "normal"}, sqlite.knobs) == ["synchronous"]


@pytest.mark.real
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "changes", "loses"),
    [
        ("postgresql", {}, False),
        ("postgresql", {"synchronous_commit": "off"}, True),
        ("postgresql", {"fsync": False}, True),
        ("mariadb", {"innodb_flush_log_at_trx_commit": 1}, False),
        ("mariadb", {"innodb_flush_log_at_trx_commit": 2}, True),  # nothing that kill -9 shows
        ("redis", {"appendonly": True, "appendfsync": "always"}, False),
        ("redis", {"appendonly": True, "appendfsync": "no"}, True),
    ],
)
def test_servers_lose_what_they_do_not_flush(
    name: str, changes: dict[str, Any], loses: bool, short_workload: Workload, open_directory: Path
) -> None:
    done = cut(name, short_workload, open_directory, changes, 3)
    assert any(power_cut.lost != 0 for power_cut in done) == loses, done


@pytest.mark.parametrize(
    ("is_risky", "lost", "mark"),
    [
        (True, 3, "; marked as a risk"),
        (False, 3, "; the spec does not mark it as a risk"),
        (False, 0, ""),
    ],
)
def test_a_default_that_loses_rows_is_said_to_be_no_risk_by_the_spec(is_risky: bool, lost: int, mark: str) -> None:
    cuts = [PowerCut(100, lost)] * 5
    default = Tried(knob=None, value=None, is_risky=is_risky, change={}, cuts=cuts, failure="")
    assert default.describe(default).endswith(("at most" if lost else "power cuts") + mark)


@pytest.mark.real
@pytest.mark.long
def test_a_value_that_loses_rows_and_is_not_marked_ends_the_command_with_1(
    tmp_path: Path, open_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "specs/dbms/sqlite.yaml").read_text()
    assert "durability: {off: true, normal: true" in text
    spec = tmp_path / "sqlite.yaml"
    spec.write_text(text.replace("durability: {off: true, normal: true", "durability: {normal: true"))
    arguments = ["--knob", "synchronous", "--cuts", "5", "--root", str(ROOT), "--directory", str(open_directory)]
    assert main(["durability", str(spec), *arguments, "--json", str(tmp_path / "cuts.json")]) == 1
    lines = capsys.readouterr().out.replace("\u00a0", " ").splitlines()
    assert lines[0].startswith("default configuration: ")
    assert "; marked as a risk" in lines[0]
    (careless,) = (line for line in lines if line.startswith("synchronous = off: "))
    assert careless.endswith("WRONG: the spec does not mark it as a risk")
    tried = read_document("durability", (tmp_path / "cuts.json").read_text())["settings"]
    assert "off" in [row["value"] for row in tried if row["loses"]]


@pytest.mark.real
def test_a_call_that_is_terminated_leaves_nothing(open_directory: Path) -> None:
    command = [sys.executable, "-m", "knobscope", "durability", "sqlite", "--root", str(ROOT)]
    command += ["--directory", str(open_directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.communicate()[1] == ""
    assert process.returncode == 128 + signal.SIGTERM
    assert list(open_directory.iterdir()) == []


@pytest.mark.real
def test_a_machine_that_cannot_cut_the_power_says_so(open_directory: Path) -> None:
    command = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable, "-m", "knobscope"]
    command += [
        "durability",
        "sqlite",
        "--knob",
        "synchronous",
        "--root",
        str(ROOT),
        "--directory",
        str(open_directory),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "default configuration: not tried: this machine cannot: no mount namespace can be made" in done.stdout
    assert done.stderr == ""
