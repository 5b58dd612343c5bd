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

from knobscope.devices import BlockDevice, count_other_users, device_lock, find_block_device, lock
from knobscope.errors import UserError

#: Takes the lock, says so, holds it until its input ends.
_HOLD = """
import sys
from pathlib import Path
from knobscope.devices import device_lock, find_block_device, lock
lock._OPEN, lock._CLOSED = (Path(sys.argv[1]),), Path(sys.argv[1], "closed")
with device_lock(find_block_device(Path(sys.argv[1]))):
    print("mine", flush=True)
    sys.stdin.read()
"""


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user: needs root")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for locks of this test only, so that it does not wait for real measurements."""
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(lock, "_OPEN", (tmp_path,))
    monkeypatch.setattr(lock, "_CLOSED", tmp_path / "closed")
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
            said = read_line(second.stderr)
            assert f"used by process {first.pid} of user" in said
            words = said.partition("(")[2].removesuffix(" ...)").split()  # whole ones, and no path of the interpreter
            assert words == [Path(sys.executable).name, "-c", *_HOLD.split()][: len(words)]
            first.communicate("")
            assert read_line(second.stdout) == "mine"


def test_other_processes_that_have_a_disk_are_counted(folder: Path, block: BlockDevice) -> None:
    with device_lock(block):
        assert count_other_users() == 0
    with process(folder) as other:
        assert read_line(other.stdout) == "mine"
        assert count_other_users() == 1
    assert count_other_users() == 0


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


def plant(folder: Path, block: BlockDevice, kind: str) -> None:
    with device_lock(block):
        (file,) = folder.glob("knobscope-*.lock")
    file.unlink()
    if kind == "link":
        (folder / "victim").write_text("precious")
        file.symlink_to(folder / "victim")
    else:
        os.mkfifo(file)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_planted_lock_file_is_refused(
    folder: Path, block: BlockDevice, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(folder, block, kind)
    monkeypatch.setattr(lock, "find_closed_directory", lambda: None)
    with pytest.raises(UserError, match="lock file"), device_lock(block):
        pass


@as_root
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_planted_lock_file_does_not_stop_root(
    folder: Path, block: BlockDevice, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(folder, block, kind)
    with device_lock(block):
        assert "going on without" in capsys.readouterr().err


@as_root
def test_a_stranger_does_not_stop_root(
    open_directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can open the lock of root and its group; the other one is waited for, but not for ever."""
    open_directory.chmod(0o1777)
    monkeypatch.setattr(lock, "_OPEN", (open_directory,))
    monkeypatch.setattr(lock, "_CLOSED", open_directory / "closed")
    monkeypatch.setattr(lock, "_PATIENCE_S", 0.5)
    block = find_block_device(open_directory)
    with device_lock(block):
        locks = [open_directory.glob("*.lock"), (open_directory / "closed").glob("*.lock")]
        (opened,), (closed,) = map(list, locks)
    assert stat.S_IMODE(closed.parent.stat().st_mode) == 0o1770
    hold = "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX); print('mine', flush=True)"
    command = ["/usr/bin/python3", "-c", f"{hold}; sys.stdin.read()"]
    pipe = subprocess.PIPE
    refused = subprocess.run(
        [*command, closed], user="nobody", group="nogroup", extra_groups=[], stderr=pipe, text=True, check=False
    )
    assert "PermissionError" in refused.stderr
    with subprocess.Popen(
        [*command, opened], user="nobody", group="nogroup", extra_groups=[], stdin=pipe, stdout=pipe, text=True
    ) as stranger:
        assert read_line(stranger.stdout) == "mine"
        with device_lock(block):
            said = capsys.readouterr().err
            assert f"used by process {stranger.pid} of user nobody (" in said
            assert f"going on without {opened}" in said
            with pytest.raises(UserError, match="wait for itself"), device_lock(block):  # ours is held all the same
                pass
        stranger.communicate("")


def test_lock_file_removed_while_waiting_is_not_trusted(folder: Path) -> None:
    with process(folder) as first:
        assert read_line(first.stdout) == "mine"
        with process(folder) as second:
            assert "used by" in read_line(second.stderr)
            (file,) = (folder / "closed" if os.geteuid() == 0 else folder).glob("knobscope-*.lock")
            file.unlink()
            first.communicate("")
            assert read_line(second.stdout) == "mine"
            with process(folder) as third:  # the second holds a new file, the one that others open
                assert f"used by process {second.pid} of user" in read_line(third.stderr)


def test_directory_must_be_open_to_all_and_sticky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    monkeypatch.setattr(lock, "_OPEN", (tmp_path / "private", tmp_path / "absent"))
    with pytest.raises(UserError, match="mode 1777"):
        lock.find_open_directory()
