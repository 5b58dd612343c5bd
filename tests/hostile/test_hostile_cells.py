"""CSV files that knobscope writes for others: no cell is a formula, and no number loses its form."""

import csv
import io
from pathlib import Path

import pytest
from canaries import STUDY, Forge, Open

from knobscope.cells import to_csv

FORMULA = '=HYPERLINK("http://127.0.0.1/";"x")'


@pytest.mark.parametrize(
    "cell", [FORMULA, "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "-", "=1", "\uff1d1"]
)
def test_a_cell_that_would_be_calculated_is_a_text(cell: str) -> None:
    head, row = csv.reader(io.StringIO(to_csv([{cell: cell}]), newline=""))
    assert head == row == [f"'{cell}"]


def test_a_formula_behind_a_separator_of_other_languages_is_a_text() -> None:
    cells = [f"x;{FORMULA}", "x\t=1", "-1;=1"]
    (_, *rows) = csv.reader(io.StringIO(to_csv({"cell": cell} for cell in cells), newline=""))
    assert rows == [['x;\'=HYPERLINK("http://127.0.0.1/";"x")'], ["x\t'=1"], ["-1;'=1"]]


def test_other_cells_stay_as_they_are() -> None:
    row = {"number": -1.5, "text": "-1", "power": "+2e-9", "none": None, "word": 'a,"b"\n=c', "percent": "10 %"}
    row["list"] = "-1;+2;a=b|-3;-4"
    (read,) = csv.DictReader(io.StringIO(to_csv([row]), newline=""))
    assert read == {**row, "number": "-1.5", "none": ""}


@pytest.mark.slow
def test_no_written_csv_has_a_formula(forge: Forge, open_watched: Open, run_folder: Path, honest: Path) -> None:
    """The comparison's and those of the figures, with names of knobs and values that are formulas."""
    database = forge(*(f"UPDATE effects SET {name} = '{FORMULA}'" for name in ("knob", "value")))
    answers = open_watched(
        ["compare", database, honest, "--out", run_folder / "page.html", "--csv"],
        ["report", "--study", STUDY, "--database", database, "--out", run_folder / "report.html",
         "--figures", run_folder / "figures"],
    )  # fmt: skip
    assert [answer.code for answer in answers] == [0, 0]
    files = [run_folder / "page.csv", *(run_folder / "figures").glob("*.csv")]
    cells = [cell for file in files for row in csv.reader(file.open(newline="")) for cell in row]
    assert f"'{FORMULA}" in cells
    assert FORMULA not in cells
    assert len(files) > 3
