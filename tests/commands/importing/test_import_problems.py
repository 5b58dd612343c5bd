"""Tables that cannot be imported: everything that is wrong is reported at once, by line."""

import json
from pathlib import Path

import pytest
from tables_of_runs import GOOD, HEADER, Import, Refuse, problems

from knobscope.cli import main
from knobscope.specs import load_study

ROOT = Path(__file__).parents[3]


def test_all_problems_are_reported_at_once_with_their_lines(refuse: Refuse, tmp_path: Path) -> None:
    bad = [
        "1,mydb,disk,floppy,load,,,,100",
        "1,mydb,disk,hdd,load,Cache,8,0,many",
        "1,mydb,disk,hdd,load,Cache,8,0,101",
        "1,mydb,disk,hdd,load,Cache,8,0,102",
        "1,MyDB,disk,hdd,load,Cache,,0,102",
        "2,mydb,disk,hdd,load,Cache,8,1,-5",
        "2,mydb,disk,hdd,load,Cache,64",
        "2,mydb,,hdd,load,Cache,64,1.5,nano",
    ]
    found = refuse(*bad)
    for expected in (
        "runs.csv:2: tier: found 'floppy'; expected one of hdd, sata_ssd, nvme_ssd, cloud, memory",
        "runs.csv:3: throughput_ops: found 'many'; expected a finite number",
        "runs.csv:5: repeat: found 0 again for Cache=8 in block '1' (first in line 3); "
        "expected another number for each repeat",
        "runs.csv:6: value: found nothing next to knob 'Cache'; expected both, or neither",
        "runs.csv:7: block: found block '2' of mydb/disk/load without a run of the default configuration; "
        "expected at least one row of the block with empty `knob` and `value`",
        "runs.csv:7: throughput_ops: found -5; expected a number above 0, or a `status` of failure",
        "runs.csv:8: file: found 8 cells; expected 10, as in the header",
        "runs.csv:9: device: found nothing; expected a value in every row",
        "runs.csv:9: repeat: found '1.5'; expected a whole number",
        "runs.csv:9: throughput_ops: found 'nano'; expected a finite number",
    ):
        assert expected in found
    assert any(
        line.startswith("runs.csv:6: dbms: found 'MyDB'; expected a name of lower-case letters") for line in found
    )
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("above", ["", "# measured on Friday\n# on an old disk\n"])
def test_wrong_columns_are_reported(refuse: Refuse, above: str) -> None:
    header, line = HEADER.replace("value", "valeu").replace("tier,", ""), above.count("\n") + 1
    found = refuse("1,mydb,disk,hdd,load,,,,100", header=above + header)
    assert f"runs.csv:{line}: value: found no such column; expected this column, which is required" in found
    tier = "this column, which is required (--set tier=VALUE where it is the same in all rows)"
    assert f"runs.csv:{line}: tier: found no such column; expected {tier}" in found
    assert f"runs.csv:{line}: valeu: found an unknown column; expected value (did you mean that?)" in found


def test_a_response_is_not_taken_for_another_column(refuse: Refuse) -> None:
    rows = [f"{line},{number}" for number, line in enumerate(GOOD, 1)]
    expected = "throughput_ops: found this column, and --response tps; expected --ignore throughput_ops"
    assert any(expected in line for line in refuse(*rows, header=f"{HEADER},tps", more=("--response", "tps")))


def test_numbers_beyond_their_columns_are_reported(refuse: Refuse) -> None:
    rows = [f"{line},{1764230400000 + number}" for number, line in enumerate(GOOD)]
    expected = "position: found '1764230400000'; expected a whole number"
    assert any(expected in line for line in refuse(*rows, header=f"{HEADER},position"))


