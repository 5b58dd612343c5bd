"""Whatever a file holds: it is a spec, or its problems are told by line. Never a traceback, never a hang.

KNOBSCOPE_FUZZ says how many specs of each of the four kinds are tried, 25 without.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzzing import FOLDERS, drawn_from_schema, mutated_data, mutated_text, write_yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knobscope.specs import SpecErrors, load_study, validate_files
from knobscope.workflow.pipeline import Pipeline

HERE = Path(__file__).parent
SHIPPED = HERE.parents[1] / "specs"
FILES = sorted((HERE / "good").rglob("*.yaml")) + [
    SHIPPED / name
    for name in (
        "dbms/sqlite.yaml",
        "dbms/redis.yaml",
        "dbms/h2.yaml",
        "studies/quickstart.yaml",
        "workloads/ycsb-e.yaml",
    )
]
#: A study of whatever DBMS was drawn.
STUDY = """\
name: asks
description: asks
dbms: [drawn]
devices: [disk]
workloads: {mix: }
knobs: {drawn: {flush: , log_size: , size: {values: [1]}}}
"""
EXAMPLES = settings(
    max_examples=int(os.environ.get("KNOBSCOPE_FUZZ", "25")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize="KNOBSCOPE_FUZZ" not in os.environ,
    database=None,
)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a shelf of good specs; the drawn one becomes drawn.yaml in the folder of its kind."""
    shelf = tmp_path_factory.mktemp("shelf")
    shutil.copytree(HERE / "good", shelf, dirs_exist_ok=True)
    (shelf / "studies/asks.yaml").write_text(STUDY)
    before = Path.cwd()
    os.chdir(shelf)
    yield shelf
    os.chdir(before)


def check(shelf: Path, folder: str, content: bytes) -> None:
    """Fail when a file is neither right nor explained."""
    file = shelf / folder / "drawn.yaml"
    file.write_bytes(content)
    try:
        validate_files([file, *([shelf / "studies/asks.yaml"] if folder == "dbms" else [])], shelf, runnable=True)
    except SpecErrors as error:
        assert error.problems
        lines = len(content.decode("utf-8", "replace").splitlines()) + 1
        for problem in error.problems:
            text = str(problem)
            text.encode()
            assert "\n" not in text, text
            assert 1 <= problem.line <= (lines if problem.file == f"{folder}/drawn.yaml" else 100), text
        return
    finally:
        file.unlink()
    if folder == "studies":
        file.write_bytes(content)
        pipeline = Pipeline(load_study(file, shelf), str(file))
        file.unlink()
        assert pipeline.describe()


def named(data: Any) -> Any:
    """Give the name of its file to data that has one, so that more than the name is wrong."""
    return {**data, "name": "drawn"} if isinstance(data, dict) and "name" in data else data


@pytest.mark.parametrize("kind", FOLDERS)
def test_data_of_the_schema(drawn: Path, kind: str) -> None:
    @given(drawn_from_schema(kind, FILES))
    @settings(EXAMPLES, max_examples=max(5, EXAMPLES.max_examples // len(FOLDERS)))
    def run(data: Any) -> None:
        check(drawn, FOLDERS[kind], write_yaml(named(data)))

    run()


@pytest.mark.slow
def test_mutated_data(drawn: Path) -> None:
    @given(mutated_data(FILES))
    @EXAMPLES
    def run(case: tuple[Path, Any]) -> None:
        path, data = case
        check(drawn, path.parent.name, write_yaml(named(data)))

    run()


def test_mutated_text(drawn: Path) -> None:
    @given(mutated_text(FILES))
    @EXAMPLES
    def run(case: tuple[Path, bytes]) -> None:
        path, content = case
        check(drawn, path.parent.name, content.replace(f"name: {path.stem}\n".encode(), b"name: drawn\n"))

    run()


def test_bytes(drawn: Path) -> None:
    @given(st.sampled_from(sorted(FOLDERS.values())), st.one_of(st.binary(max_size=200), st.text(max_size=100)))
    @EXAMPLES
    def run(folder: str, content: bytes | str) -> None:
        check(drawn, folder, content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))

    run()
