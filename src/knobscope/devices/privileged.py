"""The few system programs that need root: a constant list, called with argument lists, by `sudo -n` if need be."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from knobscope.errors import UserError

__all__ = ["make_filesystem", "run_privileged", "set_queue", "unmount_fuse"]

_PACKAGES = {
    "chown": "coreutils",
    "fusermount3": "fuse3",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mount": "mount",
    "umount": "mount",
}
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # never the caller's PATH: these may run as root
_TIMEOUT_S = 120
_HELPER = Path("/usr/local/lib/knobscope/device-helper")  # root's alone, unlike a checkout


def run_privileged(program: Literal["losetup", "mount", "umount", "chown"], arguments: Sequence[str]) -> str:
    """Run one of the programs as root and return what it prints; raises UserError when it may not run or fails.

    Who is not root calls the installed helper, which does it for what belongs to its caller (setup/device-helper.py).
    """
    if os.geteuid() == 0:
        return _run([_find(program), *arguments])
    sudo = shutil.which("sudo", path=_SYSTEM_PATH)
    if sudo is None:
        raise UserError(f"an emulated device needs root for {program}, and there is no sudo here; {_WAYS_OUT}")
    if not _HELPER.exists():
        raise UserError(f"an emulated device needs root for {program}, and {_HELPER} is not there; {_WAYS_OUT}")
    try:
        return _run([sudo, "-n", str(_HELPER), program, *arguments])
    except UserError as error:
        if "sudo:" in str(error):  # its own words, not the program's
            raise UserError(
                f"an emulated device needs root for {program}, and `sudo -n` refuses it; {_WAYS_OUT}"
            ) from error
        raise


_WAYS_OUT = (
    "run as root, or let root call setup/install-helper.sh and allow its helper in sudoers (docs/security.md), "
    "or give the device as `path` (an existing directory) instead of `emulate`"
)


def make_filesystem(filesystem: Literal["ext4", "xfs"], arguments: Sequence[str]) -> str:
    """Run mkfs as ourselves, on a file of ours, and return what it prints; raises UserError when it cannot."""
    return _run([_find(f"mkfs.{filesystem}"), *arguments])


def unmount_fuse(file: Path, *, lazy: bool) -> None:
    """Unmount the file of a program that answers through FUSE; who is not root may do that with FUSE's own program."""
    if os.geteuid() == 0:
        _run([_find("umount"), *(["--lazy"] if lazy else []), str(file)])
    else:
        _run([_find("fusermount3"), "-u", *(["-z"] if lazy else []), str(file)])


def set_queue(loop: str, *, rotational: bool | None) -> None:
    """Undo the limit that others set on a loop device, and tell file systems whether it is a disk; only root may.

    None leaves `rotational` as the storage below has it. A loop device keeps the largest request that somebody once
    set, long after it was detached: requests of the next one are cut, sequential writes came to a fifth of their speed.
    """
    if os.geteuid() != 0:
        return
    queue = Path("/sys/block", loop, "queue")
    (queue / "max_sectors_kb").write_text((queue / "max_hw_sectors_kb").read_text())
    if rotational is not None:
        (queue / "rotational").write_text(str(int(rotational)))


def _find(program: str) -> str:
    found = shutil.which(program, path=_SYSTEM_PATH)
    if found is None:
        raise UserError(f"no program {program} here; install it: apt-get install {_PACKAGES[program]}")
    return found


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise UserError(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()
