"""A limit on memory holds for a process and its children, and is gone afterwards."""

import os
import subprocess
import sys

import pytest
from cgroups import find_cgroups

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
        assert limit.has_killed
    with limit_memory(2000) as limit:
        assert eat(limit) == 0
        assert not limit.has_killed
    assert not find_cgroups(f"knobscope-memory-{os.getpid()}-*")


KILLED = """
import os, signal, sys
from knobscope.servers import limit_memory
with limit_memory(100):
    print(os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.real
def test_groups_of_who_was_killed_go_with_the_next_limit() -> None:
    if os.geteuid() != 0:
        pytest.skip("control groups need root")
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, check=False)
    left = f"knobscope-memory-{done.stdout.strip()}-*"
    assert len(find_cgroups(left)) == 1
    with limit_memory(100), limit_memory(50):  # one that lives stays
        assert not find_cgroups(left)
        assert len(find_cgroups(f"knobscope-memory-{os.getpid()}-*")) == 2


def test_no_limit_needs_nothing() -> None:
    with limit_memory(None) as limit:
        assert eat(limit) == 0
        assert not limit.has_killed


def test_missing_permission_to_limit_memory_is_reported() -> None:
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
