"""What commands say of a finished study that has little to say."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from knobscope.tables import TABLES

STUDY = str(Path(__file__).parents[2] / "specs/studies/quickstart.yaml")


@pytest.fixture
def quiet_study(tmp_path: Path) -> Path:
    """A database without a finding, in which one knob could not be tested for I/O."""
    database = tmp_path / "study.duckdb"
    with duckdb.connect(str(database)) as connection:
        for table, columns in TABLES.items():
            definition = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f'CREATE TABLE "{table}" ({definition})')
        connection.execute(
            "INSERT INTO io_related BY NAME SELECT 'sqlite' AS dbms, 'd' AS device, 'w' AS workload, "
            "'cache_size' AS knob, 'reads_per_op' AS response, 4 AS runs, 'insufficient' AS verdict"
        )
    return database


def test_a_number_of_no_finding(quiet_study: Path, refuses: Callable[..., str]) -> None:
    said = refuses("finding", STUDY, "1", "--database", quiet_study)
    assert said == "knobscope: no finding 1; no mismatch was found\n"


def test_a_directory_is_no_database_and_not_missing(tmp_path: Path, refuses: Callable[..., str]) -> None:
    said = refuses("finding", STUDY, "--database", tmp_path)
    assert f"knobscope: {tmp_path} is no file; a study writes it when its runs are done" in said


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("finding", ["--out", "there"], "--out: found no N; expected the number of a mismatch"),
        ("finding", ["--program", "server"], "--program: found no N"),
        ("io-knobs", ["--runs", "7"], "--runs: found no --measure"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    quiet_study: Path, refuses: Callable[..., str], command: str, options: list[str], message: str
) -> None:
    assert message in refuses(command, STUDY, "--database", quiet_study, *options)


def test_that_no_knob_could_be_tested_is_said(quiet_study: Path, prints: Callable[..., str]) -> None:
    assert prints("io-knobs", STUDY, "--database", quiet_study).startswith("no knob could be tested: ")
