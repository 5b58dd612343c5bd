"""The smallest study through Snakemake: in a folder that a shell would misread, with a value more, with other rules."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import studies
from studies import make_folder, place_profile, write_study

ROOT = Path(__file__).parents[1]
STUDY = """
name: small
description: the smallest study there is
dbms: [sqlite]
devices: [here]
workloads:
  ycsb-a: {records: 200, threads: 1, warmup_s: 0.1, measure_s: 1}
knobs:
  sqlite:
    synchronous: {values: [off, full]}
    cache_size: {values: %s}
sampling: {runs_per_round: 4, max_rounds: 1}
screening: {top: 1}
sweep: {repeats: 2, always: [cache_size]}
rules: [intuition]
"""
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
#: Blanks, both quotes, a letter beyond ASCII, and what a shell would run.
ODD = """it's "odd" ü $(touch EXECUTED) `touch EXECUTED`;&"""

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished study."""
    folder = make_folder(tmp_path_factory.mktemp("small") / ODD)
    place_profile(folder, "small")
    run(folder, "[-500, -2000]")
    return folder


def run(folder: Path, values: str, rules: str = "intuition", *more: str) -> str:
    """Run the study with these values of `cache_size` and these rules; returns what Snakemake said."""
    write_study(folder, "small", (STUDY % values).replace("[intuition]", f"[{rules}]"))
    return studies.call(folder, "small", *more)


def query(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    return studies.query(folder, "small", sql)


def test_no_name_of_a_folder_reaches_a_shell_as_code(project: Path) -> None:
    assert ("ok",) in query(project, "SELECT DISTINCT status FROM runs")
    assert (project / "results/small/report.html").stat().st_size > 0
    found = [Path(parent, name) for parent, _, names in os.walk(project.parent) for name in names if name == "EXECUTED"]
    assert found == []
    assert not (ROOT / "EXECUTED").exists()


def judge(folder: Path, *more: str) -> None:
    """Run the study with the user's own rule, which measures nothing."""
    said = run(folder, "[-500, -2000]", "intuition, mine/counted", *more)
    assert "rule detect:" in said
    assert not re.search(r"(rule|checkpoint) (plan_|characterise|prepare|measure|select)", said), said


def read_finding(folder: Path) -> tuple[str, str]:
    """Return verdict and sentence of the user's own rule."""
    (finding,) = query(folder, "SELECT verdict, sentence FROM findings WHERE rule = 'counted'")
    return finding


def test_an_edited_rule_and_a_lost_database_are_judged_anew_without_measuring(project: Path) -> None:
    run(project, "[-500, -2000]")  # whatever other tests did to the study
    measured = query(project, "SELECT run_id, started_at::VARCHAR FROM runs ORDER BY ALL")
    rule = project / "mine/counted"
    rule.mkdir(parents=True)
    for name, text in RULE.items():
        (rule / name).write_text(text)
    words = f"Counted {len(measured)} runs, enough are"
    judge(project)
    assert read_finding(project) == ("none", f"{words} 1.")
    (project / "results/small/study.duckdb").unlink()
    judge(project)
    assert read_finding(project) == ("none", f"{words} 1.")
    edited = {
        "rule.yaml": RULE["rule.yaml"].replace("default: 1", "default: 2"),
        "sentence.j2": RULE["sentence.j2"].replace("Counted", "Found"),
        "rule.sql": RULE["rule.sql"].replace("'none'", "'insufficient'"),
    }
    for name, text in edited.items():
        (rule / name).write_text(text)
        judge(project, "-n")  # each alone is a reason
        (rule / name).write_text(RULE[name])
    for name in ("rule.yaml", "sentence.j2"):
        (rule / name).write_text(edited[name])
    judge(project)
    assert read_finding(project) == ("none", f"{words} 2.".replace("Counted", "Found"))
    assert f"{words} 1." not in (project / "results/small/report.html").read_text()
    assert query(project, "SELECT run_id, started_at::VARCHAR FROM runs ORDER BY ALL") == measured


def test_a_value_that_is_added_to_a_finished_study_is_judged(project: Path) -> None:
    before = dict(query(project, "SELECT run_id, started_at::VARCHAR FROM runs WHERE phase = 'sweep'"))
    run(project, "[-500, -2000, -8000]")
    after = dict(query(project, "SELECT run_id, started_at::VARCHAR FROM runs WHERE phase = 'sweep'"))
    assert before.items() <= after.items()  # nothing is measured twice
    sessions = query(
        project,
        "SELECT block_id, session, count(*) FILTER (is_sentinel), count(*) FROM runs WHERE phase = 'sweep'"
        " GROUP BY ALL ORDER BY ALL",
    )
    assert len(sessions) == 4  # two blocks, each in two sessions
    assert all(sentinels >= 2 and runs > sentinels for _, _, sentinels, runs in sessions), sessions
    effect = query(
        project,
        "SELECT estimate IS NOT NULL FROM effects"
        " WHERE knob = 'cache_size' AND value = '-8000' AND metric = 'throughput_ops'",
    )
    assert effect == [(True,)]
    orders = query(
        project, "SELECT list(position ORDER BY started_at) FROM runs WHERE phase = 'sweep' GROUP BY block_id"
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
