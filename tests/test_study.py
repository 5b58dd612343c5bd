"""A whole study through Snakemake, on a real disk: undisturbed, killed again and again, and asked for more."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
import studies
from exported_runs import export_runs, verdicts

from knobscope.cli import main
from knobscope.specs import load_study

STUDY = """
name: tiny
description: the smallest study that has every part
dbms: [sqlite]
devices: [here]
workloads:
  ycsb-a: {records: 300, threads: 1, warmup_s: 0.1, measure_s: 0.4}
knobs:
  sqlite:
    synchronous: {values: [off, full]}
    journal_mode: {values: [delete, wal]}
    page_size: {values: [2048, 4096]}
sampling: {runs_per_round: 4, max_rounds: %(rounds)d}
screening: {threshold: %(threshold)s, top: 1}
sweep: {repeats: 2, always: [synchronous, journal_mode, page_size]}
"""

pytestmark = [pytest.mark.real, pytest.mark.long(minutes=4)]


@dataclass(frozen=True)
class Undisturbed:
    """What the first call of the study said, and the runs that it made."""

    told: str
    runs: set[str]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a user's own: specs beside a study, results below, of which a power cut has emptied the first."""
    folder = make_project(tmp_path_factory.mktemp("study"))
    profile = folder / "results/tiny/devices/here.json"
    profile.parent.mkdir(parents=True)
    profile.touch()
    return folder


@pytest.fixture(scope="module")
def undisturbed(project: Path) -> Undisturbed:
    """The study, run to its end."""
    told = run(project)
    return Undisturbed(told, run_ids(project))


def make_project(folder: Path) -> Path:
    studies.make_folder(folder)
    write_study(folder)
    return folder


def write_study(folder: Path, rounds: int = 1, threshold: float = 0.5) -> None:
    studies.write_study(folder, "tiny", STUDY % {"rounds": rounds, "threshold": threshold})


def run(folder: Path, *more: str) -> str:
    return studies.call(folder, "tiny", *more)


def run_ids(folder: Path) -> set[str]:
    return {row[0] for row in studies.query(folder, "tiny", "SELECT run_id FROM runs")}


def marked_processes(mark: str) -> set[str]:
    """Commands of processes that inherited the mark from the pipeline, however they were orphaned since."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_text(errors="replace"):
                found.add((path.parent / "cmdline").read_text().replace("\0", " "))
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # gone, or none of ours
            continue
    return found


def test_study_runs_to_a_report_and_a_second_call_does_nothing(project: Path, undisturbed: Undisturbed) -> None:
    """The profile that lay there, empty, is made anew: `test_damaged_results` damages what lies in a finished study."""
    assert "here.json is damaged: it is empty" in undisturbed.told
    results = project / "results/tiny"
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        statuses = connection.execute("SELECT status, count(*) FROM runs GROUP BY ALL").fetchall()
        differing = connection.execute(
            "SELECT count(*) FROM effective_values e JOIN runs r USING (run_id)"
            " WHERE r.status = 'ok' AND e.effective IS NULL"
        ).fetchone()
        effect = connection.execute(
            "SELECT estimate, low, high FROM effects"
            " WHERE knob = 'synchronous' AND value = 'off' AND metric = 'throughput_ops'"
        ).fetchone()
    assert [status for status, _ in statuses] == ["ok"]
    assert statuses[0][1] == 7 + 2 * (3 + 3)  # each block, of a round or of the sweep, has three sentinels
    assert differing == (0,)
    assert effect is not None
    assert effect[0] > 0  # without waiting for the device SQLite is faster, on any device
    assert "synchronous" in (results / "report.html").read_text()
    assert "Nothing to be done" in run(project)


@pytest.mark.usefixtures("undisturbed")
def test_what_is_watched_in_addition_is_measured_anew(project: Path) -> None:
    study = project / "specs/studies/tiny.yaml"
    text = study.read_text()
    for addition, phases in (("watch: [syscalls]", {"screen", "sweep"}), ("trace: true", {"sweep"})):
        study.write_text(f"{text}{addition}\n")
        made = [line for line in run(project, "-n").splitlines() if line.strip().startswith("output:")]
        found = {phase for phase in ("screen", "sweep") if any(f"runs/{phase}-0-0" in line for line in made)}
        assert found and found <= phases  # what lies behind a checkpoint is planned when the checkpoint has run
    study.write_text(text)
    assert "Nothing to be done" in run(project, "-n")


@pytest.mark.usefixtures("undisturbed")
def test_runs_that_are_exported_and_imported_get_the_same_verdicts(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = project / "results/tiny/study.duckdb"
    specs = load_study(project / "specs/studies/tiny.yaml", project, runnable=False)
    arguments = export_runs(ours, specs, tmp_path / "csv")
    monkeypatch.chdir(tmp_path)
    assert main(["import", *arguments, "--study", "theirs"]) == 0
    results = tmp_path / "results/theirs"
    detect = ["detect", "--study", str(results / "specs/studies/theirs.yaml"), "--out", str(tmp_path / "theirs.duckdb")]
    for name, pattern in (("runs", "*/*/*/runs/*"), ("plans", "*/*/*/plan/*"), ("devices", "devices/*")):
        detect += [f"--{name}", *map(str, sorted(results.glob(pattern)))]
    assert main(detect) == 0
    assert verdicts(tmp_path / "theirs.duckdb") == verdicts(ours)
    assert verdicts(ours) != []


def test_kill_9_at_random_moments_changes_nothing(project: Path, undisturbed: Undisturbed, tmp_path: Path) -> None:
    folder = make_project(tmp_path / "killed")
    (folder / "results/tiny/devices").mkdir(parents=True)
    shutil.copy(project / "results/tiny/devices/here.json", folder / "results/tiny/devices/here.json")
    mark = f"KNOBSCOPE_TEST={tmp_path}"
    rng = random.Random(20261121)
    for _ in range(3):
        pipeline = subprocess.Popen(
            studies.command(folder, "tiny"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "KNOBSCOPE_TEST": str(tmp_path)},
        )
        time.sleep(rng.uniform(3, 9))  # all of them together are shorter than the study
        assert marked_processes(mark) != set()
        os.kill(pipeline.pid, signal.SIGKILL)
        pipeline.wait()
        deadline = time.monotonic() + 10
        while marked_processes(mark) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert marked_processes(mark) == set()
    run(folder)
    assert run_ids(folder) == undisturbed.runs
    results = folder / "results/tiny"
    assert list(results.rglob("*.part*")) == []
    for path in (results / "store").glob("*.json"):
        assert json.loads(path.read_text())["run"]["run_id"] == path.stem


@pytest.mark.usefixtures("undisturbed")
def test_a_stricter_threshold_adds_only_the_missing_round(project: Path) -> None:
    before = run_ids(project)
    write_study(project, rounds=2, threshold=0.9999)
    run(project)
    assert before < run_ids(project)
    assert len(run_ids(project)) == len(before) + 3 + 3  # all that is left of eight configurations, and sentinels
    assert "Nothing to be done" in run(project)


def test_wrong_specs_end_with_exit_code_2_before_anything_runs(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "wrong")
    study = folder / "specs/studies/tiny.yaml"
    study.write_text(study.read_text().replace("[off, full]", "[of, full]"))
    done = studies.call_unchecked(folder, "tiny")
    assert done.returncode == 2
    assert "specs/studies/tiny.yaml:" in done.stderr
    assert "synchronous" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results").exists()
