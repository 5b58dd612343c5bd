"""Twelve faults at random in two small studies: nothing is lost, doubled, left behind, or blamed on a configuration."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[1]


def test_studies_survive_twelve_faults(device_profile: Path, tmp_path: Path) -> None:
    """The short form of `make faults`: six calls of each study are disturbed, each goes on where the last one ended."""
    order = ["--trials", "2", "--faults", "6", "--studies", "sqlite", "redis", "--seed", "1"]
    command = [
        sys.executable,
        ROOT / "benchmarks/faults",
        *order,
        "--profile",
        device_profile,
        "--out",
        tmp_path / "out",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "| all | 12 | 12 |" in done.stdout
