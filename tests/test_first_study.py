"""`make study` runs the first study on modelled drives where they come up, else on the disk of the checkout."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.real


def make_study(folder: Path, comes_up: bool) -> str:
    """Return what `make study` prints in a folder, with programs that only say how they were called."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, text in (("knobscope", f"exit {int(not comes_up)}"), ("snakemake", 'echo "snakemake $*"')):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    command = ["make", "-s", "-f", str(ROOT / "Makefile"), "-o", "setup", f"BIN={programs}", "study"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("comes_up", "begun", "study"),
    [
        (True, False, "quickstart-drives"),
        (False, False, "quickstart"),
        (False, True, "quickstart-drives"),  # chosen once: a later call without root goes on with the same study
    ],
)
def test_the_first_study_is_chosen_once(tmp_path: Path, comes_up: bool, begun: bool, study: str) -> None:
    if begun:
        (tmp_path / "results/quickstart-drives").mkdir(parents=True)
    said = make_study(tmp_path, comes_up)
    assert f"--config study=specs/studies/{study}.yaml\n" in said
    assert said.endswith(f"results/{study}/report.html\n")
    assert ("Modelled drives do not come up here." in said) == (study == "quickstart")
    assert (ROOT / f"specs/studies/{study}.yaml").exists()
