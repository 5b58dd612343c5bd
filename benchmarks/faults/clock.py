"""A clock that jumps for the processes of a trial only: a library that they load (clock.c), and times of their files.

The kernel goes on stamping files with the machine's time. So what was written before a jump is moved instead, the other
way: then a program sees the files as it would after a jump.
"""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path


class Clock:
    """The clock of all processes that are started with its `environment`."""

    def __init__(self, folder: Path) -> None:
        self._file, self._library = folder / "clock", folder / "clock.so"
        self._file.write_bytes(struct.pack("q", 0))
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(self._library), str(source), "-ldl"], check=True)

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process live by this clock."""
        return {"LD_PRELOAD": str(self._library), "KNOBSCOPE_FAULTS_CLOCK": str(self._file)}

    def jump(self, seconds: int, files: Path) -> None:
        """Move the clock, and what was written so far the other way."""
        before = struct.unpack("q", self._file.read_bytes())[0]
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", before + seconds))
        for path in [files, *files.rglob("*")]:
            try:
                state = path.lstat()
                moved = (state.st_atime_ns - seconds * 10**9, state.st_mtime_ns - seconds * 10**9)
                os.utime(path, ns=moved, follow_symlinks=False)
            except FileNotFoundError:
                continue
