"""Tests of the privileged program's parts."""

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
