"""A full file system for temporary files: the environment's fault, and no run with figures of a log that was cut."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from test_other_generators import measure

from knobscope.generators.command_run import CommandRun, GeneratorCall
from knobscope.specs import Dbms

pytestmark = pytest.mark.real


@pytest.fixture
def small_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A TMPDIR of 32 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = Path(tempfile.mkdtemp(prefix="knobscope-small-", dir="/tmp"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=1777", "none", folder], check=True)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


def fill(folder: Path) -> None:
    space = os.statvfs(folder)
    amount = space.f_bavail * space.f_frsize
    with (folder / "full").open("wb", buffering=0) as file, suppress(OSError):  # a file system keeps some for itself
        for size in (*[1 << 20] * (amount >> 20), *[4096] * ((amount & 0xFFFFF) >> 12)):
            file.write(bytes(size))


def test_a_log_that_found_no_space_is_a_disturbance(
    postgresql: Dbms, open_directory: Path, small_tmpdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is left when the measured call begins: how much of a log would fit depends on how fast the machine is."""
    begin, write_files = CommandRun.wait_measuring, GeneratorCall.write_files

    def write_and_fill(self: GeneratorCall, seconds: float = 1, requests: int = 1) -> None:
        write_files(self, seconds, requests)
        fill(small_tmpdir)

    def wait_measuring(self: CommandRun, timeout: float) -> int:
        monkeypatch.setattr(GeneratorCall, "write_files", write_and_fill)
        return begin(self, timeout)

    monkeypatch.setattr(CommandRun, "wait_measuring", wait_measuring)
    run = measure(postgresql, "pgbench-tpcb", open_directory, {"synchronous_commit": "off"})["run"]
    assert run["status"] == "invalid", run
    assert "the output of pgbench cannot be used" in run["reason"]
    assert run["disturbance"] == "the file system of temporary files (TMPDIR) has 0 MiB free"
