"""A process that gets the number of one that has ended, as on a machine whose numbers have gone round."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

_LAST = Path("/proc/sys/kernel/ns_last_pid")


def start_as(pid: int, command: list[str], **options: Any) -> "subprocess.Popen[str]":
    """Start a process with this number, which is free; others may take it for a moment."""
    if not _LAST.exists():
        pytest.skip("this kernel lets nobody choose the number of a process")
    for _ in range(1000):
        _LAST.write_text(str(pid - 1))
        process = subprocess.Popen(command, text=True, **options)
        if process.pid == pid:
            return process
        process.kill()
        process.communicate()
    pytest.skip(f"number {pid} is in use")
