"""Gives processes back that a monitor moved into its cgroup, when it is killed with -9; ends with the monitor.

Run as ``/usr/bin/python3 -I warden.py DIRECTORY PARENT`` by the monitor, before it moves a process. While the monitor
lives it holds a lock on the directory, so that nobody has to look again and again.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from cgroup import give_back  # noqa: E402


def main() -> int:
    """Wait for the end of the monitor; do what it did not."""
    directory, parent = map(Path, sys.argv[1:])
    try:
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return 0  # given back already
    fcntl.flock(lock, fcntl.LOCK_EX)
    if directory.exists():
        give_back(directory, parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
