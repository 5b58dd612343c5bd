"""Two pipelines in one folder: the second one takes nothing away from the first, until that is gone."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import wait_until

HOLD = """
import sys, time
from pathlib import Path
from knobscope.workflow.recovery import claim_directory
claim_directory(Path(sys.argv[1]))
print("claimed", flush=True)
time.sleep(600)
"""
CLAIM = HOLD.replace("time.sleep(600)", "")
ELSEWHERE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]

pytestmark = pytest.mark.real


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A working directory in which a pipeline has Snakemake's lock and a temporary folder."""
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.input.lock").write_text("results/x")
    (tmp_path / "snakemake-first").mkdir()
    (tmp_path / "snakemake-second").mkdir()
    return tmp_path


@contextmanager
def claimed(directory: Path, prefix: list[str]) -> Iterator[None]:
    """Let a process take the directory, and kill it at the end."""
    command = [*prefix, sys.executable, "-c", HOLD, str(directory / "snakemake-first")]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "claimed\n"
            yield
        finally:
            process.kill()


def claim(directory: Path) -> None:
    command = [sys.executable, "-c", CLAIM, str(directory / "snakemake-second")]
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("prefix", [[], ELSEWHERE], ids=["beside it", "in another PID namespace"])
def test_a_newcomer_takes_over_from_a_killed_pipeline_only(directory: Path, prefix: list[str]) -> None:
    lock, temporary = directory / ".snakemake/locks/0.input.lock", directory / "snakemake-first"
    with claimed(directory, prefix):
        lock.write_text("results/x")  # Snakemake makes it after the directory was claimed
        claim(directory)
        assert lock.exists()
        assert temporary.exists()

    def is_taken_over() -> bool:  # what runs in a namespace ends a moment after its first process
        claim(directory)
        return not lock.exists()

    assert wait_until(is_taken_over)
    assert not temporary.exists()


def test_nothing_in_a_working_directory_names_what_is_deleted(directory: Path) -> None:
    precious = directory / "snakemake-precious"
    precious.mkdir()
    planted = directory / ".snakemake/knobscope-temporary"
    planted.mkdir()
    (planted / "x").write_text(str(precious))
    (directory / "snakemake-mine").mkdir()
    (directory / "snakemake-mine/knobscope.workflow.pipeline").symlink_to(planted / "x")
    claim(directory)
    assert precious.exists()
    assert (directory / "snakemake-mine").exists()  # its mark is of no pipeline of this directory


def test_a_mark_in_a_folder_that_others_may_write_to_is_not_trusted(directory: Path) -> None:
    shared = directory / "snakemake-shared"
    shared.mkdir(mode=0o777)
    shared.chmod(0o777)
    (shared / "knobscope.workflow.pipeline").write_text(str((directory / ".snakemake").resolve()))
    claim(directory)
    assert shared.exists()
