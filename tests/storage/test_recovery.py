"""What is damaged among a study's results is set aside; what is whole, absent or in the making stays."""

import os
import shutil
from pathlib import Path

import duckdb
import pytest

from knobscope.recovery import set_aside_damaged
from knobscope.storage import write_json, write_sealed, write_text
from knobscope.tables import write_table

CASE = "sqlite/here/ycsb-a"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of which nothing is damaged, to be read only."""
    results = tmp_path_factory.mktemp("whole")
    write_sealed(results / "devices/here.json", {"device": "here"})
    write_sealed(results / CASE / "fit/0.json", {"stopped": True})
    write_sealed(results / CASE / "repeat/0.json", {"more": 0})
    write_table(results / CASE / "plan/screen-0.parquet", "plan", [])
    write_table(results / CASE / "runs/screen-0-0/runs.parquet", "runs", [])
    write_table(results / CASE / "runs/screen-0-0/intervals.parquet", "intervals", [])
    with duckdb.connect(str(results / "study.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS n, repeat('x', 1000) AS t FROM range(2000)")
    write_text(results / "report.html", f"<!doctype html><body>{'x' * 10_000}</body></html>\n")
    return results


@pytest.fixture
def results(whole: Path, tmp_path: Path) -> Path:
    """A copy of them, for a test to damage."""
    return shutil.copytree(whole, tmp_path, dirs_exist_ok=True)


def test_whole_results_stay(results: Path) -> None:
    (results / CASE / "runs/screen-0-1.part").mkdir()
    assert set_aside_damaged(results) == []
    assert set_aside_damaged(results / "of a study that never ran") == []


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"\0" * 5000, b"PAR1" + b"x" * 50 + b"\xff\xff\xff\x7fPAR1", b"{}"])
@pytest.mark.parametrize(
    ("file", "output"),
    [
        ("devices/here.json", "devices/here.json"),
        (f"{CASE}/fit/0.json", f"{CASE}/fit/0.json"),
        (f"{CASE}/repeat/0.json", f"{CASE}/repeat/0.json"),
        (f"{CASE}/plan/screen-0.parquet", f"{CASE}/plan/screen-0.parquet"),
        (f"{CASE}/runs/screen-0-0/intervals.parquet", f"{CASE}/runs/screen-0-0"),
        ("study.duckdb", "study.duckdb"),
        ("report.html", "report.html"),
    ],
)
def test_a_damaged_file_is_set_aside_with_its_output(results: Path, file: str, output: str, damage: bytes) -> None:
    (results / file).write_bytes(damage)
    sentences = set_aside_damaged(results)
    assert len(sentences) == 1
    assert file in sentences[0]
    assert not (results / output).exists()
    assert (results / f"{output}.damaged").exists()
    assert set_aside_damaged(results) == []


@pytest.mark.parametrize("file", ["study.duckdb", "report.html", f"{CASE}/plan/screen-0.parquet"])
def test_the_first_half_of_a_file_is_no_whole_one(results: Path, file: str) -> None:
    os.truncate(results / file, (results / file).stat().st_size // 2)
    (sentence,) = set_aside_damaged(results)
    assert file in sentence


def test_a_database_that_somebody_has_open_is_not_damaged(results: Path) -> None:
    with duckdb.connect(str(results / "study.duckdb")) as connection:
        connection.execute("CREATE TABLE u AS SELECT 1")
        assert set_aside_damaged(results) == []


def test_a_block_without_its_runs_and_a_fit_of_another_shape_are_damaged(results: Path) -> None:
    (results / CASE / "runs/screen-0-0/runs.parquet").unlink()
    write_json(results / CASE / "fit/0.json", ["stopped"])
    assert len(set_aside_damaged(results)) == 2
