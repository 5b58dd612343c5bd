"""Scratch directories on real devices."""

import os
import subprocess
from pathlib import Path

import pytest

from knobscope.devices import open_device
from knobscope.errors import UserError
from knobscope.specs import Device


def device_at(path: str) -> Device:
    return Device(name="here", description="a directory", tier="sata_ssd", path=path)


def test_directory_is_on_the_device_and_open_to_servers(tmp_path: Path) -> None:
    with open_device(device_at("."), tmp_path, "study") as opened:
        assert opened.directory == tmp_path / ".knobscope" / "study"
        assert opened.directory.stat().st_mode & 0o777 == 0o711
        assert opened.directory.parent.stat().st_mode & 0o777 == 0o711
        assert (opened.tier, opened.name) == ("sata_ssd", "here")
        assert Path("/sys/dev/block", f"{opened.block.major}:{opened.block.minor}").exists()
        assert opened.filesystem in Path("/proc/filesystems").read_text()


def test_mode_does_not_depend_on_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with open_device(device_at("."), tmp_path, "study") as opened:
            assert opened.directory.stat().st_mode & 0o777 == 0o711
    finally:
        os.umask(before)


def test_empty_directory_is_removed_at_the_end(tmp_path: Path) -> None:
    with open_device(device_at("."), tmp_path, "study"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_stage_leaves_stays_for_the_next(tmp_path: Path) -> None:
    with open_device(device_at("."), tmp_path, "study") as opened:
        (opened.directory / "snapshot").mkdir()
    with open_device(device_at("."), tmp_path, "study") as opened:
        assert (opened.directory / "snapshot").is_dir()


def test_directory_that_another_has_open_is_not_removed(tmp_path: Path) -> None:
    with open_device(device_at("."), tmp_path, "study") as first:
        with open_device(device_at("."), tmp_path, "study"):
            pass
        assert first.directory.is_dir()


def test_missing_directory_is_an_error_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere is no directory"), open_device(device_at("nowhere"), tmp_path, "s"):
        pass


def test_unwritable_directory_is_an_error_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o500)
    path = "/proc" if os.geteuid() == 0 else str(tmp_path / "mine")  # nobody may make directories in /proc
    with pytest.raises(UserError, match="cannot write to"), open_device(device_at(path), tmp_path, "s"):
        pass


@pytest.mark.parametrize("what", ["link", "file"])
def test_directory_that_is_something_else_is_refused(tmp_path: Path, what: str) -> None:
    if what == "link":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / ".knobscope").symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / ".knobscope").touch()
    with pytest.raises(UserError, match="is no directory"), open_device(device_at("."), tmp_path, "s"):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".knobscope").mkdir()
    os.chown(tmp_path / ".knobscope", 65534, 65534)
    with pytest.raises(UserError, match="belongs to user 65534"), open_device(device_at("."), tmp_path, "s"):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_nobody_else_can_make_a_study_wait(open_directory: Path) -> None:
    """Whoever may read the directory of a device can hold that, but no directory of ours on it."""
    open_directory.chmod(0o755)
    hold = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)"
    command, pipe = ["/usr/bin/python3", "-c", f"{hold}; print('mine', flush=True); sys.stdin.read()"], subprocess.PIPE
    with subprocess.Popen([*command, open_directory], user="nobody", stdin=pipe, stdout=pipe) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == b"mine\n"
        with open_device(device_at(str(open_directory)), open_directory, "study") as opened:
            for directory in (opened.directory, opened.directory.parent):
                refused = subprocess.run([*command, directory], user="nobody", stderr=pipe, check=False)
                assert b"PermissionError" in refused.stderr
        stranger.communicate(b"")


def test_too_little_space_is_an_error_of_the_user(tmp_path: Path) -> None:
    with open_device(device_at("."), tmp_path, "study") as opened:
        opened.require_free(4096, "a page")
        with pytest.raises(UserError, match="a copy of the moon needs"):
            opened.require_free(1 << 60, "a copy of the moon")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize(
    ("owner", "group", "mode", "flaw"),
    [
        (65534, 0, 0o755, "user 65534"),
        (0, 65534, 0o775, "group 65534"),
        (0, 65534, 0o1775, None),
        (0, 0, 0o777, "anybody"),
        (54321, 0, 0o755, None),  # nobody has that number
    ],
)
def test_directory_below_one_that_others_may_rename_it_in_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, group: int, mode: int, flaw: str | None
) -> None:
    """They could put a link in its place while root works there. Who became root through sudo may."""
    device = device_at("theirs/disk")
    (tmp_path / "theirs/disk").mkdir(parents=True)
    (tmp_path / "theirs").chmod(mode)
    os.chown(tmp_path / "theirs", owner, group)
    monkeypatch.delenv("SUDO_UID", raising=False)
    if flaw is not None:
        with (
            pytest.raises(UserError, match=f"{flaw} can rename what is in .*/theirs"),
            open_device(device, tmp_path, "s"),
        ):
            pass
        monkeypatch.setenv("SUDO_UID", "65534")
    if flaw != "anybody":
        with open_device(device, tmp_path, "s") as opened:
            assert opened.directory.is_dir()
