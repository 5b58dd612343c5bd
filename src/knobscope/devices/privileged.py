"""The few system programs that need root: a constant list, called with argument lists, or through the helper."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from knobscope.errors import UserError
from knobscope.shipped import SHIPPED

if TYPE_CHECKING:
    from knobscope.specs.models.device import Filesystem

_PACKAGES = {
    "chown": "coreutils",
    "fusermount3": "fuse3",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mount": "mount",
    "umount": "mount",
}
#: Lazy initialisation would write in the background, in the middle of measurements; ext4 would take blocks of 1 KiB on
#: images below 512 MiB, and no real device has those.
_MKFS_OPTIONS = {
    "ext4": ["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-b"],
    "xfs": ["-q", "-f", "-b"],
}
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # never the caller's PATH: these may run as root
_TIMEOUT_S = 120
_HELPER = Path("/usr/local/lib/knobscope/device-helper")  # root's alone, unlike a checkout
_HELPER_SOURCE = SHIPPED / "setup" / "device-helper.py"


def run_as_root(program: Literal["losetup", "mount", "umount", "chown"], arguments: Sequence[str]) -> str:
    """Run one of the programs and return what it prints; raises UserError when it fails, or we are not root."""
    if os.geteuid() != 0:
        raise UserError(f"{program} needs root")
    return _run([_find(program), *arguments])


def call_helper(arguments: Sequence[str]) -> str:
    """Let the installed helper attach, mount and unmount images of ours (setup/device-helper.py), for who is not root.

    Returns what it prints; raises UserError when it is not there, may not run or fails.
    """
    sudo = find_sudo()
    try:
        return _run([sudo, "-n", str(_HELPER), *arguments])
    except UserError as error:
        if "sudo:" in str(error):  # its own words, not the program's
            raise UserError(f"an emulated device needs root, and `sudo -n` refuses it; {_WAYS_OUT}") from error
        raise


def find_sudo() -> str:
    """Return the path of sudo; raises UserError when it is missing, or no helper of this version is installed."""
    sudo = shutil.which("sudo", path=_SYSTEM_PATH)
    if sudo is None:
        raise UserError(f"an emulated device needs root, and there is no sudo here; {_WAYS_OUT}")
    if not _HELPER.exists():
        raise UserError(f"an emulated device needs root, and {_HELPER} is not there; {_WAYS_OUT}")
    if _HELPER.read_bytes() != _HELPER_SOURCE.read_bytes():
        raise UserError(f"{_HELPER} is of another version than this checkout; let root call setup/install-helper.sh")
    return sudo


_WAYS_OUT = (
    "run as root, or let root call setup/install-helper.sh and allow its helper in sudoers "
    "(docs/reference/security.md), or give the device as `path` (an existing directory) instead of `emulate`"
)


def make_filesystem(filesystem: "Filesystem", image: Path, *, block_bytes: int = 4096, journal: bool = True) -> None:
    """Run mkfs as ourselves, on a file of ours; raises UserError when it cannot."""
    size = f"size={block_bytes}" if filesystem == "xfs" else str(block_bytes)
    without = [] if journal else ["-O", "^has_journal"]
    _run([_find(f"mkfs.{filesystem}"), *_MKFS_OPTIONS[filesystem], size, *without, str(image)])


def unmount_fuse(file: Path, *, lazy: bool) -> None:
    """Unmount the file of a program that answers through FUSE; who is not root may do that with FUSE's own program."""
    if os.geteuid() == 0:
        _run([_find("umount"), *(["--lazy"] if lazy else []), str(file)])
    else:
        _run([_find("fusermount3"), "-u", *(["-z"] if lazy else []), str(file)])


def set_queue(loop: str, *, rotational: bool | None) -> None:
    """Undo what others set on a loop device, and tell file systems whether it is a disk; only root may.

    None leaves `rotational` as the storage below has it. A loop device keeps settings long after it was detached: with
    the largest request that somebody once set, requests of the next one are cut, sequential writes came to a fifth of
    their speed; with a cache that was called write-through, the kernel sends the next one no
    flushes, and a killed run leaves its scheduler.
    """
    if os.geteuid() != 0:
        return
    queue = Path("/sys/block", loop, "queue")
    (queue / "max_sectors_kb").write_text((queue / "max_hw_sectors_kb").read_text())
    (queue / "write_cache").write_text("write back")
    if "[none]" not in (queue / "scheduler").read_text():
        (queue / "scheduler").write_text("none")
    if rotational is not None:
        (queue / "rotational").write_text(str(int(rotational)))


def _find(program: str) -> str:
    path = shutil.which(program, path=_SYSTEM_PATH)
    if path is None:
        raise UserError(f"no program {program} here; install it: apt-get install {_PACKAGES[program]}")
    return path


def _run(command: list[str]) -> str:
    is_unmounting = Path(command[0]).name in ("umount", "fusermount3")  # writes what is dirty, at the device's speed
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=None if is_unmounting else _TIMEOUT_S,
            env={**os.environ, "LC_ALL": "C"},  # callers look for words in what it says
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"`{' '.join(command)}` did not end within {_TIMEOUT_S} s") from error
    if result.returncode != 0:
        message = (result.stderr or result.stdout).strip() or f"exit code {result.returncode}"
        raise UserError(f"`{' '.join(command)}` failed: {message}")
    return result.stdout.strip()
