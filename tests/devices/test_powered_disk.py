"""A drive that loses its power keeps what was flushed, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")]

#: Overwrites a block of a file past the page cache, flushes it or not, cuts the power and prints what is there.
OVERWRITE = """
import mmap, os, subprocess, sys
from pathlib import Path
from knobscope.devices import open_powered_disk
from knobscope.processes import keep_mounts_private

keep_mounts_private(None)
with open_powered_disk(Path(sys.argv[1]), 64 << 20) as disk:
    file, block = disk.directory / "file", mmap.mmap(-1, 4096)
    file.write_bytes(b"a" * 65536)
    subprocess.run(["sync", "-f", str(disk.directory)], check=True)
    block.write(b"b" * 4096)
    descriptor = os.open(file, os.O_RDWR | os.O_DIRECT)
    os.pwrite(descriptor, block, 8192)
    if sys.argv[2] == "flush":
        os.fdatasync(descriptor)
    disk.cut()
    os.close(descriptor)
    disk.restart()
    print(file.read_bytes()[8192:8193].decode())
"""


@pytest.mark.parametrize(("flush", "kept"), [("flush", "b"), ("", "a")])
def test_what_was_not_flushed_from_the_drives_cache_is_lost(flush: str, kept: str, open_directory: Path) -> None:
    command = [sys.executable, "-c", OVERWRITE, str(open_directory), flush]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (kept, "")
    assert list(open_directory.iterdir()) == []
