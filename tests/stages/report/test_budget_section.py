"""What an operation waits for, as the report shows it: in a picture, in words and in a table, of known waits."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pages import SVG, plain, read_xml, render

from knobscope.commands.finding.markdown import describe_mismatch
from knobscope.specs import StudySpecs
from knobscope.stages.detect import merge_findings
from knobscope.stages.report.sections.budgets import CaseBudget, build_budgets
from knobscope.stages.report.sections.findings import build_findings
from knobscope.stages.report.sections.head import build_head
from knobscope.study_data.study import StudyData

Change = Callable[..., Path]

#: Sessions wait 80 us for flushes, 60 of it through their leader; with synchronous=off they do not. 20 us are CPU, and
#: a client is waited for, which is no part of an operation. Nothing else waits for anything. Clients see 125 us.
WAITS = """
    INSERT INTO waits BY NAME
    SELECT run_id, 'session' AS thread_class, 1 AS threads, 1 AS waits, 1 AS longest_us,
        one.reason, operations * us AS time_us, operations * through AS through_us
    FROM runs, (VALUES ('flush', 80, 60), ('cpu', 20, 0), ('network', 900, 0)) AS one(reason, us, through)
    WHERE status = 'ok' AND (one.reason <> 'flush' OR run_id NOT IN (
        SELECT run_id FROM sweep_runs WHERE knob = 'synchronous' AND value = 'off'));
    UPDATE runs SET latency_mean_us = 125
"""
DEFAULT = "100 µs (80 % of its latency of 125 µs), of which 80 µs flush (60 µs through the leader of the group)"
CHAINS = """
    INSERT INTO wait_chains BY NAME
    SELECT run_id, 'session' AS thread_class, 'session' AS via_class, 'flush' AS reason, 1 AS links, 1 AS waits,
        through_us AS time_us, 1 AS longest_us
    FROM waits WHERE reason = 'flush'
"""
EFFECT = """
    INSERT INTO effects BY NAME
    SELECT * REPLACE ('wait_flush_us_per_op' AS metric, -80 AS estimate, -84 AS low, -76 AS high)
    FROM effects WHERE metric = 'throughput_ops' AND knob = 'synchronous' AND value = 'off'
