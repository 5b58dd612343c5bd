"""The smallest study through Snakemake: in a folder that a shell would misread, with a value more, with other rules."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import studies
from waiting import wait_until

from knobscope.cli import main
from knobscope.devices import device_lock, find_block_device
from knobscope.durable_files import read_sealed, write_sealed
from knobscope.tables import read_table

ROOT = Path(__file__).parents[1]
#: A rule of a user's own, each of whose files says something of its own in every finding.
RULE = {
    "rule.sql": """\
-- counted: how many runs there are.
-- Source: a test.
-- Needs: ok_runs.
-- Insufficient: never.
SELECT dbms, device, workload, 'none' AS verdict, {runs: count(*), least: getvariable('least_runs')} AS evidence
FROM ok_runs
GROUP BY ALL
""",
    "rule.yaml": """\
name: counted
title: Few runs
question: How many runs are there?
needs: [ok_runs]
thresholds:
  least_runs: {default: 1, unit: runs, meaning: Runs that are enough., source: a test}
""",
    "sentence.j2": """\
{% macro if_mismatch() %}never{% endmacro %}
{% macro if_insufficient() %}never{% endmacro %}
{% macro if_none() %}Counted {{ evidence.runs }} runs, enough are {{ evidence.least | number }}.{% endmacro %}
""",
}
EDITED = {
    "rule.yaml": RULE["rule.yaml"].replace("default: 1", "default: 2"),
    "sentence.j2": RULE["sentence.j2"].replace("Counted", "Found"),
    "rule.sql": RULE["rule.sql"].replace("'none'", "'insufficient'"),
}
pytestmark = pytest.mark.real


def run(folder: Path, values: str, rules: str = "intuition", *more: str) -> str:
    """Run the study with these values of `synchronous` and these rules; returns what Snakemake said."""
    text = studies.SMALL.replace("[off, full]", values).replace("[intuition]", f"[{rules}]")
    studies.write_study(folder, "small", text)
    return studies.call(folder, "small", *more)


def query(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    return studies.query(folder, "small", sql)


def test_no_name_of_a_folder_reaches_a_shell_as_code(small_study: Path) -> None:
    assert ("ok",) in query(small_study, "SELECT DISTINCT status FROM runs")
    assert (small_study / "results/small/report.html").stat().st_size > 0
    found = [
        Path(parent, name) for parent, _, names in os.walk(small_study.parent) for name in names if name == "EXECUTED"
    ]
    assert found == []
    assert not (ROOT / "EXECUTED").exists()


def judge(folder: Path, *more: str) -> None:
    """Run the study with the user's own rule, which measures nothing."""
    said = run(folder, "[off, full]", "intuition, mine/counted", *more)
    assert "rule detect:" in said
    assert not re.search(r"(rule|checkpoint) (plan_|characterise|prepare|measure|select)", said), said


def read_finding(folder: Path) -> tuple[str, str]:
    """Return verdict and sentence of the user's own rule."""
    (finding,) = query(folder, "SELECT verdict, sentence FROM findings WHERE rule = 'counted'")
    return finding


def add_rule(folder: Path) -> Path:
    """Write the user's own rule; returns its directory."""
    rule = folder / "mine/counted"
    rule.mkdir(parents=True, exist_ok=True)
    for name, text in RULE.items():
        (rule / name).write_text(text)
    return rule


def test_a_rule_more_and_a_lost_database_are_judged_anew_without_measuring(small_study: Path) -> None:
    """What an edited rule says now is in database and report; that each of its files counts, a longer test checks."""
    measured = query(small_study, "SELECT run_id, started_at::VARCHAR FROM runs ORDER BY ALL")
    rule = add_rule(small_study)
    (sound,) = query(small_study, "SELECT count(*) FROM ok_runs")
    judge(small_study, "-n")
    (small_study / "results/small/study.duckdb").unlink()
    for name in ("rule.yaml", "sentence.j2"):
        (rule / name).write_text(EDITED[name])
    judge(small_study)
    sentence = f"Found {sound[0]} runs, enough are 2."
    assert read_finding(small_study) == ("none", sentence)
    assert sentence in (small_study / "results/small/report.html").read_text()
    assert query(small_study, "SELECT run_id, started_at::VARCHAR FROM runs ORDER BY ALL") == measured


def test_a_block_whose_runs_are_all_stored_does_not_wait_for_its_device(
    small_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Callable[..., str]
) -> None:
    monkeypatch.chdir(small_study)
    results, again = Path("results/small"), tmp_path / "again"
    case = results / "sqlite/local-disk/ycsb-a"
    arguments = ["--study", "specs/studies/small.yaml", "--case", "sqlite/local-disk/ycsb-a", "--block", "sweep-0-0"]
    arguments += ["--plan", str(case / "plan/sweep-0.parquet"), "--prepared", str(case / "prepared/sweep-0.json")]
    arguments += ["--profile", str(results / "devices/local-disk.json"), "--out", str(again)]
    shutil.copytree(results / "store", tmp_path / "store")
    arguments += ["--store", str(tmp_path / "store")]
    with device_lock(find_block_device(Path())):
        assert main(["measure", *arguments]) == 0
        records = read_table([again / "runs.parquet"])
        assert records.equals(read_table([case / "runs/sweep-0-0/runs.parquet"]))
        (tmp_path / f"store/{records['run_id'].iloc[-1]}.json").unlink()
        assert "uses disk" in refuses("measure", *arguments)


