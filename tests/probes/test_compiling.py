"""Every BPF program compiles without a warning, and so does every header of it by itself."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.real, pytest.mark.long]

PROBES = Path(__file__).parents[2] / "probes"

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(system_python: str) -> list[Row]:
    """What was compiled, and the complaints about it."""
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel has no type information (BTF), from which the programs' facts come")
    script = Path(__file__).with_name("compiled.py")
    done = subprocess.run([system_python, "-I", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_programs_and_headers_compile_alone(rows: list[Row]) -> None:
    assert [row for row in rows if row["complaints"] and row["file"] != "broken"] == []


def test_none_is_left_out(rows: list[Row]) -> None:
    assert {row["file"] for row in rows} - {"broken"} == {path.name for path in PROBES.glob("*.bpf.[ch]")}


def test_an_error_is_seen(rows: list[Row]) -> None:
    broken = next(row for row in rows if row["file"] == "broken")
    assert any("use of undeclared identifier 'not_declared'" in complaint for complaint in broken["complaints"])
