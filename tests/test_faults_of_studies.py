"""Faults at random in small studies: nothing is lost, doubled, left behind, or blamed on a configuration."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("studies", "faults"), [(["sqlite"], 1), pytest.param(["sqlite", "redis"], 10, marks=pytest.mark.long)]
)
def test_studies_survive_faults(device_profile: Path, tmp_path: Path, studies: list[str], faults: int) -> None:
    """The short form of `make faults`: each disturbed call of a study goes on where the last one ended."""
    order = ["--trials", str(len(studies)), "--faults", str(faults), "--studies", *studies, "--seed", "1"]
    files = ["--profile", device_profile, "--out", tmp_path / "out"]
    command = [sys.executable, ROOT / "benchmarks/faults", *order, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    total = len(studies) * faults
    assert f"| all | {total} | {total} |" in done.stdout