@pytest.mark.long
@pytest.mark.parametrize("name", EDITED)
def test_each_file_of_a_rule_is_a_reason_to_judge_anew(small_study: Path, name: str) -> None:
    rule = add_rule(small_study)
    run(small_study, "[off, full]", "intuition, mine/counted")
    (rule / name).write_text(EDITED[name])
    judge(small_study, "-n")


@pytest.mark.long
def test_a_value_that_is_added_to_a_finished_study_is_judged(small_study: Path) -> None:
    before = dict(query(small_study, "SELECT run_id, started_at::VARCHAR FROM runs WHERE phase = 'sweep'"))
    run(small_study, "[off, normal, full]")
    after = dict(query(small_study, "SELECT run_id, started_at::VARCHAR FROM runs WHERE phase = 'sweep'"))
    assert before.items() <= after.items()  # nothing is measured twice
    sessions = query(
        small_study,
        "SELECT block_id, session, count(*) FILTER (is_sentinel), count(*) FROM runs WHERE phase = 'sweep'"
        " GROUP BY ALL ORDER BY ALL",
    )
    assert len(sessions) == 4  # two blocks, each in two sessions
    assert all(sentinels >= 2 and runs > sentinels for _, _, sentinels, runs in sessions), sessions
    effect = query(
        small_study,
        "SELECT estimate IS NOT NULL FROM effects"
        " WHERE knob = 'synchronous' AND value = 'normal' AND metric = 'throughput_ops'",
    )
    assert effect == [(True,)]
    orders = query(
        small_study, "SELECT list(position ORDER BY started_at) FROM runs WHERE phase = 'sweep' GROUP BY block_id"
    )
    assert all(order == sorted(set(order)) for (order,) in orders), orders


def test_every_value_in_a_shell_line_is_quoted() -> None:
    for file in sorted((ROOT / "rules").glob("*.smk")):
        text = file.read_text()
        shell = text[text.index("    shell:\n") :]
        for part in ("params", "input", "output", "log", "wildcards"):
            for field in shell.split("{" + part)[1:]:
                inside = field.split("}")[0]
                assert inside.endswith(":q"), f"{file.name}: {{{part}{inside}}}"


def test_a_device_is_measured_again_on_request(small_study: Path) -> None:
    """With `--forcerun characterise`; what depends on the profile follows and says why."""
    said = run(small_study, "[off, full]", "intuition", "--forcerun", "characterise", "--dry-run")
    for rule in ("characterise", "measure", "detect", "report"):
        assert re.search(rf"^rule {rule}:|^localrule {rule}:|^{rule} +\d", said, re.MULTILINE), rule
    assert "Forced execution" in said
    assert re.search(r"updated by another job: .*devices/local-disk\.json", said)


def test_progress_has_noted_each_run_of_each_block(small_study: Path) -> None:
    logs = (small_study / "results/small/logs").rglob("measure-*.jsonl")
    noted = {json.loads(line)["run_id"] for file in logs for line in file.read_text().splitlines()}
    assert noted == {run for (run,) in query(small_study, "SELECT run_id FROM runs")}


def test_specs_that_are_edited_while_a_study_runs_end_it(device_profile: Path, tmp_path: Path) -> None:
    """Jobs read specs again: without a look at that, one study would have runs of both, and the report not say so."""
    folder = studies.make_folder(tmp_path / "edited")
    study = studies.write_study(folder, "small", studies.SMALL)
    studies.place_profile(folder, device_profile, "small")
    store = folder / "results/small/store"
    with subprocess.Popen(
        studies.command(folder, "small"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as call:
        assert wait_until(lambda: any(store.glob("*.json")))
        study.write_text(studies.SMALL.replace("records: 300", "records: 400").replace("the smallest", "a small"))
        said, _ = call.communicate()
    assert call.returncode != 0
    assert "studies/small.yaml, workloads/ycsb-a.yaml changed after this call of snakemake began" in said, said
    assert not (folder / "results/small/study.duckdb").exists()
    studies.call(folder, "small")
    counts = query(folder, "SELECT phase, count(*) FROM runs GROUP BY phase ORDER BY phase")
    assert counts == query(device_profile.parents[3], "SELECT phase, count(*) FROM runs GROUP BY phase ORDER BY phase")


def test_what_failed_in_a_finished_study_is_measured_again_on_request(small_study: Path) -> None:
    """Snakemake misses a block that is not there for nothing, where all that came after it is."""
    path = next(path for path in (small_study / "results/small/store").glob("*.json") if "/sweep-" in path.read_text())
    record = read_sealed(path)
    record["run"]["status"] = "failed_run"
    write_sealed(path, record)
    command = [*studies.command(small_study, "small"), "retry_failed=true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert "1 run that failed is measured again" in done.stderr
    assert read_sealed(path)["run"]["status"] == "ok"
