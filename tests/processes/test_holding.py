"""Directories of processes that live stay; those of the others go."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from knobscope.processes import hold_directory, open_temporary, remove_if_abandoned

HOLDER = """
import sys, time
from pathlib import Path
from knobscope.processes import hold_directory
hold_directory(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_held_directory_stays_until_its_holder_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "held"
    folder.mkdir()
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    remove_if_abandoned(folder, shutil.rmtree)
    assert folder.exists()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    remove_if_abandoned(folder, shutil.rmtree)
    assert not folder.exists()


@pytest.mark.real
def test_a_holder_in_another_pid_namespace_counts_too(tmp_path: Path) -> None:
    """There our process numbers do not exist: who went by them would take everything for abandoned."""
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    folder = tmp_path / "held"
    folder.mkdir()
    descriptor = hold_directory(folder)
    code = (
        "import shutil, sys; from pathlib import Path; from knobscope.processes import remove_if_abandoned\n"
        "remove_if_abandoned(Path(sys.argv[1]), shutil.rmtree)"
    )
    newcomer = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code, str(folder)]
    subprocess.run(newcomer, check=True)
    assert folder.exists()
    os.close(descriptor)
    subprocess.run(newcomer, check=True)
    assert not folder.exists()


def test_a_temporary_directory_of_a_killed_process_goes_with_the_next_one(tmp_path: Path) -> None:
    code = HOLDER.replace(
        "hold_directory(Path(sys.argv[1]))", "made = open_temporary('x-', Path(sys.argv[1])); made.__enter__()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code.replace("import hold_directory", "import open_temporary"), str(tmp_path)],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    (theirs,) = tmp_path.iterdir()
    (theirs / "file").write_text("theirs")
    with open_temporary("x-", tmp_path) as ours:
        assert {theirs, ours} == set(tmp_path.iterdir())
        holder.kill()
        holder.wait()
        holder.stdout.close()
        with open_temporary("x-", tmp_path) as another:
            assert {ours, another} == set(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_what_was_removed_cannot_be_held(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hold_directory(tmp_path / "nothing")
