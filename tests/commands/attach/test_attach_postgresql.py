"""One PostgreSQL under attach: its catalogue, the study to run next, no BPF, others, and kills at any moment."""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from json_documents import read_document
from loop_devices import Loop
from servers import ROOT, Started, diagnose, find_hierarchy, list_children, start_attach, start_server
from waiting import wait_until

from knobscope.cli import main

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def postgresql(device: Loop) -> Iterator[Started]:
    assert device.mount is not None
    with start_server("postgresql", device.mount, None) as started:
        yield started


def test_catalogue_names_tables_and_settings_become_a_study(
    postgresql: Started, device: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    for folder in ("dbms", "workloads", "generators", "devices"):
        (specs / folder).mkdir()
        for file in (ROOT / "specs" / folder).iterdir():
            if folder != "devices":
                (specs / folder / file.name).symlink_to(file)
    (specs / "studies").mkdir()
    study = specs / "studies" / "next.yaml"
    wal = int(_ask(postgresql, "select wal_sync from pg_stat_wal"))
    found, _, _ = diagnose(postgresql, device, tmp_path, "--connect", postgresql.url, "--write-study", str(study))
    synced = int(_ask(postgresql, "select wal_sync from pg_stat_wal")) - wal
    flushes = next(row["requests"] for row in found["io_profile"] if row["op"] == "flush")
    assert synced <= flushes + 1
    assert found["settings"]["shared_buffers"] == "2048"
    assert any(file["purpose"] == "table pgbench_accounts" for file in found["busy_files"])
    if not found["is_device"]:
        assert not study.exists()
        return
    monkeypatch.chdir(tmp_path)
    assert main(["validate", str(study)]) == 0
    assert "shared_buffers: 2048" in study.read_text()


def _ask(server: Started, query: str) -> str:
    port, host = server.url.rpartition(":")[2].split("/")[0], "127.0.0.1"
    command = ["psql", "-h", host, "-p", port, "-U", "postgres", "-Atc", query, "postgres"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_port_finds_the_same_server_outside_a_checkout(postgresql: Started, tmp_path: Path) -> None:
    out = tmp_path / "attached.json"
    port = postgresql.url.rpartition(":")[2].split("/")[0]
    with start_attach("--port", port, "--for", "1s", "--json", str(out), "--root", str(tmp_path)) as attached:
        attached.process.communicate(timeout=120)
    server = json.loads(out.read_text())["server"]
    assert (server["pid"], server["dbms"]) == (postgresql.pid, "postgresql")


def test_without_bpf_the_sums_of_the_kernel_answer(postgresql: Started, device: Loop, tmp_path: Path) -> None:
    found, text, added = diagnose(postgresql, device, tmp_path, "--monitor", "procfs")
    rows = {row["op"]: row for row in found["io_profile"]}
    assert added.least[15] <= rows["flush"]["device_requests"] <= added.most[15]
    assert "Without BPF" in text
    assert "/proc/diskstats" in text


def test_light_mode_finds_the_same_fault(postgresql: Started, device: Loop, tmp_path: Path) -> None:
    found, text, added = diagnose(postgresql, device, tmp_path, "--light")
    rows = {row["op"]: row for row in found["io_profile"]}
    assert found["monitor"] == "light"
    assert added.least[15] <= rows["flush"]["requests"] <= added.most[15]
    assert "Light mode" in text
    assert "owners, files" in text
    assert found["budget"], "waits are watched, too"


def test_flushes_are_not_the_fault_of_an_idle_server(postgresql: Started, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with start_attach("--pid", str(postgresql.pid), "--for", "2s", "--html", str(page)) as attached:
        attached.wait_watching()
        out, _ = attached.process.communicate(timeout=120)
    assert out.startswith(("The server is idle", "Not the device")), "its timers may wait for a busy processor"
    assert "To try" not in out
    text = page.read_text()
    assert text.index(out.splitlines()[0].split(":")[0]) < text.index("Requests at the device"), (
        "the conclusion comes first"
    )


def test_flushes_of_others_are_no_requests_of_the_server(postgresql: Started, device: Loop, tmp_path: Path) -> None:
    assert device.mount is not None
    result = tmp_path / "attached.json"
    with (
        start_attach("--pid", str(postgresql.pid), "--for", "2s", "--json", str(result)) as attached,
        (device.mount / "of-others").open("wb", buffering=0) as file,
    ):
        attached.wait_watching()
        while attached.process.poll() is None:
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
        out, _ = attached.process.communicate()
    rates = re.search(r"it took ([\d,.]+) requests/s of the server, on average ([\d,.]+) requests/s", out)
    assert rates is not None, out
    best, mean = (float(rate.replace(",", "")) for rate in rates.groups())
    seconds = read_document("attach", result.read_text())["duration_s"]
    assert best * 0.1 <= mean * seconds * 1.2, "a part is no larger than the whole, but for two digits of each"


@pytest.mark.parametrize("trial", [0, *(pytest.param(trial, marks=pytest.mark.long) for trial in range(1, 20))])
def test_nothing_is_left_after_kill(postgresql: Started, trial: int) -> None:
    """Killed with -9 at a random moment: alone, with its monitor, or with the warden, too."""
    before = postgresql.list_cgroups()
    moment = random.Random(trial).uniform(0, 1)
    with start_attach("--pid", str(postgresql.pid), "--move", "--for", "60s") as attached:
        started = time.monotonic()
        if trial % 2:
            attached.wait_watching()
            time.sleep(moment)
        else:
            while time.monotonic() - started < 3 * moment and attached.process.poll() is None:
                time.sleep(0.01)
        descendants = list_children(attached.process.pid)
        everyone = [attached.process.pid, *(descendants if trial % 3 else [])]
        for pid in everyone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if trial % 3:  # the warden was killed, too: the next call gives back a server that had been moved
        with start_attach("--pid", str(postgresql.pid), "--for", "1s") as again:
            again.process.communicate(timeout=120)
    assert wait_until(lambda: not any(Path("/proc", str(pid)).exists() for pid in descendants))
    assert wait_until(lambda: postgresql.list_cgroups() == before), postgresql.list_cgroups()
    assert postgresql.process.poll() is None
    groups = [group for group in find_hierarchy().glob("knobscope-*") if (group / "cgroup.procs").exists()]
    assert not [group for group in groups if str(postgresql.pid) in (group / "cgroup.procs").read_text().split()]
