"""A study of three DBMSs on two nodes of a Slurm cluster gives what one machine gives, whatever happens to a node."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import studies
from emulated import require_loops
from slurm import ask, await_that, cluster_command, list_jobs, manage, node_state, run_cluster, tell_node

from knobscope.devices import take_down
from knobscope.devices.spec import load_device

pytestmark = [pytest.mark.cluster, pytest.mark.real]

STUDY = """
name: three
description: three DBMSs on two devices, the least of everything
dbms: [sqlite, redis, postgresql]
devices: [first, second]
workloads:
  ycsb-a: {records: 300, threads: 1, warmup_s: 0.2, measure_s: 0.6}
knobs:
  sqlite:
    synchronous: {values: [off, full]}
    cache_size: {values: [-500, -2000]}
  redis:
    appendfsync: {values: [everysec, always]}
    hz: {values: [10, 100]}
  postgresql:
    synchronous_commit: {values: [off, on]}
    wal_compression: {values: [off, pglz]}
sampling: {runs_per_round: 4, max_rounds: 1}
screening: {top: 1}
sweep:
  repeats: 2
  always: [synchronous, cache_size, appendfsync, hz, synchronous_commit, wal_compression]
rules: [intuition, tier, slower_tier, flush]
"""
DEVICE = """
name: {name}
description: a file system in memory, on the node that has the feature {name}
tier: {tier}
emulate: {{image_directory: images, size: 512MiB}}
"""
#: Devices by the tier that their specs state; a node of the cluster has the name of its device as a feature.
DEVICES = {"first": "hdd", "second": "sata_ssd"}
#: Seconds after which a study that is not done is given up; a busy machine takes several times as long as a quiet one.
PATIENCE_S = 2400
#: What servers and clients keep of the environment, too: so they can be found.
MARK = "KNOBSCOPE_TEST"


@contextmanager
def project(folder: Path) -> Iterator[Path]:
    """A folder of a user's own, with the study and its two devices, which are gone at the end."""
    studies.make_folder(folder, "devices")
    for name, tier in DEVICES.items():
        (folder / f"specs/devices/{name}.yaml").write_text(DEVICE.format(name=name, tier=tier))
    studies.write_study(folder, "three", STUDY)
    with tempfile.TemporaryDirectory(prefix="knobscope-test-", dir="/dev/shm") as images:
        Path(images).chmod(0o711)
        (folder / "images").symlink_to(images)
        try:
            yield folder
        finally:
            for name in DEVICES:
                take_down(load_device(name, folder), folder)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The study, run on this machine without Slurm."""
    require_loops()
    with project(tmp_path_factory.mktemp("local") / "study") as folder:
        with started(folder, studies.command(folder, "three")) as pipeline:
            assert pipeline.wait(PATIENCE_S) == 0, said(folder)[-4000:]
        yield folder


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Path]:
    """The same study in another folder, to run on the cluster."""
    with project(tmp_path / "study") as folder:
        yield folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two nodes, each of which has one of the devices."""
    with run_cluster(*DEVICES):
        yield


def runs_of(folder: Path) -> list[tuple[object, ...]]:
    """What was measured: nothing of it depends on how fast anything was."""
    return studies.query(
        folder,
        "three",
        "SELECT run_id, config_id, block_id, dbms, device, is_sentinel, repeat, status FROM runs ORDER BY ALL",
    )


def judged_in(folder: Path) -> list[tuple[object, ...]]:
    """What the rules looked at."""
    return studies.query(folder, "three", "SELECT rule, dbms, device, workload, knob, value FROM findings ORDER BY ALL")


def require_same(folder: Path, local: Path) -> None:
    """A study that ran on the cluster has measured and judged what the local one has, each run once."""
    assert runs_of(folder) == runs_of(local)
    assert {row[-1] for row in runs_of(folder)} == {"ok"}
    assert judged_in(folder) == judged_in(local)
    store = folder / "results/three/store"
    assert sorted(path.name for path in store.iterdir()) == sorted(f"{row[0]}.json" for row in runs_of(local))
    assert list((folder / "results").rglob("*.part*")) + list((folder / "results").rglob("*.damaged*")) == []


