"""How far a study is, read from what the stages write."""

import os
from pathlib import Path

import pytest
import studies
from json_documents import read_document

from knobscope.cli import main
from knobscope.specs import Case, StudySpecs, Value, load_study
from knobscope.stages.measure.progress import BlockProgress, BlockState, progress_file, read_progress
from knobscope.stages.plan import plan_sweep
from knobscope.tables import RunRow, write_table

CASE = Case("sqlite", "local-disk", "ycsb-a")
OK: RunRow = {"status": "ok", "throughput_ops": 1234.4}
FAILED: RunRow = {"status": "failed_start", "reason": "the server ended with exit code 1"}


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudySpecs:
    studies.write_study(studies.make_folder(tmp_path), "small", studies.SMALL)
    monkeypatch.chdir(tmp_path)
    return load_study(Path("specs/studies/small.yaml"), tmp_path, runnable=False)


def show(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["progress", "small"]) == 0
    return capsys.readouterr().out


def write_plan(specs: StudySpecs) -> int:
    """Write the plan of the sweep; returns how many runs a block of it has."""
    rows = plan_sweep(specs, CASE, list(specs.study.sweep.always))
    write_table(Path(f"results/small/{CASE}/plan/sweep-0.parquet"), "plan", [dict(row) for row in rows])
    return len([row for row in rows if row["block_id"].endswith("sweep-0-0")])


def write_runs(block: str, runs: list[RunRow], planned: int, stored: int = 0) -> Path:
    """Write what the measuring of a block writes, after `stored` runs that an earlier call has measured."""
    file = progress_file(Path("results/small"), str(CASE), block)
    progress = BlockProgress(f"{CASE} {block}", planned, {"cache_size": -2000}, file)
    for number, run in enumerate(runs):
        configuration: dict[str, Value] = {"cache_size": -500 if number else -2000}
        if number < stored:
            progress.skip(run, configuration)
        else:
            progress.report(run, configuration, 2.5)
    file.with_suffix(".log").write_text("what the server said")
    return file


@pytest.mark.parametrize(
    ("runs", "state"),
    [
        ([OK], BlockState(1, 0, "1,234 ops/s", "default")),
        ([OK, FAILED, OK], BlockState(3, 1, "1,234 ops/s", "cache_size=-500")),
        ([OK, FAILED], BlockState(2, 1, "failed_start: the server ended with exit code 1", "cache_size=-500")),
    ],
)
def test_a_block_is_read_as_it_was_written(specs: StudySpecs, runs: list[RunRow], state: BlockState) -> None:
    for stored in (0, 1):
        file = write_runs("sweep-0-0", runs, 5, stored)
        assert read_progress(file) == state
        with file.open("a") as half:  # what kill -9 leaves
            half.write('{"run_id": "ab')
        assert read_progress(file) == state


def test_that_somebody_else_measures_is_said_once(specs: StudySpecs, capsys: pytest.CaptureFixture[str]) -> None:
    shared: RunRow = {**OK, "other_measurements": 1}
    write_runs("sweep-0-0", [OK, shared, shared], 5)
    assert capsys.readouterr().err.count("another process of knobscope is measuring on this machine") == 1
    write_runs("sweep-0-0", [OK, OK], 5)
    assert "another process" not in capsys.readouterr().err


def test_a_line_names_other_programs_that_computed(capsys: pytest.CaptureFixture[str]) -> None:
    progress = BlockProgress("a block", 2, {})
    progress.report({**OK, "other_cpu_share": 0.3, "other_programs": "make 30 %"}, {}, 1)
    progress.report({**OK, "other_cpu_share": 0.01, "other_programs": "cron 1 %"}, {}, 1)
    disturbed, quiet = capsys.readouterr().err.splitlines()
    assert "/s (other programs took 30 % of the processors: make 30 %)  default" in disturbed
    assert "other programs" not in quiet


