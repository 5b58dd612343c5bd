"""A tuning session on a real SQLite: it goes on where it stopped, and the study's database says what came out."""

import json
from pathlib import Path

import duckdb
import pytest
from studies import make_folder, place_profile

from knobscope.cli import main
from knobscope.durable_files import write_sealed
from knobscope.specs import load_study
from knobscope.stages.detect import StudyFiles, build_database
from knobscope.stages.report import render_report

STUDY = """
name: tiny
description: SQLite, tuned in miniature
dbms: [sqlite]
devices: [local-disk]
workloads:
  ycsb-a: {records: 300, threads: 1, warmup_s: 0.1, measure_s: 0.4}
knobs:
  sqlite:
    journal_mode: {values: [delete, wal]}
    cache_size: {values: [-500, -2000]}
    wal_autocheckpoint: {range: [10, 1000]}
tune: {trials: %(trials)d, seeds: 1, spaces: [top1, all], repeats: 2, cuts: 1}
"""
CASE = "sqlite/local-disk/ycsb-a"

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, device_profile: Path) -> Path:
    folder = make_folder(tmp_path_factory.mktemp("tune"))
    place_profile(folder, device_profile, "tiny")
    write_sealed(folder / "fit.json", {"importance": [{"knob": "journal_mode"}, {"knob": "cache_size"}]})
    return folder


def tune(folder: Path, trials: int) -> None:
    study = folder / "specs/studies/tiny.yaml"
    study.write_text(STUDY % {"trials": trials})
    out = folder / CASE / "runs/tune"
    arguments = ["--study", str(study), "--root", str(folder), "--case", CASE, "--fit", str(folder / "fit.json")]
    arguments += ["--profile", str(folder / "results/tiny/devices/local-disk.json"), "--store", str(folder / "store")]
    assert main(["tune", *arguments, "--plan-out", str(folder / "plan.parquet"), "--out", str(out)]) == 0


@pytest.mark.long
def test_a_session_goes_on_where_it_stopped(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tune(project, trials=2)
    first = {path.stem for path in (project / "store").glob("*.json")}
    assert len(first) >= 2 * 2 + 2  # two tuners, and the default before and after them
    capsys.readouterr()
    tune(project, trials=3)
    stored = int(capsys.readouterr().err.rsplit("measured now, ", 1)[1].split(" ", 1)[0])
    assert stored >= 2 * 2 + 1
    tune(project, trials=3)
    assert "0 measured now" in capsys.readouterr().err
    for path in (project / "store").glob("*.json"):
        assert json.loads(path.read_text())["run"]["phase"] == "tune"


def test_the_database_and_the_report_say_what_came_out(project: Path) -> None:
    tune(project, trials=2)  # nothing is measured where another test has done so
    specs = load_study(project / "specs/studies/tiny.yaml", project, runnable=False)
    database = project / "study.duckdb"
    files = StudyFiles(
        [project / CASE / "runs/tune"],
        [project / "plan.parquet"],
        [],
        [project / "results/tiny/devices/local-disk.json"],
    )
    build_database(files, specs, database)
    with duckdb.connect(str(database), read_only=True) as connection:
        curve = connection.execute(
            "SELECT space, list(best_ratio ORDER BY trial) FROM tuning GROUP BY space ORDER BY space"
        ).fetchall()
        tuned = connection.execute("SELECT space, runs FROM tuned ORDER BY space").fetchall()
        winners = connection.execute("SELECT cuts, cuts_lost, uncut FROM tuned WHERE trial IS NOT NULL").fetchall()
    assert [space for space, _ in curve] == ["all", "top1"]
    for _, ratios in curve:
        assert len(ratios) == 2
        assert ratios == sorted(ratios)
        assert ratios[0] >= 1
    assert [space for space, _ in tuned] == ["all", "top1"]
    assert all(runs in (0, 2) for _, runs in tuned)
    render_report(database, specs, project / "report.html")
    page = (project / "report.html").read_text()
    assert "Best throughput by number of runs" in page
    assert "five of thirty knobs" in page
    assert all(cuts == 1 or uncut for cuts, _, uncut in winners)
    if any(lost == 0 for _, lost, _ in winners):
        assert "Kept all acknowledged rows in 1 power cut" in page.replace("\u00a0", " ")
