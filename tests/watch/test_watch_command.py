"""`knobscope watch` from the outside."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from json_documents import read_document
from loop_devices import Loop, Syncs, row_of
from waiting import PATIENCE_S, wait_until

from knobscope.cli import main

pytestmark = pytest.mark.real

KEYS = {
    *("command", "device", "duration_s", "monitor", "lost_events", "unattributed_share", "cpu_s"),
    *("io_profile", "io_sizes", "queue_depth", "io_latency", "queue_wait", "files", "series"),
}
FIO = ["fio", "--name=job", "--output=/dev/null", "--size=8m"]


def watch(*arguments: str | Path) -> int:
    return main(["watch", *(str(argument) for argument in arguments)])


def read(path: Path) -> Any:
    return read_document("watch", path.read_text())


def test_json_agrees_with_fio(loop: Loop, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = [*FIO, f"--filename={loop.node}", "--rw=randwrite", "--bs=4k", "--direct=1", "--number_ios=1009"]
    assert watch("--device", loop.node, "--json", tmp_path / "out.json", "--", *job) == 0
    profile = read(tmp_path / "out.json")
    assert set(profile) >= KEYS
    assert profile["command"] == job
    assert profile["io_sizes"] == [{"op": "write", "bytes": 4096, "requests": 1009}]
    assert row_of(profile, "write")["own_requests"] == 1009
    out, shown = capfd.readouterr()
    assert "write sizes: 4 KiB 100 %" in shown
    assert out == ""


def test_the_commands_figures_and_the_devices_stand_apart(
    loop: Loop, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Another program reads from the device meanwhile: that is in the device's figures, and not in the command's."""
    reads = [*FIO, f"--filename={loop.node}", "--rw=randread", "--bs=4k", "--direct=1", "--number_ios=509"]
    writes = [*FIO, f"--filename={loop.node}", "--rw=randwrite", "--bs=4k", "--direct=1", "--number_ios=1009"]
    with subprocess.Popen([*reads, "--thread", "--time_based", "--runtime=60"], stdout=subprocess.DEVNULL) as other:
        try:
            assert (
                watch("--device", loop.node, "--scope", "process", "--json", tmp_path / "out.json", "--", *writes) == 0
            )
        finally:
            other.kill()
    head, of_command, of_device = re.split(
        r"\n\ncaused by the command .*\n|\n\neverything .*\n", capfd.readouterr().err
    )
    assert "of the device's data requests" in head
    assert re.search(r"^write +1,009 ", of_command, re.MULTILINE)
    assert "write sizes: 4 KiB 100 %" in of_command
    assert "read sizes" not in of_command
    assert "read submitted by: fio" in of_device
    assert re.search(r"^device: busy", of_device, re.MULTILINE)
    assert "submitted by" not in of_command


def test_light_mode_counts_the_same_and_says_what_it_lacks(
    loop: Loop, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = [*FIO, f"--filename={loop.node}", "--rw=randrw", "--bs=4k", "--direct=1", "--number_ios=1009", "--fsync=100"]
    flushes = loop.read_stat()[15]
    assert watch("--light", "--device", loop.node, "--json", tmp_path / "out.json", "--", *job) == 0
    profile = read(tmp_path / "out.json")
    assert set(profile) >= KEYS
    assert profile["monitor"] == "light"
    rows = {row["op"]: row for row in profile["io_profile"]}
    assert rows["read"]["requests"] + rows["write"]["requests"] + profile["hidden_completions"] == 1009
    flushes = loop.read_stat()[15] - flushes  # none where the device's last user left it in write through
    assert flushes - 2 <= rows["flush"]["requests"] <= flushes
    assert rows["write"]["own_requests"] is rows["write"]["aligned_requests"] is None
    assert {row["bytes"] for row in profile["io_sizes"]} == {4096}
    assert profile["mean_depth"] > 0
    is_typed = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 2)
    assert is_typed != any("costs about twice as much" in limit for limit in profile["limits"])
    shown = capfd.readouterr().err
    assert "by Little's law" in shown
    assert "light mode: owners, files, order" in shown


