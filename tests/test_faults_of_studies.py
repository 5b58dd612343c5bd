"""Faults at random in two small studies: nothing is lost, doubled, left behind, or blamed on a configuration."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("faults", [2, pytest.param(10, marks=pytest.mark.long)])
def test_studies_survive_faults(device_profile: Path, tmp_path: Path, faults: int) -> None:
    """The short form of `make faults`: each disturbed call of a study goes on where the last one ended."""
    order = ["--trials", "2", "--faults", str(faults), "--studies", "sqlite", "redis", "--seed", "1"]
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
    assert f"| all | {2 * faults} | {2 * faults} |" in done.stdout
