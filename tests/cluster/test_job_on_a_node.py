"""What a job of a cluster needs on its node, and what it leaves to the pipeline that submitted it."""

import os
import subprocess
from pathlib import Path

import pytest
import studies

from knobscope.durable_files import read_sealed, write_sealed
from knobscope.specs import SpecErrors, load_study
from knobscope.stages.measure.machine import describe_machine

TWO_DEVICES = studies.SMALL.replace("[local-disk]", "[local-disk, elsewhere]")
ELSEWHERE = """
name: elsewhere
description: a device that another node has
tier: auto
path: of-another-node
"""


def test_a_node_needs_only_what_it_measures(tmp_path: Path) -> None:
    studies.make_folder(tmp_path)
    (tmp_path / "specs/devices").unlink()
    (tmp_path / "specs/devices").mkdir()
    (tmp_path / "specs/devices/local-disk.yaml").symlink_to(studies.ROOT / "specs/devices/local-disk.yaml")
    (tmp_path / "specs/devices/elsewhere.yaml").write_text(ELSEWHERE)
    study = studies.write_study(tmp_path, "small", TWO_DEVICES)
    assert set(load_study(study, tmp_path, runnable={"local-disk"}).devices) == {"local-disk", "elsewhere"}
    for wanted in (True, {"local-disk", "elsewhere"}):
        with pytest.raises(SpecErrors, match="of-another-node"):
            load_study(study, tmp_path, runnable=wanted)


def test_a_machine_of_which_a_job_gets_fewer_cores_is_another_machine() -> None:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("this process has one core only")
    describe_machine.cache_clear()
    whole = describe_machine()
    try:
        os.sched_setaffinity(0, {min(allowed)})
        describe_machine.cache_clear()
        assert f"1 of {os.cpu_count()} cores" in describe_machine()
    finally:
        os.sched_setaffinity(0, allowed)
        describe_machine.cache_clear()
    assert describe_machine() == whole


@pytest.mark.real
def test_a_job_changes_nothing_that_is_the_pipelines_business(small_study: Path) -> None:
    results = small_study / "results/small"
    failed = sorted((results / "store").glob("*.json"))[0]
    record = read_sealed(failed)
    write_sealed(failed, {**record, "run": {**record["run"], "status": "failed_run"}})
    blocks = sorted(results.glob("*/*/*/runs/*"))
    lock = small_study / ".snakemake/locks/0.output.lock"
    lock.parent.mkdir(exist_ok=True)
    lock.write_text("results/small/report.html")
    damaged = results / "devices/local-disk.json"
    damaged.write_text("{}")
    page = "results/small/report.html"
    job = [page, "--mode", "remote", "--nolock", "--force", "--allowed-rules", "report", "all"]
    command = [*studies.command(small_study, "small", *job), "retry_failed=true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert lock.exists()
    assert failed.exists()
    assert damaged.exists()
    assert sorted(results.glob("*/*/*/runs/*")) == blocks
