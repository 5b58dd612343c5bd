"""Faults at random in small studies: nothing is lost, doubled, left behind, or blamed on a configuration."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.long]
ROOT = Path(__file__).parents[1]


def test_studies_survive_faults(device_profile: Path, tmp_path: Path) -> None:
    """The short form of `make faults`: each disturbed call of a study goes on where the last one ended."""
    order = ["--trials", "2", "--faults", "10", "--studies", "sqlite", "redis", "--seed", "1"]
    files = ["--profile", device_profile, "--out", tmp_path / "out"]
    command = [sys.executable, ROOT / "benchmarks/faults", *order, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "| all | 20 | 20 |" in done.stdout
