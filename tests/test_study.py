"""A whole study through Snakemake, on a real disk: undisturbed, and asked for more."""

from pathlib import Path

import duckdb
import pytest
import studies
from contradictions import find_contradictions
from exported_runs import EXPORTED, export_runs

from knobscope.cli import main
from knobscope.specs import load_study

pytestmark = pytest.mark.real


def run_ids(folder: Path) -> set[str]:
    return {row[0] for row in studies.query(folder, "small", "SELECT run_id FROM runs")}


def test_study_runs_to_a_report_and_a_second_call_does_nothing(finished_small: Path) -> None:
    """The profile that lay there, empty, is made anew: `test_damaged_results` damages what lies in a finished study."""
    assert "local-disk.json is damaged: it is empty" in (finished_small / "told.txt").read_text()
    # On a busy machine a run may stall, or be watched too late.
    excused = "^(it stalled|no operation ends|the device was watched)"
    sound = f"SELECT count(*), count(*) FILTER (status = 'ok' OR regexp_matches(reason, '{excused}'))"
    sound += " FROM runs"
    runs = 7 + 2 * (3 + 3)  # each block, of a round or of the sweep, has three sentinels
    assert studies.query(finished_small, "small", sound) == [(runs, runs)]
    unread = "SELECT count(*) FROM effective_values JOIN runs USING (run_id) WHERE status = 'ok' AND effective IS NULL"
    assert studies.query(finished_small, "small", unread) == [(0,)]
    speeds = "SELECT side, avg(throughput_ops) FROM runs_behind JOIN runs USING (run_id)"
    speeds += " WHERE knob = 'synchronous' AND value = 'off' GROUP BY side"
    mean = dict(studies.query(finished_small, "small", speeds))
    assert mean["value"] > mean["default"]  # without waiting for the device SQLite is faster, on any device
    assert "synchronous" in (finished_small / "results/small/report.html").read_text()


def test_the_report_of_real_runs_does_not_contradict_itself(finished_small: Path) -> None:
    specs = load_study(finished_small / "specs/studies/small.yaml", finished_small, runnable=False)
    assert find_contradictions(finished_small / "results/small/study.duckdb", specs) == []


def test_what_is_watched_in_addition_is_measured_anew(small_study: Path) -> None:
    studies.write_study(small_study, "small", f"{studies.SMALL}trace: true\n")  # of the sweep alone
    told = studies.call(small_study, "small", "-n")
    made = [line for line in told.splitlines() if line.strip().startswith("output:")]
    assert any("runs/sweep-0-0" in line for line in made)
    assert not any("runs/screen-0-0" in line for line in made)
    studies.write_study(small_study, "small", studies.SMALL)
    assert "rule measure:" not in studies.call(small_study, "small", "-n")


def test_runs_that_are_exported_come_back_when_they_are_imported(
    small_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tables of real runs can come along; `test_import_runs` compares verdicts, on studies that CSV can tell."""
    ours = small_study / "results/small/study.duckdb"
    specs = load_study(small_study / "specs/studies/small.yaml", small_study, runnable=False)
    arguments = export_runs(ours, specs, tmp_path / "csv")
    monkeypatch.chdir(tmp_path)
    assert main(["import", *arguments, "--study", "theirs"]) == 0
    results = tmp_path / "results/theirs"
    detect = ["detect", "--study", str(results / "specs/studies/theirs.yaml"), "--out", str(tmp_path / "theirs.duckdb")]
    for name, pattern in (("runs", "*/*/*/runs/*"), ("plans", "*/*/*/plan/*"), ("devices", "devices/*")):
        detect += [f"--{name}", *map(str, sorted(results.glob(pattern)))]
    assert main(detect) == 0
    figures = "sum(operations)::BIGINT, sum(throughput_ops)::DECIMAL(18, 3), sum(cpu_s)::DECIMAL(18, 3)"
    requests = "SELECT op, sum(requests)::BIGINT FROM io_profile JOIN sweep_runs USING (run_id)"
    for query in (
        f"SELECT knob, value, count(*), {figures} FROM sweep_runs WHERE {EXPORTED} GROUP BY ALL ORDER BY ALL",  # noqa: S608
        f"{requests} WHERE {EXPORTED} GROUP BY ALL ORDER BY ALL",
    ):
        found = [read(database, query) for database in (tmp_path / "theirs.duckdb", ours)]
        assert found[0] == found[1] != []
    judged = read(tmp_path / "theirs.duckdb", "SELECT DISTINCT knob FROM findings WHERE rule = 'intuition'")
    assert set(judged) == {("synchronous",), ("journal_mode",)}


def read(database: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.long
def test_the_fastest_safe_configuration_is_measured_again_and_has_its_power_cut(small_study: Path) -> None:
    before = run_ids(small_study)
    text = studies.SMALL.replace("remeasure: {findings: 0}", "remeasure: {findings: 1, repeats: 3, cuts: 1}")
    studies.write_study(small_study, "small", text)
    studies.call(small_study, "small")
    safe = "SELECT pairs >= 3, cuts, cuts_lost IN (0, 1), uncut FROM fastest WHERE risk = 'none'"
    rows = studies.query(small_study, "small", safe)  # none where noise hides what WAL gains
    assert all(row == (True, 1, True, None) for row in rows)
    assert run_ids(small_study) == before
    page = (small_study / "results/small/report.html").read_text().replace("\u00a0", " ")
    assert ("acknowledged rows in 1 power cut" in page) == bool(rows)


@pytest.mark.long
def test_a_round_more_adds_only_what_is_missing(small_study: Path) -> None:
    before = run_ids(small_study)
    studies.write_study(small_study, "small", studies.SMALL.replace("max_rounds: 1", "max_rounds: 2"))
    studies.call(small_study, "small")
    assert before < run_ids(small_study)
    assert len(run_ids(small_study)) == len(before) + 3 + 3  # what is left of eight configurations, and sentinels
    assert "Nothing to be done" in studies.call(small_study, "small", "-n")


def test_wrong_specs_end_with_exit_code_2_before_anything_runs(tmp_path: Path) -> None:
    folder = studies.make_folder(tmp_path / "wrong")
    studies.write_study(folder, "small", studies.SMALL.replace("[off, full]", "[of, full]"))
    done = studies.call_unchecked(folder, "small")
    assert done.returncode == 2
    assert "specs/studies/small.yaml:" in done.stderr
    assert "synchronous" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results").exists()
