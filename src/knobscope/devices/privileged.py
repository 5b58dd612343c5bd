"""The few system programs that need root: a constant list, called with argument lists, by `sudo -n` if need be."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Literal

from knobscope.errors import UserError

__all__ = ["make_filesystem", "run_privileged"]

_PACKAGES = {
    "chown": "coreutils",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mount": "mount",
    "umount": "mount",
}
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # never the caller's PATH: these may run as root
_TIMEOUT_S = 120


def run_privileged(program: Literal["losetup", "mount", "umount", "chown"], arguments: Sequence[str]) -> str:
    """Run one of the programs as root and return what it prints; raises UserError when it may not run or fails."""
    command = [_find(program), *arguments]
    if os.geteuid() == 0:
        return _run(command)
    sudo = shutil.which("sudo", path=_SYSTEM_PATH)
    if sudo is None:
        raise UserError(f"an emulated device needs root for {program}, and there is no sudo here; {_WAYS_OUT}")
    try:
        return _run([sudo, "-n", *command])
    except UserError as error:
        if "sudo:" in str(error):  # its own words, not the program's
            raise UserError(
                f"an emulated device needs root for {program}, and `sudo -n` refuses it; {_WAYS_OUT}"
            ) from error
        raise


_WAYS_OUT = (
    "run as root, or allow losetup, mount, umount and chown in sudoers without a password, "
    "or give the device as `path` (an existing directory) instead of `emulate`"
)


def make_filesystem(filesystem: Literal["ext4", "xfs"], arguments: Sequence[str]) -> str:
    """Run mkfs as ourselves, on a file of ours, and return what it prints; raises UserError when it cannot."""
    return _run([_find(f"mkfs.{filesystem}"), *arguments])


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