def test_failures_that_no_column_tells_are_refused(import_table: Import, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_table(*GOOD, more=("--failed-value", "result=bad")) == 2
    assert "found no column 'result'" in capsys.readouterr().err


@pytest.mark.parametrize(("content", "words"), [("", "an empty file"), (HEADER + "\n", "a header and no rows")])
def test_a_table_without_runs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text(content)
    assert main(["import", "runs.csv", "--study", "theirs"]) == 2
    assert any(words in line for line in problems(capsys))


def test_a_missing_file_and_a_broken_one_are_reported_together(refuse: Refuse, tmp_path: Path) -> None:
    (tmp_path / "queue.csv").write_text("run,queue,depth,time_ns\nr1,-1,one,5\n")
    more = ("--table", "intervals=gone.csv", "--table", "queue_depth=queue.csv")
    assert refuse(*(f"{line},r{number}" for number, line in enumerate(GOOD)), header=f"{HEADER},run", more=more) == [
        "gone.csv:1: file: found no such file; expected a CSV file with a header line",
        "queue.csv:2: depth: found 'one'; expected a whole number",
    ]


def test_facts_of_a_knob_or_device_must_not_contradict(refuse: Refuse) -> None:
    lines = [f"{line},{8 if 'Cache' in line else ''}" for line in GOOD]
    lines[2] = lines[2].replace(",8", ",16").replace("hdd", "cloud")
    assert refuse(*lines, header=f"{HEADER},baseline") == [
        "runs.csv:4: baseline: found '16' for Cache, which had '8' in line 3; expected the same for all rows of Cache",
        "runs.csv:4: tier: found 'cloud' for disk, which had 'hdd' in line 2; expected the same for all rows of disk",
    ]


def test_rows_of_side_tables_must_name_runs(refuse: Refuse, tmp_path: Path) -> None:
    (tmp_path / "intervals.csv").write_text("run,t_s,ops\nr1,1,50\nr99,1,50\n")
    lines = [f"{line},r{number}" for number, line in enumerate(GOOD)]
    found = refuse(*lines, header=f"{HEADER},run", more=("--table", "intervals=intervals.csv"))
    assert found == ["intervals.csv:3: run: found 'r99'; expected a run of the table of runs"]


def test_an_existing_study_is_not_overwritten(import_table: Import, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_table(*GOOD) == 0
    assert import_table(*GOOD) == 2
    assert "results/theirs exists" in capsys.readouterr().err


def test_a_default_that_nobody_says_is_asked_for(import_table: Import, refuse: Refuse, tmp_path: Path) -> None:
    """The first value that a table tries is no default, and a spec or catalogue of the DBMS may know it."""
    lines = ["1,mydb,disk,hdd,load,,,,100,", "1,mydb,disk,hdd,load,Cache,8,0,TIMEOUT,"]
    (problem,) = refuse(*lines, header=f"{HEADER},baseline")
    assert problem.startswith("runs.csv:3: baseline: found nothing; expected the value of Cache in the default")
    known = ["1,mariadb,disk,hdd,load,,,,100,", "1,mariadb,disk,hdd,load,back_log,10,0,TIMEOUT,"]
    assert import_table(*known, header=f"{HEADER},baseline", more=("--specs", str(ROOT / "specs"))) == 0
    specs = load_study(tmp_path / "results/theirs/specs/studies/theirs.yaml", tmp_path, runnable=False)
    catalogue = json.loads((ROOT / "specs/dbms/catalogue/mariadb.json").read_text())["knobs"]["back_log"]
    assert specs.dbms["mariadb"].knobs["back_log"].default == catalogue["default"]


def test_cells_and_defaults_are_reported_together(refuse: Refuse) -> None:
    lines = ["1,mydb,disk,hdd,load,,,,100,", "1,mydb,disk,hdd,load,Cache,8,0,many,", "1,mydb,disk,hdd,load,Log,1,0,9,"]
    assert [line.partition("; expected")[0] for line in refuse(*lines, header=f"{HEADER},baseline")] == [
        "runs.csv:3: baseline: found nothing",
        "runs.csv:3: throughput_ops: found 'many'",
        "runs.csv:4: baseline: found nothing",
    ]


def test_a_dbms_of_which_no_knob_is_changed_is_no_study(refuse: Refuse) -> None:
    assert refuse(*GOOD, "1,other,disk,hdd,load,,,,100") == [
        "runs.csv:9: knob: found no run of other that changes a knob; "
        "expected at least one row of it with `knob` and `value`: a study varies something"
    ]


@pytest.mark.parametrize(
    ("value", "is_accepted"), [('"a;b"', True), ("it's", True), ('"x\ry"', False), ("\x1b[31m", False)]
)
def test_what_import_accepts_detect_accepts(
    value: str, is_accepted: bool, import_table: Import, refuse: Refuse, tmp_path: Path
) -> None:
    lines = ["1,mydb,disk,hdd,load,,,,100", f"1,mydb,disk,hdd,load,mode,{value},0,900"]
    if is_accepted:
        assert import_table(*lines) == 0
        assert load_study(tmp_path / "results/theirs/specs/studies/theirs.yaml", tmp_path, runnable=False)
    else:
        assert "runs.csv:3: value: found " in refuse(*lines)[0]


def test_points_are_doubted_where_another_column_has_decimal_commas(
    import_table: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f'{line.rsplit(",", 1)[0]},{ops},"812,5"' for line, ops in zip(GOOD, ("987", *["1.234"] * 6), strict=True)]
    assert import_table(*lines, header=f"{HEADER},latency_p95_us") == 2
    assert capsys.readouterr().err.count("'1.234' may be thousands or decimals") == len(GOOD)
    assert import_table(*lines, header=f"{HEADER},latency_p95_us", more=("--decimal", ",")) == 0


def test_one_word_among_numbers_is_a_question(refuse: Refuse) -> None:
    lines = [*GOOD, "2,mydb,disk,hdd,load,Cache,huge,1,210"]
    assert refuse(*lines)[0].startswith("runs.csv:9: value: found 'huge' for Cache; expected a number")


@pytest.mark.parametrize("operations", ["99999999999999999999", "99e308"])
def test_numbers_that_no_table_holds_are_refused(refuse: Refuse, tmp_path: Path, operations: str) -> None:
    rows = [f"{row},{operations if row is GOOD[1] else 100}" for row in GOOD]
    expected = f"runs.csv:3: operations: found '{operations}'; expected a whole number"
    assert expected in refuse(*rows, header=f"{HEADER},operations")
    assert not (tmp_path / "results").exists()
