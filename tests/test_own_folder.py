"""A folder of `knobscope init` runs studies with its own Snakefile, and no target needs to be named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from knobscope.cli import main

pytestmark = [pytest.mark.real, pytest.mark.slow]


def call_in(folder: Path) -> str:
    """Run study `small` as the folder's Snakefile says; return what Snakemake said."""
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", "study=specs/studies/small.yaml"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def test_a_call_without_a_target_makes_what_is_missing(small_study: Path) -> None:
    report = small_study / "results/small/report.html"
    report.unlink()
    assert main(["init", str(small_study)]) == 0
    assert "Error" not in call_in(small_study)
    assert report.exists()
    assert "Nothing to be done" in call_in(small_study)
