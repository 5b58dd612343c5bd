"""Spellings of numbers: what a column's cells decide together, and what they leave open."""

import csv
from pathlib import Path

import numpy as np
import pytest

from knobscope.cells import Problems, read_factor, read_numbers, read_text_table, read_truth
from knobscope.errors import UserError


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["64MB", "128kB", "0"], [64 << 20, 128 << 10, 0]),
        (["64m", "1G"], [64 << 20, 1 << 30]),
        (["5m", "1h"], [300, 3600]),
        (["10ms", "1.5 s"], [0.01, 1.5]),
        (["5MB/s", "2GB/s"], [5e6, 2e9]),
        (["12%", "7 %"], [12, 7]),
        (["131,072", "512", "33,554,432"], [131072, 512, 33554432]),
        (["1.234.567", "8.192"], [1234567, 8192]),
        (["1 024", "2\u202f048"], [1024, 2048]),
        (["1'024", "12"], [1024, 12]),
        (["0,5", "1,25"], [0.5, 1.25]),
        (["0,512", "1,024"], [0.512, 1.024]),
        (["1.234,5", "7"], [1234.5, 7]),
        (["1,234.5", "7"], [1234.5, 7]),
        (["1.234", "5.678"], [1.234, 5.678]),
        (["1e3", "\u22122"], [1000, -2]),
    ],
)
def test_all_cells_of_a_column_decide_what_one_means(texts: list[str], values: list[float]) -> None:
    found = read_numbers(texts)
    assert [found.values[text] for text in texts] == pytest.approx(values)
    assert found.problem is None and not found.unread


def test_what_no_cell_decides_is_refused_until_it_is_said() -> None:
    texts = ["1,234", "512"]
    assert read_numbers(texts).problem is not None
    assert read_numbers(texts, decimal=".").values == {"1,234": 1234, "512": 512}
    assert read_numbers(texts, decimal=",").values == {"1,234": 1.234, "512": 512.0}
    assert read_numbers(["1.234", "5.678"], doubt_points=True).problem is not None


@pytest.mark.parametrize("text", ["8.0.17", "3DES", "default", "2026-11-21", "10.0.0.1", "9" * 5000, "1e999"])
def test_what_is_no_number_stays_unread(text: str) -> None:
    assert read_numbers(["5", "7", text]).unread == [text]


def test_a_number_without_a_unit_among_numbers_with_one_is_a_question() -> None:
    found = read_numbers(["64MB", "2GB", "1024"])
    assert found.values == {} and found.problem is not None and found.problem[0] == "1024"


def test_words_are_words_and_truth_has_many_spellings() -> None:
    words = read_factor(["AES", "3DES"], "cipher", values={})
    assert words.values == {"AES": "AES", "3DES": "3DES"} and not words.problems
    assert read_truth(["On", "off", "1"]) == {"On": True, "off": False, "1": True}
    assert read_truth(["0", "1"]) is None and read_truth(["on", "off", "auto"]) is None


def test_random_numbers_survive_every_spelling() -> None:
    """Written with separators and units and read again, numbers are the same, or the column is refused."""
    rng = np.random.default_rng(1)
    styles = {".": ("", "."), ",": ("", ","), ",.": (",", "."), ".,": (".", ","), " ,": (" ", ","), "'.": ("'", ".")}
    refused = 0
    for _ in range(400):
        numbers = [round(float(x), int(rng.integers(0, 4))) for x in rng.uniform(0, 10 ** rng.integers(1, 8), 12)]
        group, decimal = list(styles.values())[rng.integers(0, len(styles))]
        texts = [f"{x:,}".replace(",", "\0").replace(".", decimal).replace("\0", group) for x in numbers]
        found = read_numbers(list(dict.fromkeys(texts)))
        refused += found.problem is not None
        points = all(text.replace(".", "", 1).isdigit() for text in texts)  # 1.234: what Python and C call a number
        if found.problem is None and not points:
            assert [found.values.get(text) for text in texts] == pytest.approx(numbers), texts
    assert refused < 40


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_delimiter_and_encoding_are_found(delimiter: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        rows = [["knob", "tps"], ["1,5", "100"], ["2,5", "200"], ["a\nb", "300"], ["", "400"]]
        csv.writer(file, delimiter=delimiter).writerows(rows)
    problems = Problems()
    table = read_text_table(path, problems)
    problems.raise_if_any()
    assert table is not None and list(table.columns) == ["knob", "tps"]
    assert table.columns["knob"].texts == ["1,5", "2,5", "a\nb", ""]
    assert list(table.lines) == [2, 3, 4, 6]


def test_bytes_that_are_no_text_are_named_by_line(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"a,b\n1,2\ncaf\xe9,1\n")
    problems = Problems()
    assert read_text_table(tmp_path / "table.csv", problems) is None
    with pytest.raises(
        UserError, match=r"table.csv:3: file: found b'caf\\xe9,1', which is no UTF-8; expected a CSV file"
    ):
        problems.raise_if_any()


def test_a_carriage_return_inside_a_cell_stays_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b'a,b\r\n"x\ry",1\r\n')
    table = read_text_table(tmp_path / "table.csv", Problems())
    assert table is not None and table.columns["a"].texts == ["x\ry"]


def test_rows_of_another_length_and_columns_that_are_there_twice_are_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b,a\n1,2,3\n1,2\n1,2,3,4\n")
    problems = Problems()
    read_text_table(tmp_path / "table.csv", problems)
    with pytest.raises(UserError, match="3 problems in the table") as caught:
        problems.raise_if_any()
    assert "table.csv:3: file: found 2 cells; expected 3, as in the header" in str(caught.value)
    assert "table.csv:4: file: found 4 cells" in str(caught.value)
    assert "table.csv:1: a: found the column a second time" in str(caught.value)


@pytest.mark.parametrize(("texts", "decimal"), [(["0.5", "1.25"], ","), (["1,5", "2,25"], ".")])
def test_decimals_that_are_written_otherwise_than_said_are_a_problem(texts: list[str], decimal: str) -> None:
    numbers = read_numbers(texts, decimal=decimal)
    assert not numbers.values
    assert numbers.problem is not None and numbers.problem[:2] == (texts[0], f"has no decimals behind {decimal!r}")
    assert read_numbers(texts).values == {
        texts[0]: float(texts[0].replace(",", ".")),
        texts[1]: float(texts[1].replace(",", ".")),
    }
