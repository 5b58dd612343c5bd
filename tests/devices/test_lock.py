"""The lock between real processes."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from knobscope.devices import BlockDevice, device_lock, find_block_device, lock
from knobscope.errors import UserError

#: Takes the lock, says so, holds it until its input ends.
_HOLD = """
import sys
from pathlib import Path
from knobscope.devices import device_lock, find_block_device, lock
lock._DIRECTORIES = (Path(sys.argv[1]),)
with device_lock(find_block_device(Path(sys.argv[1]))):
    print("mine", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for locks of this test only, so that it does not wait for real measurements."""
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(lock, "_DIRECTORIES", (tmp_path,))
    return tmp_path


@pytest.fixture
def block(folder: Path) -> BlockDevice:
    return find_block_device(folder)


@contextmanager
def process(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    pipe = subprocess.PIPE
    other = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    try:
        yield other
    finally:
        other.kill()
        other.communicate()


def read_line(stream: object) -> str:
    return stream.readline().strip()  # type: ignore[attr-defined, no-any-return]


def test_second_process_waits_and_says_for_whom(folder: Path) -> None:
    with process(folder) as first:
        assert read_line(first.stdout) == "mine"
        with process(folder) as second:
            assert f"used by process {first.pid} (" in read_line(second.stderr)
            first.communicate("")
            assert read_line(second.stdout) == "mine"


def test_lock_ends_with_a_killed_process(folder: Path, block: BlockDevice) -> None:
    with process(folder) as other:
        assert read_line(other.stdout) == "mine"
        other.send_signal(signal.SIGKILL)
        other.wait()
        with device_lock(block):
            assert other.returncode == -signal.SIGKILL


def test_waiting_for_ourselves_is_refused(block: BlockDevice) -> None:
    with device_lock(block), pytest.raises(UserError, match="wait for itself"), device_lock(block):
        pass


def test_lock_is_free_afterwards_and_never_written(folder: Path, block: BlockDevice) -> None:
    for _ in range(2):
        with device_lock(block):
            files = list(folder.glob("knobscope-*.lock"))
    assert files
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o444 and file.stat().st_size == 0 for file in files)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_planted_lock_file_is_refused(folder: Path, block: BlockDevice, kind: str) -> None:
    with device_lock(block):
        (file,) = folder.glob("knobscope-*.lock")
    file.unlink()
    if kind == "link":
        (folder / "victim").write_text("precious")
        file.symlink_to(folder / "victim")
    else:
        os.mkfifo(file)
    with pytest.raises(UserError, match="lock file"), device_lock(block):
        pass


def test_lock_file_removed_while_waiting_is_not_trusted(folder: Path) -> None:
    with process(folder) as first:
        assert read_line(first.stdout) == "mine"
        with process(folder) as second:
            assert "used by" in read_line(second.stderr)
            (file,) = folder.glob("knobscope-*.lock")
            file.unlink()
            first.communicate("")
            assert read_line(second.stdout) == "mine"
            with process(folder) as third:  # the second holds a new file, the one that others open
                assert f"used by process {second.pid} (" in read_line(third.stderr)


def test_directory_must_be_open_to_all_and_sticky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    monkeypatch.setattr(lock, "_DIRECTORIES", (tmp_path / "private", tmp_path / "absent"))
    with pytest.raises(UserError, match="mode 1777"):
        lock.find_lock_directory()
