"""The command line: exit code 2 and no traceback for wrong specs; nothing is written by checking."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a directory with the good specs where a checkout has them."""
    shutil.copytree(HERE / "good", tmp_path / "specs")
    return tmp_path


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "knobscope", *arguments], cwd=directory, capture_output=True, text=True, check=False
    )


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_wrong_specs_end_with_2_and_no_traceback(checkout: Path) -> None:
    shutil.copy(HERE / "bad/devices/missing_path.yaml", checkout / "specs/devices")
    shutil.copy(HERE / "bad/studies/value_outside.yaml", checkout / "specs/studies")
    before = contents(checkout)
    done = run(checkout, "validate", "--runnable")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "knobscope: 2 problems in the specs",
        "specs/devices/missing_path.yaml:5: path: found 'surely/not/here', which is no directory; "
        "expected an existing directory on the device",
        "specs/studies/value_outside.yaml:9: knobs.server.log_size.values.1: found 2000; "
        "expected another value: it is outside [1, 1000]",
    ]
    assert contents(checkout) == before


def test_right_specs_end_with_0(checkout: Path) -> None:
    done = run(checkout, "validate")
    assert (done.returncode, done.stdout) == (0, "6 specs checked, no problem found\n")
    one = run(checkout, "validate", os.fspath(checkout / "specs/devices"))
    assert (one.returncode, one.stdout) == (0, "2 specs checked, no problem found\n")


@pytest.mark.parametrize(
    ("path", "message"), [("nowhere", "nowhere does not exist"), ("empty", "no spec in empty; expected files")]
)
def test_nothing_to_check_is_an_error(checkout: Path, path: str, message: str) -> None:
    (checkout / "empty").mkdir()
    done = run(checkout, "validate", path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"knobscope: {message}")


def test_schema_writes_what_editors_and_readers_use(checkout: Path) -> None:
    done = run(checkout, "schema")
    assert done.returncode == 0
    written = ["specs/schemas/dbms.json", "specs/schemas/device.json", "specs/schemas/workload.json"]
    assert done.stdout.splitlines() == [*written, "specs/schemas/study.json", "docs/specs.md"]
    assert all((checkout / path).stat().st_size > 0 for path in done.stdout.splitlines())
