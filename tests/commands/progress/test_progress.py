"""How far a study is, read from plans and logs as the stages write them."""

import os
from pathlib import Path

import pytest
import studies

from knobscope.cli import main
from knobscope.specs import Case, StudySpecs, load_study
from knobscope.stages.measure.progress import BlockProgress, BlockState, read_progress
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


def write_log(block: str, runs: list[RunRow], planned: int, capsys: pytest.CaptureFixture[str]) -> Path:
    """Write what the measuring of a block prints, after something that the server says."""
    progress = BlockProgress(f"{CASE} {block}", planned, {"cache_size": -2000})
    for number, run in enumerate(runs):
        progress.report(run, {"cache_size": -500 if number else -2000}, 2.5)
    log = Path(f"results/small/logs/{CASE}/measure-{block}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"knobscope: a warning of run 7/9\n{capsys.readouterr().err}")
    return log


@pytest.mark.parametrize(
    ("runs", "state"),
    [
        ([], None),
        ([OK], BlockState(1, 0, "1,234 ops/s", "default")),
        ([OK, FAILED, OK], BlockState(3, 1, "1,234 ops/s", "cache_size=-500")),
        ([OK, FAILED], BlockState(2, 1, "failed_start: the server ended with exit code 1", "cache_size=-500")),
    ],
)
def test_a_log_tells_what_was_printed_into_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    runs: list[RunRow],
    state: BlockState | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    log = write_log("sweep-0-0", runs, 5, capsys)
    assert read_progress(log.read_text().splitlines(keepends=True)) == state


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
    write_log("sweep-0-0", [OK, FAILED], size, capsys)
    out = show(capsys)
    assert f"2 of {2 * size}       1  sweep-0-0\n" in out
    assert "\nlast run: failed_start: the server ended with exit code 1  cache_size=-500\n" in out
    assert "last heard of: measure-sweep-0-0 of sqlite/local-disk/ycsb-a, " in out
    assert f"takes about {(2 * size - 2) * 2.1:.0f} s more" in out  # .1 and .5 s, and 1.5 around them
    assert "1 run failed; why is in the logs below results/small/logs" in out
    for block in ("sweep-0-0", "sweep-0-1"):
        write_log(block, [OK] * size, size, capsys)
        write_table(Path(f"results/small/{CASE}/runs/{block}/runs.parquet"), "runs", [])
    assert f"####################  {2 * size} of {2 * size}       0  2 of 2 done" in show(capsys)
    for name in ("report.html", "logs/report.log"):
        Path("results/small", name).write_text("")
    assert show(capsys).endswith("\nfinished; the report: results/small/report.html\n")


def test_a_log_that_is_older_than_its_plan_is_of_another_plan(
    specs: StudySpecs, capsys: pytest.CaptureFixture[str]
) -> None:
    size = write_plan(specs)
    log = write_log("sweep-0-0", [OK, OK], size, capsys)
    assert f" 2 of {2 * size} " in show(capsys)
    os.utime(log, (0, 0))
    assert f" 0 of {2 * size} " in show(capsys)


def test_a_plan_that_is_just_written_is_left_aside(specs: StudySpecs, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(specs)
    plan = Path(f"results/small/{CASE}/plan/sweep-0.parquet")
    plan.write_bytes(plan.read_bytes()[:100])
    assert "none planned yet" in show(capsys)


def test_long_silence_says_how_to_go_on(specs: StudySpecs, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(specs)
    log = write_log("sweep-0-0", [OK], 5, capsys)
    plan = Path(f"results/small/{CASE}/plan/sweep-0.parquet")
    for path, age in ((plan, 900), (log, 600)):
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    out = show(capsys)
    assert ", 10 min " in out
    assert out.endswith("if no Snakemake runs any more: the same call of it goes on where this one ended\n")
