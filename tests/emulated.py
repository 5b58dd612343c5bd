"""What emulated devices need of a machine; tests that use them are left out elsewhere."""

import os
from pathlib import Path

import pytest

__all__ = ["require_loops", "require_models"]


def require_loops() -> None:
    """Skip the test where no loop device can be had."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root and /dev/loop-control")


def require_models() -> None:
    """Skip the test where no modelled device can be had."""
    require_loops()
    if not Path("/dev/fuse").exists():
        pytest.skip("modelled devices need /dev/fuse")
