"""Tests of the privileged program's parts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBES = Path(__file__).parents[2] / "probes"
SYSTEM_PYTHON = "/usr/bin/python3"

sys.path.append(str(PROBES))  # its modules import each other by name, as they do when it runs


@pytest.fixture(scope="session")
def system_python() -> str:
    """The Python that bcc comes with."""
    if subprocess.run([SYSTEM_PYTHON, "-c", "import bcc"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the system's Python has no bcc")
    return SYSTEM_PYTHON


@pytest.fixture(scope="session")
def device() -> str:
    """The number of a device with requests, whatever it is; loop devices come and go with other programs."""
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    found = sorted((path.parent for path in Path("/sys/block").glob("*/mq")), key=_is_loop)
    if not found:
        pytest.skip("this machine has no device with requests")
    return (found[0] / "dev").read_text().strip()


def _is_loop(device: Path) -> bool:
    return device.name.startswith("loop")