def test_no_run_has_no_state(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    assert read_progress(tmp_path / "empty.jsonl") is None


def test_a_damaged_file_is_named(specs: StudySpecs, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(specs)
    file = write_runs("sweep-0-0", [OK], 5)
    file.write_bytes(bytes(64) + b"\n")
    assert main(["progress", "small"]) == 2
    assert f"{file}: found a value that cannot be used" in capsys.readouterr().err


def test_a_study_of_an_earlier_version_has_no_progress_of_its_running_block(
    specs: StudySpecs, capsys: pytest.CaptureFixture[str]
) -> None:
    size = write_plan(specs)
    file = write_runs("sweep-0-0", [OK], size)
    file.unlink()
    out = show(capsys)
    assert f" 0 of {2 * size} " in out
    assert "last heard of: measure-sweep-0-0 of sqlite/local-disk/ycsb-a, " in out


def test_a_line_names_few_of_many_knobs(capsys: pytest.CaptureFixture[str]) -> None:
    progress = BlockProgress("a block", 2, dict.fromkeys("abcdefg", 0))
    progress.report(OK, dict.fromkeys("abcdef", 1), 1)
    progress.report(OK, dict.fromkeys("abcdefg", 1), 1)
    six, seven = capsys.readouterr().err.splitlines()
    assert "  a=1 b=1 c=1 d=1 e=1 f=1  1 s left" in six
    assert "  a=1 b=1 c=1 d=1 e=1 and 2 knobs more  0 s left" in seven


def test_from_nothing_to_the_report(specs: StudySpecs, capsys: pytest.CaptureFixture[str]) -> None:
    assert "none planned yet" in (out := show(capsys)) and out.endswith("\nnothing has been done yet\n")
    size = write_plan(specs)
    write_runs("sweep-0-0", [OK, FAILED], size)
    out = show(capsys)
    assert f"2 of {2 * size}       1  sweep-0-0\n" in out
    assert "\nlast run: failed_start: the server ended with exit code 1  cache_size=-500\n" in out
    assert "last heard of: measure-sweep-0-0 of sqlite/local-disk/ycsb-a, " in out
    assert f"takes about {(2 * size - 2) * 2.1:.0f} s more" in out  # .1 and .5 s, and 1.5 around them
    assert "1 run failed; why is in the logs below results/small/logs" in out
    assert main(["progress", "small", "--json"]) == 0
    document = read_document("progress", capsys.readouterr().out)
    counts = [document["cases"][0][key] for key in ("planned", "done", "failed", "running")]
    assert counts == [2 * size, 2, 1, "sweep-0-0"]
    assert (document["job"], document["report"]) == (f"measure-sweep-0-0 of {CASE}", None)
    for block in ("sweep-0-0", "sweep-0-1"):
        write_runs(block, [OK] * size, size)
        write_table(Path(f"results/small/{CASE}/runs/{block}/runs.parquet"), "runs", [])
    assert f"####################  {2 * size} of {2 * size}       0  2 of 2 done" in (out := show(capsys))
    assert "\nall runs planned so far are done; " in out  # mismatches may still be measured again
    for name in ("report.html", "logs/report.log"):
        Path("results/small", name).write_text("")
    assert show(capsys).endswith("\nfinished; the report: results/small/report.html\n")


def test_a_file_that_is_older_than_its_plan_is_of_another_plan(
    specs: StudySpecs, capsys: pytest.CaptureFixture[str]
) -> None:
    size = write_plan(specs)
    file = write_runs("sweep-0-0", [OK, OK], size)
    assert f" 2 of {2 * size} " in show(capsys)
    os.utime(file, (0, 0))
    assert f" 0 of {2 * size} " in show(capsys)


def test_a_plan_that_is_just_written_is_left_aside(specs: StudySpecs, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(specs)
    plan = Path(f"results/small/{CASE}/plan/sweep-0.parquet")
    plan.write_bytes(plan.read_bytes()[:100])
    assert "none planned yet" in show(capsys)


def test_long_silence_says_how_to_go_on(specs: StudySpecs, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(specs)
    log = write_runs("sweep-0-0", [OK], 5).with_suffix(".log")
    plan = Path(f"results/small/{CASE}/plan/sweep-0.parquet")
    for path, age in ((plan, 900), (log, 600)):
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    out = show(capsys)
    assert ", 10 min " in out
    assert out.endswith("if no Snakemake runs any more: the same call of it goes on where this one ended\n")
