"""The kernel takes the programs in the form of each age, and checks the one of this age quickly."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(system_python: str) -> list[Row]:
    """What was loaded."""
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    script = Path(__file__).with_name("loaded.py")
    done = subprocess.run([system_python, "-I", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return found if found[0]["is_typed"] else pytest.skip("this kernel is older than 6.4")


@pytest.mark.parametrize("form", ["typed", "typed, before 6.4", "untyped", "stacked"])
def test_each_form_loads(rows: list[Row], form: str) -> None:
    loaded = [row for row in rows if row["form"] == form]
    assert {row["name"] for row in loaded} >= {"on_submit", "on_submitted", "on_exit", "on_waking", "on_issue"}
    assert {row["is_typed"] for row in loaded} == {form != "untyped"}


def test_the_verifier_follows_a_loop_once(rows: list[Row]) -> None:
    """And not 24 times, or 128, as where the kernel cannot: there it takes more than 100,000 instructions."""
    assert max(row["instructions"] for row in rows if row["form"] == "typed") < 30_000
