"""The installed helper for emulated devices does what it is for, for what belongs to its caller, and nothing else."""

import os
import pwd
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from knobscope.processes import SERVICE_USER

HELPER = Path(__file__).parents[2] / "setup" / "device-helper.py"

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="sudo is played by root")]


def call(*arguments: str, uid: int | None = None) -> "subprocess.CompletedProcess[str]":
    """Call the helper as sudo does, for the service user unless somebody else is named."""
    caller = pwd.getpwnam(SERVICE_USER).pw_uid if uid is None else uid
    return subprocess.run(
        ["/usr/bin/python3", "-IBS", str(HELPER), *arguments],
        env={"SUDO_UID": str(caller)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def images(open_directory: Path) -> Path:
    """A directory of the caller's with an image and a mount point."""
    folder = open_directory / "images"
    (folder / "mount").mkdir(parents=True)
    with (folder / "disk.img").open("wb") as image:
        image.truncate(16 << 20)
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", str(folder / "disk.img")], check=True)
    for path in (folder, folder / "mount", folder / "disk.img"):
        shutil.chown(path, SERVICE_USER, SERVICE_USER)
    return folder


@pytest.fixture
def attached(images: Path) -> Iterator[str]:
    done = call("losetup", "--find", "--show", "--direct-io=on", str(images / "disk.img"))
    assert done.returncode == 0, done.stderr
    node = done.stdout.strip()
    yield node
    subprocess.run(["umount", str(images / "mount")], capture_output=True, check=False)
    subprocess.run(["losetup", "--detach", node], capture_output=True, check=False)


def test_a_device_goes_up_and_down(images: Path, attached: str) -> None:
    mount = images / "mount"
    assert call("mount", "-o", "nosuid,nodev", attached, str(mount)).returncode == 0
    line = next(line for line in Path("/proc/self/mounts").read_text().splitlines() if str(mount) in line)
    assert {"nosuid", "nodev"} <= set(line.split()[3].split(","))
    caller = pwd.getpwnam(SERVICE_USER)
    done = call("chown", f"{caller.pw_uid}:{caller.pw_gid}", str(mount))
    assert done.returncode == 0, done.stderr
    assert mount.stat().st_uid == caller.pw_uid
    done = call("umount", str(mount))
    assert done.returncode == 0, done.stderr
    assert str(mount) not in Path("/proc/self/mounts").read_text()
    assert call("losetup", "--detach", attached).returncode == 0
    assert call("losetup", "--detach", attached).returncode == 2


def test_what_belongs_to_others_is_refused(images: Path, attached: str, open_directory: Path) -> None:
    nobody = 65534
    assert call("mount", "-o", "nosuid,nodev", attached, str(images / "mount"), uid=nobody).returncode == 2
    assert call("losetup", "--detach", attached, uid=nobody).returncode == 2
    theirs = open_directory / "root.img"
    theirs.write_bytes(bytes(1 << 20))
    theirs.chmod(0o666)  # may be written, and is root's all the same
    link = images / "link.img"
    link.symlink_to(theirs)
    for image in (theirs, link, Path("/etc/shadow"), Path("/dev/null")):
        assert call("losetup", "--find", "--show", "--direct-io=on", str(image)).returncode != 0
    other = open_directory / "mount"
    other.mkdir()
    assert call("mount", "-o", "nosuid,nodev", attached, str(other)).returncode == 2
    assert call("mount", "-o", "nosuid,nodev", attached, "/etc").returncode == 2
    assert call("umount", "/").returncode == 2
    assert call("umount", "/proc").returncode == 2
    caller = pwd.getpwnam(SERVICE_USER)
    assert call("chown", f"{caller.pw_uid}:{caller.pw_gid}", "/etc").returncode == 2
    assert call("chown", "0:0", str(images)).returncode == 2


def test_only_sudo_may_call_it() -> None:
    for environment in ({}, {"SUDO_UID": "0"}, {"SUDO_UID": "-1"}, {"SUDO_UID": "999999999999"}, {"SUDO_UID": "x"}):
        done = subprocess.run(
            ["/usr/bin/python3", "-IBS", str(HELPER), "umount", "/"], env=environment, capture_output=True, check=False
        )
        assert done.returncode == 2


def test_nonsense_gets_a_sentence(images: Path) -> None:
    """No traceback whatever is asked; loops and mounts stay as they were."""
    rng = random.Random(20261122)
    words = ["losetup", "--find", "--show", "--direct-io=on", "--detach", "mount", "-o", "nosuid,nodev"]
    words += ["umount", "--lazy", "chown", "0:0", "/", "/etc", "-", "--"]
    words += ["", "/dev/loop99999", "/dev/sda", "../x", "\udcff", "a" * 5000, "/proc/self/fd/0"]
    words += [str(images), str(images / "disk.img"), str(images / "mount")]
    for _ in range(150):
        arguments = rng.choices(words, k=rng.randrange(7))
        done = call(*arguments)
        assert "Traceback" not in done.stderr, arguments
        assert done.returncode in (1, 2), arguments
    assert str(images) not in Path("/proc/self/mounts").read_text()
