"""Brings a device into a known state before a block of runs: free space trimmed, cells written, heat gone.

A flash drive that was trimmed is faster than one whose cells are all written, and goes from one state to the other
while it is measured (SNIA, Solid State Storage Performance Test Specification, calls this preconditioning).
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

from knobscope.devices.mounts import find_mount
from knobscope.devices.scratch import require_free
from knobscope.durable_files import synchronise_filesystem
from knobscope.errors import UserError
from knobscope.specs.models.device import Precondition

_CHUNK = 16 << 20
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def precondition(wanted: Precondition, directory: Path) -> None:
    """Trim, fill and rest, as far as they are wanted, on the file system of a directory.

    UserError: the file system cannot be trimmed, or has no room for what is to be written.
    """
    if wanted.trim:
        _trim(find_mount(directory).point)
    if wanted.fill is not None:
        _fill(directory, wanted.fill.bytes)
    time.sleep(wanted.rest_s)


def _trim(point: Path) -> None:
    program = shutil.which("fstrim", path=_SYSTEM_PATH)
    if program is None:
        raise UserError("`trim` needs the program fstrim; install it: apt-get install util-linux")
    synchronise_filesystem(point)  # until then blocks of removed files are not free
    result = subprocess.run([program, str(point)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise UserError(f"`trim` of {point} failed, it needs root and a device that can: {result.stderr.strip()}")


def _fill(directory: Path, size: int) -> None:
    """Write so many random bytes to a file, wait until they are on the device, and remove the file."""
    file = directory / "fill"
    file.unlink(missing_ok=True)  # of a call that was killed
    require_free(directory, size, "`fill`")
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        for written in range(0, size, _CHUNK):
            os.write(descriptor, os.urandom(min(_CHUNK, size - written)))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        file.unlink()