"""


def build(database: Path, specs: StudySpecs) -> list[CaseBudget]:
    with StudyData.open(database, specs) as data:
        return build_budgets(data)


@pytest.fixture
def watched(changed_study: Change) -> Path:
    return changed_study(WAITS, CHAINS, EFFECT)


def test_a_bar_per_value_has_its_parts_and_the_through_one_apart(watched: Path, specs: StudySpecs) -> None:
    budget = build(watched, specs)[0]
    assert budget.figure is not None
    assert plain(budget.sentences[0]) == (f"Default: an operation takes {DEFAULT}, 20 µs CPU.")
    assert any(
        "off an operation takes 80 µs less: 80 µs less flush (20 µs, of which 20 µs CPU)" in plain(sentence)
        for sentence in budget.sentences
    )
    for width in (400, 880):
        root = read_xml(budget.figure.draw(width).svg("budget"))
        bars = [mark for mark in root.iter(SVG + "rect") if len(mark)]
        looks = [mark.get("class", "") for mark in bars]
        assert looks[:3] == ["bar wait wait-flush", "bar wait wait-flush through", "bar wait wait-cpu"]
        direct, through, cpu = (float(mark.get("width", 0)) for mark in bars[:3])
        assert (direct / through, cpu / direct) == pytest.approx((1 / 3, 1), abs=0.02)
        assert not any("network" in look for look in looks)
        assert max(float(mark.get("x", 0)) + float(mark.get("width", 0)) for mark in bars) <= width


def test_units_of_a_default_keep_their_letters(watched: Path, specs: StudySpecs) -> None:
    with StudyData.open(watched, specs) as data:
        figures = [*build_findings(data).figures]
    described = [plain(figure.description) for figure in figures if figure.title == "What an operation waits for"]
    assert any(f"Default 4 KiB: an operation takes {DEFAULT}" in text for text in described), described


def test_the_table_says_the_same_with_intervals(watched: Path, specs: StudySpecs, tmp_path: Path) -> None:
    budget = build(watched, specs)[0]
    off = next(line for line in budget.lines if line.setting == "synchronous = off")
    assert budget.reasons == ["flush", "CPU"]
    assert [plain(f"{time} {interval}") for time, interval in off.parts] == ["0 µs −84 µs to −76 µs", "20 µs "]
    page = render(watched, specs, tmp_path)
    assert "What an operation waits for" in page.section("effects")
    assert "80 µs flush (60 µs through the leader of the group)" in page.section("effects")
    assert "What an operation waits for" in page.section("findings")  # a picture of each card, too


def test_the_top_says_where_the_time_of_the_largest_effect_went(watched: Path, study: Path, specs: StudySpecs) -> None:
    """By its parts: the sum is that of throughput, which findings state."""
    sentence = "Time per operation with synchronous = off: 80 µs less flush."
    for database, said in ((watched, [sentence]), (study, [])):
        with StudyData.open(database, specs) as data:
            answer = [plain(text) for text in build_head(data, build_findings(data)).answer]
        assert [text for text in answer if "per operation" in text] == said


def test_how_much_of_the_latency_a_budget_covers_is_next_to_it(watched: Path, specs: StudySpecs) -> None:
    budget = build(watched, specs)[0]
    assert budget.figure is not None
    assert [plain(line.covered) for line in budget.lines[:2]] == ["80 %", "16 %"]
    assert "100 µs (80 %)" in plain(budget.figure.draw(400).svg("budget"))
    assert "⚠" not in budget.note


def test_more_than_the_latency_is_explained(changed_study: Change, specs: StudySpecs) -> None:
    for latency_us, is_more in ((90, True), (1000, False)):
        latency = f"UPDATE runs SET latency_mean_us = {latency_us}"  # noqa: S608 - numbers of ours
        figure = build(changed_study(WAITS, latency), specs)[0].figure
        assert figure is not None
        assert ("More than 100 %: these threads also work between operations." in figure.caption) == is_more


def test_a_thread_that_passes_operations_on_shows(changed_study: Change, specs: StudySpecs) -> None:
    """It waits for its workers as it waits for clients: 100 us of 23 ms are no account of what an operation takes."""
    budget = build(changed_study(WAITS, "UPDATE runs SET latency_mean_us = 23000"), specs)[0]
    assert plain(budget.sentences[0]).startswith("Default: an operation takes 100 µs (0.4 % of its latency of 23 ms),")
    assert plain(budget.note).startswith(
        "⚠ The threads that serve clients account for only 0.4 % of an operation's lat"
    )
    busy = "UPDATE runs SET latency_mean_us = 23000; DELETE FROM waits WHERE reason = 'network'"
    note = build(changed_study(WAITS, busy), specs)[0].note
    assert plain(note).startswith("Serving a client takes only 0.4 % of an operation's latency (23 ms)")
    unknown = build(changed_study(WAITS, "UPDATE runs SET latency_mean_us = NULL"), specs)[0]
    assert "latency" not in unknown.sentences[0] + unknown.note


def test_lost_waits_are_said(changed_study: Change, specs: StudySpecs) -> None:
    lost = "UPDATE runs SET lost_waits = 5 WHERE is_sentinel AND phase = 'sweep' AND status = 'ok'"
    notes = [plain(budget.note) for budget in build(changed_study(WAITS, lost), specs)]
    assert all(note.startswith("In ") and "the probe missed" in note for note in notes)


def test_where_no_thread_serves_clients_there_is_no_budget_and_a_reason(
    changed_study: Change, specs: StudySpecs
) -> None:
    budgets = build(changed_study(WAITS, "UPDATE waits SET thread_class = 'sqlite'"), specs)
    assert all(budget.figure is None and "`session` under `threads`" in budget.note for budget in budgets)


def test_a_study_that_did_not_watch_waits_says_nothing(study: Path, specs: StudySpecs) -> None:
    assert build(study, specs) == []


def test_a_database_of_an_earlier_version_has_no_waits_and_is_read(changed_study: Change, specs: StudySpecs) -> None:
    gone = [f"DROP TABLE {table}" for table in ("waits", "wait_chains", "wait_files", "wait_stacks", "run_waits")]
    assert build(changed_study(*gone, "ALTER TABLE runs DROP COLUMN lost_waits"), specs) == []


def test_a_finding_says_what_an_operation_waits_for(watched: Path, specs: StudySpecs, study: Path) -> None:
    with StudyData.open(watched, specs) as data:
        rows = [
            row
            for row in data.rows("FROM findings WHERE verdict = 'mismatch' AND knob IS NOT NULL ORDER BY ALL")
            if row["confirmed"] != "no"
        ]
        text = plain(describe_mismatch(data, merge_findings(rows)[0], study))
    assert "## What an operation waits for" in text
    assert f"- default configuration: {DEFAULT}" in text


def test_without_waits_of_the_default_no_setting_is_compared(changed_study: Change, specs: StudySpecs) -> None:
    gone = "DELETE FROM waits WHERE run_id IN (SELECT run_id FROM runs WHERE is_sentinel)"
    budget = build(changed_study(WAITS, gone, EFFECT, "UPDATE runs SET latency_mean_us = 25"), specs)[0]
    assert len(budget.lines) > 1
    assert len(budget.sentences) == 1, budget.sentences
    assert not budget.sentences[0].startswith("Default")
    assert budget.note == "No run of the default configuration has waits, so no setting is compared with it."
