"""The kernel takes the programs in the form of each age, and checks the one of this age quickly."""

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    "form",
    ["typed", "untyped", *(pytest.param(form, marks=pytest.mark.long) for form in ("typed, before 6.4", "stacked"))],
)
def test_each_form_loads(system_python: str, form: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    script = Path(__file__).with_name("loaded.py")
    done = subprocess.run([system_python, "-I", str(script), form], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = [json.loads(line) for line in done.stdout.splitlines()] or pytest.skip("this kernel is older than 6.4")
    assert {row["name"] for row in loaded} >= {"on_submit", "on_submitted", "on_exit", "on_waking", "on_issue"}
    assert {row["is_typed"] for row in loaded} == {form != "untyped"}
    if form == "typed":
        # A loop is followed once, and not 24 or 128 times, as where the kernel cannot: that takes more than 100,000.
        assert max(row["instructions"] for row in loaded) < 30_000