def test_what_stays_in_the_page_cache_is_written_back(mounted: Loop, tmp_path: Path, syncs: Syncs) -> None:
    assert mounted.mount is not None
    job = [*FIO, f"--filename={mounted.mount / 'file'}", "--rw=write", "--bs=64k"]
    for extra, least in (([], 8 << 20), (["--no-sync"], 0)):
        arguments = ["--device", mounted.mount, "--json", tmp_path / "out.json", *extra, "--"]
        assert watch(*arguments, *job) == 0
        write = row_of(read(tmp_path / "out.json"), "write")
        assert (write["inode_bytes"] >= 8 << 20) == (least > 0) or syncs.came()


def test_device_of_this_directory_and_scope_process_are_the_defaults(
    mounted: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mounted.mount is not None
    with monkeypatch.context() as patch:
        patch.chdir(mounted.mount)
        assert watch("--json", tmp_path / "out.json", "--", "true") == 0
    profile = read(tmp_path / "out.json")
    assert (profile["device"], profile["scope"]) == (f"{mounted.block.major}:{mounted.block.minor}", "process")


@pytest.mark.parametrize(
    ("script", "code"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)], ids=["exit", "kill"]
)
def test_exit_code_is_that_of_the_command(loop: Loop, script: str, code: int) -> None:
    assert watch("--device", loop.block.name, "--", sys.executable, "-c", script) == code


def test_ctrl_c_ends_the_command_and_still_gives_the_profile(loop: Loop, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    heeding = ["env", "--default-signal=INT"]  # shells have commands in the background ignore it, and pass that on
    watching = ["knobscope", "watch", "--device", loop.node, "--json", str(out), "--", "sleep", "600"]
    command = [*heeding, sys.executable, "-m", *watching]
    with subprocess.Popen(command, stderr=subprocess.PIPE, process_group=0) as process:
        assert wait_until(lambda: b"sleep" in _children(process.pid)), "the command was not started"
        os.killpg(process.pid, signal.SIGINT)  # as the terminal does
        _, words = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130, words.decode()
    assert read(out)["duration_s"] < 600


def _children(pid: int) -> bytes:
    """The command names of a process' children, once they run what they were started for."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return b" ".join(Path("/proc", child, "comm").read_bytes() for child in children)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "no-such-disk", "--", "true"], "there is no no-such-disk"),
        (["--device", "/dev/shm", "--", "true"], "no block device to watch"),
        (["--device", "9999:1", "--", "true"], "there is no 9999:1"),
        (["--unit", "0", "--", "true"], "expected 512 to"),
        (["--light", "--scope", "process", "--", "true"], "found --scope process with --light"),
        (["--light", "--trace", "out", "--", "true"], "found --trace with --light"),
        (["--call", "fsync", "--", "true"], "--call: found no --with syscalls"),
        (["--", "no-such-program"], "there is no program"),
        ([], "expected a command"),
    ],
)
def test_wrong_input_is_explained(arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert watch(*arguments) == 2
    assert message in capfd.readouterr().err


def test_a_trace_replaces_nothing_but_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "events.parquet").write_text("an earlier trace")
    (tmp_path / "notes").write_text("mine")
    assert watch("--trace", tmp_path, "--", "true") == 2
    assert "holds notes; expected a new directory, or that of an earlier trace" in capsys.readouterr().err
    assert (tmp_path / "notes").read_text() == "mine"
    assert watch("--trace", ".", "--", "true") == 2


def test_the_command_loads_no_models() -> None:
    """What it does not use makes it start late: pydantic takes longer than the monitor's programs."""
    check = "import sys, knobscope.cli as cli; cli.build_parser('watch'); print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout == "False\n"