def marked_processes(folder: Path) -> set[int]:
    """Processes that a study of this folder has started, on whatever node."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={folder}\0" in path.read_text(errors="replace"):
                found.add(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


@contextmanager
def started(folder: Path, command: list[str]) -> "Iterator[subprocess.Popen[bytes]]":
    """A study that runs; what Snakemake says is in said.txt. It ends with the block."""
    with (folder / "said.txt").open("ab") as said:
        pipeline = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, MARK: str(folder)},
        )
        try:
            yield pipeline
        finally:
            if pipeline.poll() is None:
                pipeline.kill()  # what it does here follows it, its jobs end with the cluster
                pipeline.wait()


def said(folder: Path) -> str:
    return (folder / "said.txt").read_text(errors="replace")


def limit_submitted(jobs: int) -> None:
    """Limit how many jobs root may have in the queue; -1: no limit."""
    command = ["sacctmgr", "--immediate", "--quiet", "modify", "user", "root", "set", f"MaxSubmitJobs={jobs}"]
    subprocess.run(command, check=True, timeout=300, stdout=subprocess.DEVNULL)
    wanted = "" if jobs < 0 else str(jobs)
    await_that(
        "the limit is in force",
        lambda: ask("sacctmgr", "-n", "-P", "show", "assoc", "user=root", "format=MaxSubmitJobs") == [wanted],
    )


def test_no_more_jobs_are_submitted_than_a_full_queue_takes(cluster: None, remote: Path) -> None:
    studies.write_study(remote, "small", studies.SMALL.replace("[local-disk]", f"[{', '.join(DEVICES)}]"))
    try:
        limit_submitted(1)
        with started(remote, cluster_command(remote, "small", "--until", "characterise")) as pipeline:
            assert pipeline.wait(PATIENCE_S) == 1
        assert "SLURM sbatch failed" in said(remote)  # the profile allows 20 jobs, the queue takes one of the two
        limit_submitted(2)
        longest = 0
        with started(remote, cluster_command(remote, "small", "--jobs", "2", "--until", "prepare")) as pipeline:
            while pipeline.poll() is None:
                longest = max(longest, len(list_jobs()))
                time.sleep(0.5)
    finally:
        limit_submitted(-1)
    assert pipeline.returncode == 0, said(remote)[-4000:]
    assert longest == 2  # of three that could be: a profile and two data directories were missing
    assert nodes_of("prepare") == {"first": {"n1"}, "second": {"n2"}}
    assert marked_processes(remote) == set()


def nodes_of(rule: str) -> dict[str, set[str]]:
    """On which nodes the jobs of a rule have run, by device."""
    lines = ask("sacct", "--allocations", "-n", "-P", "--starttime=now-1days", "--format=State,NodeList,Comment")
    done = [line.split("|") for line in lines if line.startswith("COMPLETED|") and f"|rule_{rule}_" in line]
    return {device: {node for _, node, comment in done if f"_{device}_" in comment} for device in DEVICES}


def test_a_lost_and_a_drained_node_change_nothing(local: Path, cluster: None, remote: Path) -> None:
    shutil.copytree(local / "results/three/devices", remote / "results/three/devices")
    store = remote / "results/three/store"
    with started(remote, cluster_command(remote, "three")) as pipeline:
        await_that("a block on n1 has two runs, and is not done", lambda: is_within_block(remote, "first"), 900)
        before = marked_processes(remote) - {pipeline.pid}
        manage("lose", "n1")
        tell_node("n2", "drain")
        left = {path.name: path.stat().st_mtime_ns for path in store.glob("*.json")}
        await_that("Slurm calls n1 lost", lambda: node_state("n1").startswith("down"))
        await_that("n2 has finished what it had", lambda: node_state("n2") == "drained", 300)
        await_that("nothing is left on the nodes", lambda: before & marked_processes(remote) == set(), 30)
        assert list_jobs("RUNNING") == []
        assert pipeline.poll() is None  # it waits for its nodes
        tell_node("n2", "resume")
        manage("node", "n1")
        code = pipeline.wait(PATIENCE_S)
    assert code == 0, said(remote)[-4000:]
    require_same(remote, local)
    assert {name: (store / name).stat().st_mtime_ns for name in left} == left  # nothing was measured a second time
    assert nodes_of("measure") == {"first": {"n1"}, "second": {"n2"}}
    assert marked_processes(remote) == set()


def is_within_block(folder: Path, device: str) -> bool:
    """Whether a block on a device has stored two runs and is not done."""
    results = folder / "results/three"
    return any(
        "run 2/" in log.read_text(errors="replace") and not block_of(results, log).exists()
        for log in results.glob(f"logs/*/{device}/*/measure-*.log")
    )


def block_of(results: Path, log: Path) -> Path:
    case = log.parent.relative_to(results / "logs")
    return results / case / "runs" / log.stem.removeprefix("measure-")
