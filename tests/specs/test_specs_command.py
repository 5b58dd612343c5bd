"""The command line: exit code 2 and no traceback for wrong specs; nothing is written by checking."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from json_documents import read_document

from knobscope.cli import main
from knobscope.specs import SpecErrors, load_study

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


def test_a_study_near_the_root_of_the_file_system_is_read() -> None:
    """Specs of its kind are looked for next to its folder, and rules and models next to that: here there is no next."""
    study = next((HERE / "good/studies").glob("*.yaml"))
    with tempfile.NamedTemporaryFile(dir="/tmp", suffix=".yaml") as file:
        shutil.copy(study, file.name)
        with pytest.raises(SpecErrors, match="no spec named"):
            load_study(Path(file.name), Path("/tmp"), runnable=False)


def test_right_specs_end_with_0(checkout: Path) -> None:
    done = run(checkout, "validate")
    assert (done.returncode, done.stdout) == (0, "15 specs checked, no problem found\n")


def test_problems_are_a_document_for_programs(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(HERE / "bad/studies/value_outside.yaml", checkout / "specs/studies")
    assert main(["validate", str(checkout / "specs/studies"), "--json"]) == 2
    document = read_document("validate", capsys.readouterr().out)
    (problem,) = document["problems"]
    assert (problem["line"], problem["key"], problem["found"]) == (9, "knobs.server.log_size.values.1", "2000")
    assert main(["validate", str(checkout / "specs/devices"), "--json"]) == 0
    document = read_document("validate", capsys.readouterr().out)
    assert (len(document["files"]), document["problems"]) == (5, [])


def test_paths_choose_what_is_checked(checkout: Path, prints: Callable[..., str]) -> None:
    said = prints("validate", checkout / "specs/devices", checkout / "specs/dbms/server.yaml")
    assert said == "6 specs checked, no problem found\n"


@pytest.mark.parametrize(
    ("path", "message"), [("nowhere", "nowhere does not exist"), ("empty", "no spec in empty; expected files")]
)
def test_nothing_to_check_is_an_error(checkout: Path, path: str, message: str, refuses: Callable[..., str]) -> None:
    (checkout / "empty").mkdir()
    assert message.replace(path, str(checkout / path)) in refuses("validate", str(checkout / path))


def test_schema_writes_what_editors_and_readers_use(checkout: Path, prints: Callable[..., str]) -> None:
    said = prints("schema", "--root", checkout)
    files = [Path(line) for line in said.splitlines()]
    assert [str(file.relative_to(checkout)) for file in files] == [
        *(
            f"specs/schemas/{kind}.json"
            for kind in ("dbms", "device", "workload", "generator", "study", "rule", "exclusions")
        ),
        "docs/reference/specs.md",
        "docs/reference/rules.md",
    ]
    assert all(file.stat().st_size > 0 for file in files)
