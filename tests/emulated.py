"""What emulated devices need of a machine; tests that use them are left out elsewhere."""

import os
from pathlib import Path

import pytest


def require_loops() -> None:
    """Skip the test where no loop device can be had."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root and /dev/loop-control")


def find_direct_memory(otherwise: Path) -> Path:
    """Return main memory as a file system, where that takes direct I/O: large writes there disturb no other test."""
    probe = Path(f"/dev/shm/knobscope-test-direct-{os.getpid()}")
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600))
    except OSError:  # kernels before 6.6, or no such file system
        return otherwise
    finally:
        probe.unlink(missing_ok=True)
    return Path("/dev/shm")


def require_models() -> None:
    """Skip the test where no modelled device can be had."""
    require_loops()
    if not Path("/dev/fuse").exists():
        pytest.skip("modelled devices need /dev/fuse")
