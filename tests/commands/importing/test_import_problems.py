"""Tables that cannot be imported: everything that is wrong is reported at once, by line."""

import json
from pathlib import Path

import pytest
from tables_of_runs import GOOD, HEADER, Import, problems

from knobscope.cli import main
from knobscope.specs import load_study

ROOT = Path(__file__).parents[3]


def test_all_problems_are_reported_at_once_with_their_lines(
    import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert import_table(*bad) == 2
    found = problems(capsys)
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


def test_wrong_columns_are_reported(import_table: Import, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        import_table("1,mydb,disk,hdd,load,,,,100", header=HEADER.replace("value", "valeu").replace("tier,", "")) == 2
    )
    found = problems(capsys)
    assert "runs.csv:1: value: found no such column; expected this column, which is required" in found
    tier = "this column, which is required (--set tier=VALUE where it is the same in all rows)"
    assert f"runs.csv:1: tier: found no such column; expected {tier}" in found
    assert "runs.csv:1: valeu: found an unknown column; expected value (did you mean that?)" in found


def test_a_response_is_not_taken_for_another_column(import_table: Import, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{line},{number}" for number, line in enumerate(GOOD, 1)]
    assert import_table(*rows, header=f"{HEADER},tps", more=("--response", "tps")) == 2
    expected = "throughput_ops: found this column, and --response tps; expected --ignore throughput_ops"
    assert any(expected in line for line in problems(capsys))


def test_numbers_beyond_their_columns_are_reported(import_table: Import, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{line},{1764230400000 + number}" for number, line in enumerate(GOOD)]
    assert import_table(*rows, header=f"{HEADER},position") == 2
    assert any("position: found '1764230400000'; expected a whole number" in line for line in problems(capsys))


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


def test_a_missing_file_and_a_broken_one_are_reported_together(
    import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queue.csv").write_text("run,queue,depth,time_ns\nr1,-1,one,5\n")
    more = ("--table", "intervals=gone.csv", "--table", "queue_depth=queue.csv")
    assert (
        import_table(*(f"{line},r{number}" for number, line in enumerate(GOOD)), header=f"{HEADER},run", more=more) == 2
    )
    assert problems(capsys) == [
        "gone.csv:1: file: found no such file; expected a CSV file with a header line",
        "queue.csv:2: depth: found 'one'; expected a whole number",
    ]


def test_facts_of_a_knob_or_device_must_not_contradict(
    import_table: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{line},{8 if 'Cache' in line else ''}" for line in GOOD]
    lines[2] = lines[2].replace(",8", ",16").replace("hdd", "cloud")
    assert import_table(*lines, header=f"{HEADER},baseline") == 2
    assert problems(capsys) == [
        "runs.csv:4: baseline: found '16' for Cache, which had '8' in line 3; expected the same for all rows of Cache",
        "runs.csv:4: tier: found 'cloud' for disk, which had 'hdd' in line 2; expected the same for all rows of disk",
    ]


def test_rows_of_side_tables_must_name_runs(
    import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "intervals.csv").write_text("run,t_s,ops\nr1,1,50\nr99,1,50\n")
    lines = [f"{line},r{number}" for number, line in enumerate(GOOD)]
    assert import_table(*lines, header=f"{HEADER},run", more=("--table", "intervals=intervals.csv")) == 2
    assert problems(capsys) == ["intervals.csv:3: run: found 'r99'; expected a run of the table of runs"]


def test_an_existing_study_is_not_overwritten(import_table: Import, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_table(*GOOD) == 0
    assert import_table(*GOOD) == 2
    assert "results/theirs exists" in capsys.readouterr().err


def test_a_default_that_nobody_says_is_asked_for(
    import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first value that a table tries is no default, and a spec or catalogue of the DBMS may know it."""
    lines = ["1,mydb,disk,hdd,load,,,,100,", "1,mydb,disk,hdd,load,Cache,8,0,TIMEOUT,"]
    assert import_table(*lines, header=f"{HEADER},baseline") == 2
    (problem,) = problems(capsys)
    assert problem.startswith("runs.csv:3: baseline: found nothing; expected the value of Cache in the default")
    known = ["1,mariadb,disk,hdd,load,,,,100,", "1,mariadb,disk,hdd,load,back_log,10,0,TIMEOUT,"]
    assert import_table(*known, header=f"{HEADER},baseline", more=("--specs", str(ROOT / "specs"))) == 0
    specs = load_study(tmp_path / "results/theirs/specs/studies/theirs.yaml", tmp_path, runnable=False)
    catalogue = json.loads((ROOT / "specs/dbms/catalogue/mariadb.json").read_text())["knobs"]["back_log"]
    assert specs.dbms["mariadb"].knobs["back_log"].default == catalogue["default"]


def test_cells_and_defaults_are_reported_together(import_table: Import, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["1,mydb,disk,hdd,load,,,,100,", "1,mydb,disk,hdd,load,Cache,8,0,many,", "1,mydb,disk,hdd,load,Log,1,0,9,"]
    assert import_table(*lines, header=f"{HEADER},baseline") == 2
    assert [line.partition("; expected")[0] for line in problems(capsys)] == [
        "runs.csv:3: baseline: found nothing",
        "runs.csv:3: throughput_ops: found 'many'",
        "runs.csv:4: baseline: found nothing",
    ]


def test_a_dbms_of_which_no_knob_is_changed_is_no_study(
    import_table: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_table(*GOOD, "1,other,disk,hdd,load,,,,100") == 2
    assert problems(capsys) == [
        "runs.csv:9: knob: found no run of other that changes a knob; "
        "expected at least one row of it with `knob` and `value`: a study varies something"
    ]


@pytest.mark.parametrize(
    ("value", "is_accepted"), [('"a;b"', True), ("it's", True), ('"x\ry"', False), ("\x1b[31m", False)]
)
def test_what_import_accepts_detect_accepts(
    value: str, is_accepted: bool, import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["1,mydb,disk,hdd,load,,,,100", f"1,mydb,disk,hdd,load,mode,{value},0,900"]
    assert import_table(*lines) == (0 if is_accepted else 2)
    if is_accepted:
        assert load_study(tmp_path / "results/theirs/specs/studies/theirs.yaml", tmp_path, runnable=False)
    else:
        assert "runs.csv:3: value: found " in problems(capsys)[0]


def test_points_are_doubted_where_another_column_has_decimal_commas(
    import_table: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f'{line.rsplit(",", 1)[0]},{ops},"812,5"' for line, ops in zip(GOOD, ("987", *["1.234"] * 6), strict=True)]
    assert import_table(*lines, header=f"{HEADER},latency_p95_us") == 2
    assert capsys.readouterr().err.count("'1.234' may be thousands or decimals") == len(GOOD)
    assert import_table(*lines, header=f"{HEADER},latency_p95_us", more=("--decimal", ",")) == 0


def test_one_word_among_numbers_is_a_question(import_table: Import, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*GOOD, "2,mydb,disk,hdd,load,Cache,huge,1,210"]
    assert import_table(*lines) == 2
    assert problems(capsys)[0].startswith("runs.csv:9: value: found 'huge' for Cache; expected a number")


@pytest.mark.parametrize("operations", ["99999999999999999999", "99e308"])
def test_numbers_that_no_table_holds_are_refused(
    operations: str, import_table: Import, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{row},{operations if row is GOOD[1] else 100}" for row in GOOD]
    assert import_table(*rows, header=f"{HEADER},operations") == 2
    assert f"runs.csv:3: operations: found '{operations}'; expected a whole number" in problems(capsys)
    assert not (tmp_path / "results").exists()
