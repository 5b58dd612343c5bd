"""A study whose load comes over ssh: killed, taken up again, and its report says where the load came from."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ssh_server import SshServer, descendants, run_ssh_server
from studies import assert_stays_finished, call, command, make_folder, place_profile, query, write_study
from waiting import wait_until

STUDY = """
name: far
description: the smallest study whose load comes from another machine
dbms: [postgresql]
devices: [local-disk]
workloads:
  ycsb-a: {records: 300, threads: 1, warmup_s: 0.1, measure_s: 0.4}
knobs:
  postgresql:
    synchronous_commit: {values: ["off", "on"]}
    fsync: {values: [true, false]}
sampling: {runs_per_round: 4, max_rounds: 1}
screening: {top: 1}
sweep: {repeats: 2, always: [synchronous_commit]}
rules: [intuition]
"""

pytestmark = [pytest.mark.real, pytest.mark.fleet]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with run_ssh_server(tmp_path_factory.mktemp("ssh")) as running:
        yield running


def find_clients(server: SshServer) -> list[int]:
    return [pid for pid, said in descendants(server.pid).items() if said.startswith("java ")]


def test_a_killed_study_leaves_no_client_and_goes_on_to_a_report_that_names_its_host(
    server: SshServer, tmp_path: Path, device_profile: Path
) -> None:
    folder = make_folder(tmp_path / "project")
    place_profile(folder, device_profile, "far")
    client = yaml.safe_dump({"client": server.host.model_dump(exclude_none=True)})
    write_study(folder, "far", STUDY + client)

    pipeline = subprocess.Popen(command(folder, "far"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: find_clients(server) or pipeline.poll() is not None)
    assert find_clients(server)
    there = descendants(server.pid)  # sshd's sessions, the agent, the keeper, the client
    pipeline.send_signal(signal.SIGKILL)
    pipeline.wait()
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in there))
    assert server.left_over() == []

    call(folder, "far")
    assert_stays_finished(folder, "far")
    runs = query(folder, "far", "SELECT status, client_host, client_round_trip_us, client_clock_offset_us FROM runs")
    assert runs
    assert all(row[:2] == ("ok", "127.0.0.1") and row[2] > 0 and row[3] is not None for row in runs), runs
    assert query(folder, "far", "SELECT value FROM setup WHERE property = 'client.host'") == [("127.0.0.1",)]
    report = next((folder / "results/far").glob("**/report.html")).read_text()
    assert "on 127.0.0.1 (Linux" in report
    assert "which is in every latency" in report
    assert descendants(server.pid) == {}
