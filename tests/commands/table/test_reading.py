"""How `rank`, `replay` and `trend` read the cells of a table: the spelling of a value changes no result."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from known_tables import measured

from knobscope.cells import Problems, read_text_table
from knobscope.cli import main
from knobscope.statistics.suspicion import find_failure_code


def make(rows: int = 240) -> pd.DataFrame:
    """`buffer` matters most, then `cache`; `trigger` not at all."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"buffer": 1 << rng.integers(10, 30, rows), "cache": rng.random(rows) < 0.5})
    table["trigger"] = 1 << rng.integers(0, 9, rows)
    table["tps"] = (2000 * np.log2(table.buffer) - 4000 * table.cache + rng.normal(0, 300, rows)).round().astype(int)
    return table


def with_unit(size: int) -> str:
    power = min(int(np.log2(size)) // 10, 2)
    return f"{size >> 10 * power}{['B', 'kB', 'MB'][power]}"


def rank(table: pd.DataFrame, folder: Path, *arguments: str, sep: str = ",") -> dict[str, object]:
    table.to_csv(folder / "table.csv", index=False, sep=sep)
    out = folder / "out.json"
    command = ["rank", str(folder / "table.csv"), "--response", "tps", "--model", "anova", "--json", str(out)]
    assert main([*command, *arguments]) == 0
    result: dict[str, object] = json.loads(out.read_text())
    return result


def refusal(table: pd.DataFrame, folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    table.to_csv(folder / "table.csv", index=False)
    assert main(["rank", str(folder / "table.csv"), "--response", "tps", *arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.slow
def test_spelling_changes_no_ranking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = make()
    expected = rank(plain, tmp_path)
    spelled = plain.assign(buffer=plain.buffer.map(with_unit), cache=plain.cache.map({True: "On", False: "off"}))
    assert rank(spelled, tmp_path, sep=";") == expected
    assert "buffer: numbers, with a unit (MB, kB): in bytes, 1 kB = 1024 B" in capsys.readouterr().err
    grouped = plain.assign(buffer=plain.buffer.map("{:,}".format), tps=plain.tps.map(lambda x: f"{x / 1000:.3f}k"))
    scaled = rank(grouped, tmp_path)
    assert scaled["holdout_r2"] == pytest.approx(expected["holdout_r2"], rel=1e-3)
    german = plain.assign(tps=[f"{tps:,}".replace(",", ".") + ",0" for tps in plain.tps])
    assert rank(german, tmp_path, sep="\t") == expected
    assert "tps: numbers, '.' between thousands, ',' before decimals" in capsys.readouterr().err


@pytest.mark.slow
def test_a_category_of_digits_is_no_number(tmp_path: Path) -> None:
    """Odd modes are fast: as numbers, neighbours are taken together, and nothing is seen of that."""
    table = make(400)
    table["mode"] = np.random.default_rng(4).integers(0, 16, len(table))
    table["tps"] += 40_000 * (table["mode"] % 2)
    first = [rank(table, tmp_path, *more)["knobs"][0]["knob"] for more in ((), ("--category", "mode"))]  # type: ignore[index]
    assert first == ["buffer", "mode"]


@pytest.mark.parametrize("comments", [["# measured on a laptop"], ["# one, two", "#", "# three,four,five,six"]])
def test_comments_above_the_header_are_no_rows(comments: list[str], tmp_path: Path) -> None:
    table = make()
    plain = rank(table, tmp_path)
    path = tmp_path / "commented.csv"
    path.write_text("\n".join([*comments, table.to_csv(index=False)]))
    out = tmp_path / "commented.json"
    command = ["rank", str(path), "--response", "tps", "--model", "anova", "--json", str(out)]
    assert main(command) == 0
    assert json.loads(out.read_text()) == {**plain, "table": str(path)}
    header, rows = table.to_csv(index=False).split("\n", 1)
    path.write_text(f"{chr(10).join(comments)}\n{header}\n1,2\n{rows}")
    problems = Problems()
    read_text_table(path, problems)
    assert {problem.line for problem in problems.found} == {len(comments) + 2}


def test_a_comment_above_numbers_is_the_header(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("# from a plot\n#buffer,tps\n1,2\n")
    table = read_text_table(path, Problems())
    assert table is not None
    assert [*table.columns] == ["#buffer", "tps"]


@pytest.mark.parametrize("word", ["default", "huge"])
def test_one_word_makes_no_category(word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = make()
    table["buffer"] = table.buffer.astype(object)
    table.loc[[17, 90], "buffer"] = word
    said = refusal(table, tmp_path, capsys)
    assert f"table.csv:19: buffer: found '{word}' (2 rows); expected " in said
    assert f"--value buffer:{word}=NUMBER" in said
    assert rank(table, tmp_path, "--value", f"buffer:{word}=33554432")["trustworthy"]


def test_words_for_failure_are_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = make()
    table["tps"] = table.tps.astype(object)
    table.loc[[1, 2, 3, 4], "tps"] = ["TIMEOUT", "ERR", "NaN", ""]
    assert rank(table, tmp_path)["rows"] == 236
    assert "4 rows failed (tps: TIMEOUT 1, ERR 1, NaN 1, nothing 1) and are left out" in capsys.readouterr().err
    table.loc[5, "tps"] = "lost"
    assert "table.csv:7: tps: found 'lost'; expected a number" in refusal(table, tmp_path, capsys)
    assert rank(table, tmp_path, "--failed-value", "lost")["rows"] == 235


@pytest.mark.slow
def test_zeros_next_to_failed_runs_are_suspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = make()
    table["tps"] = table.tps.astype(object)
    table.loc[[1, 2], "tps"] = ["TIMEOUT", 0]
    result = rank(table, tmp_path)
    assert not result["trustworthy"]
    assert "1 row holds 0 next to rows that failed" in str(result["reason"])
    assert "--failed-value 0" in capsys.readouterr().err
    assert rank(table, tmp_path, "--failed-value", "0")["trustworthy"]


@pytest.mark.slow
def test_a_column_that_says_how_runs_ended_is_no_knob(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = make()
    table["status"] = ["crashed"] * 5 + ["done"] * (len(table) - 5)
    proposal = "'status' says how a run ended, not what was set (crashed 5, done 235): --failed-value status=crashed"
    assert proposal in refusal(table, tmp_path, capsys)
    assert rank(table, tmp_path, "--failed-value", "status=crashed")["rows"] == 235
    assert "status holds 'crashed', 'done'" in refusal(table, tmp_path, capsys, "--failed-value", "status=crash")


def test_zeros_that_repeat_are_suspected() -> None:
    response = np.random.default_rng(2).lognormal(3, 1.5, 100)
    assert find_failure_code(response) is None
    response[:4] = 0
    assert find_failure_code(response) == (
        "4 rows hold 0, and no other value repeats so often: a failure code? Then add --failed-value 0"
    )
    assert find_failure_code(np.repeat([0.0, 1, 2, 3], 25)) is None  # a count


@pytest.mark.parametrize("name", ["p95_ms", "other"])
def test_a_second_measured_column_is_not_ranked(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = make()
    table[name] = (1e6 / table.tps * np.random.default_rng(5).normal(1, 0.1, len(table))).round(3)
    assert f"'{name}' looks measured or counted, not set" in refusal(table, tmp_path, capsys)
    knobs = rank(table, tmp_path, "--ignore", name)["knobs"]
    assert name not in str(knobs)


def test_a_counter_and_a_clock_next_to_each_other_are_no_knobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of them alone has many more values than the knobs have; together, or next to continuous knobs, not."""
    rng = np.random.default_rng(1)
    begun = pd.date_range("2026-11-01", periods=100, freq="7h").astype(str)
    table = pd.DataFrame({"trial": range(100), "begun": begun, "cache": rng.random(100)})
    table["tps"] = 100 + rng.normal(0, 0.5, 100)
    said = refusal(table, tmp_path, capsys)
    assert "'trial' and 'begun' look measured or counted, not set" in said
    assert "--ignore trial,begun leaves them out" in said


def test_what_the_command_line_calls_two_things_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(make(40), tmp_path, capsys, "--factors", "bufer,cache", "--ignore", "tps,cache")
    assert "--factors: found no column 'bufer' in" in said and "expected buffer (did you mean that?)" in said
    assert "--ignore: found 'tps', which is the response" in said
    assert "--ignore: found 'cache', which --factors names as a knob" in said


def test_a_failed_value_that_no_run_has_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rank(make(60), tmp_path, "--failed-value", "-1")
    assert "tps: numbers, none of them the failed value -1" in capsys.readouterr().err


def test_a_table_without_names_or_rows_says_what_was_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = make(40)
    assert "table.csv:1: file: found a header and no rows; expected a row per run" in refusal(
        table[:0], tmp_path, capsys
    )
    numbered = table.set_axis(["1", "2.5", "-3e4", "1,000"], axis=1)
    said = refusal(numbered, tmp_path, capsys)
    assert "table.csv:1: file: found a line of numbers; expected a header line with the names of the columns" in said


def test_continuous_knobs_are_no_measurements(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({name: rng.random(100) for name in "abc"})
    table["tps"] = 100 + table.a + rng.normal(0, 0.5, 100)
    assert rank(table, tmp_path)["rows"] == 100


def test_refusals_give_the_true_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = make(40)
    assert "'tps' is 100 in all 40 rows that did not fail" in refusal(table.assign(tps=100), tmp_path, capsys)
    negative = refusal(table.assign(tps=-table.tps), tmp_path, capsys, "--log")
    assert "every value of 'tps' is negative" in negative
    small = table.assign(tps=[f"{1 + number % 9},{200 + number}" for number in range(40)])
    ambiguous = refusal(small, tmp_path, capsys)
    assert "table.csv:2: tps: found '1,200'" in ambiguous and "--decimal" in ambiguous
    assert "expected a value in every row" in refusal(table.assign(trigger=[""] + ["1"] * 39), tmp_path, capsys)


def test_other_commands_read_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = make()
    table.assign(buffer=table.buffer.map(with_unit)).to_csv(tmp_path / "table.csv", index=False)
    assert main(["trend", str(tmp_path / "table.csv"), "--response", "tps", "--factor", "buffer", "--json", "-"]) == 0
    levels = [level for level, _ in json.loads(capsys.readouterr().out)["coefficients"]]
    assert levels == sorted(set(table.buffer))


@pytest.mark.slow
def test_reports_of_others_in_their_spellings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same 240 runs, plain, with units and with separators, get the same ranking."""
    documents, arguments = [], ["--response", "tps", "--model", "anova"]
    for name in ("b0_plain", "b1_units", "b1_thousands"):
        out = tmp_path / f"{name}.json"
        assert main(["rank", str(measured(f"reports/{name}.csv")), *arguments, "--json", str(out)]) == 0
        documents.append({**json.loads(out.read_text()), "table": ""})
    assert documents[0] == documents[1] == documents[2]
    assert documents[0]["knobs"][0]["knob"] == "write_buffer" and documents[0]["trustworthy"]
    assert main(["rank", str(measured("reports/b1_one_word.csv")), "--response", "tps"]) == 2
    assert "b1_one_word.csv:19: write_buffer: found 'default' (2 rows)" in capsys.readouterr().err
