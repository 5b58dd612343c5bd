"""A limit on memory holds for a process and its children, and is gone afterwards."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from knobscope.errors import UserError
from knobscope.servers import MemoryLimit, limit_memory

EATER = "import sys; sys.stdin.read(); x = bytearray(300 << 20); print('alive')"


def eat(limit: MemoryLimit) -> int:
    with subprocess.Popen([sys.executable, "-c", EATER], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        limit.add(process.pid)
        process.communicate(b"go")
    return process.returncode


@pytest.mark.real
def test_who_takes_more_is_killed() -> None:
    if os.geteuid() != 0:
        pytest.skip("control groups need root")
    with limit_memory(100) as limit:
        assert eat(limit) != 0
    with limit_memory(2000) as limit:
        assert eat(limit) == 0
    assert not list(Path("/sys/fs/cgroup").rglob(f"knobscope-{os.getpid()}"))


def test_no_limit_needs_nothing() -> None:
    with limit_memory(None) as limit:
        assert eat(limit) == 0


def test_who_may_not_limit_is_told() -> None:
    if os.geteuid() != 0:
        with pytest.raises(UserError, match="start knobscope as root"), limit_memory(100):
            pass
        return
    os.seteuid(65534)
    try:
        with pytest.raises(UserError, match="start knobscope as root"), limit_memory(100):
            pass
    finally:
        os.seteuid(0)
