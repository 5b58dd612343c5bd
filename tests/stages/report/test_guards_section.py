"""Negative controls, runs that cannot be believed and sessions on another level, as the first screen tells of them."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pages import ON_DISK, ON_FLASH, Page
from test_head import answer, sureness

from knobscope.specs import Dbms, StudySpecs

Render = Callable[..., Page]  # as fixture `render_head`


def with_controls(specs: StudySpecs, *knobs: str) -> StudySpecs:
    """The specs, in which these knobs are negative controls."""
    sqlite: Dbms = specs.dbms["sqlite"]
    marked = {name: knob.model_copy(update={"control": name in knobs}) for name, knob in sqlite.knobs.items()}
    return replace(specs, dbms={**specs.dbms, "sqlite": sqlite.model_copy(update={"knobs": marked})})


def says_nothing_of_controls(page: Page) -> bool:
    return "Negative control" not in page.text


@pytest.mark.slow
def test_a_study_without_controls_says_nothing_of_them(render_head: Render, specs: StudySpecs) -> None:
    assert says_nothing_of_controls(render_head(cases=[ON_FLASH]))
    unswept = with_controls(specs, "cache_size")  # which no run compares
    assert says_nothing_of_controls(render_head(of=unswept, cases=[ON_FLASH]))


def test_controls_without_an_effect_are_good_news(render_head: Render, specs: StudySpecs) -> None:
    page = render_head(
        "UPDATE effects SET q_value = 0.9 WHERE knob = 'wal_autocheckpoint' AND q_value IS NOT NULL",
        "DELETE FROM findings WHERE knob = 'wal_autocheckpoint'",
        of=with_controls(specs, "wal_autocheckpoint"),
    )
    said = sureness(page, "Negative controls")
    assert said.startswith("Negative controls 1 knob that cannot change anything (wal_autocheckpoint): none of ")
    assert said.endswith("comparisons appears as a finding good")
    assert "can change nothing, and yet" not in answer(page)


@pytest.mark.parametrize("by", ["effect", "finding"])
def test_a_finding_on_a_control_is_a_warning(render_head: Render, specs: StudySpecs, by: str) -> None:
    """Half the speed at one value is a false alarm, whether an effect shows it or only a rule's verdict."""
    quiet = "UPDATE effects SET q_value = 0.9 WHERE knob = 'wal_autocheckpoint' AND q_value IS NOT NULL"
    loud = (
        "UPDATE effects SET q_value = 0.001, estimate = ln(0.5) WHERE knob = 'wal_autocheckpoint' AND value = '10' "
        "AND device = 'fast-flash' AND metric = 'throughput_ops'"
    )
    verdict = (
        "UPDATE findings SET verdict = CASE WHEN device = 'fast-flash' AND value = '10' "
        "THEN 'mismatch' ELSE 'none' END WHERE knob = 'wal_autocheckpoint'"
    )
    none = "UPDATE findings SET verdict = 'none' WHERE knob = 'wal_autocheckpoint'"
    statements = (quiet, loud, none) if by == "effect" else (quiet, verdict)
    page = render_head(*statements, of=with_controls(specs, "wal_autocheckpoint"))
    assert "Negative controls (wal_autocheckpoint) cannot change anything, yet 1 of" in answer(page)
    assert "noise is larger than the statistics of this study assume" in answer(page)
    assert sureness(page, "Negative controls").endswith("poor (good: no finding)")


def test_runs_that_cannot_be_believed_are_distinguished_from_failures(render_head: Render) -> None:
    page = render_head(
        "DELETE FROM set_aside_runs",
        "INSERT INTO set_aside_runs SELECT run_id, CASE WHEN row_number() OVER (ORDER BY run_id) > 2 THEN 'frozen' "
        "ELSE 'copied' END, NULL, 'why' FROM runs WHERE status = 'ok' ORDER BY run_id LIMIT 3",
        "UPDATE runs SET status = 'invalid', reason = 'why' WHERE run_id IN (SELECT run_id FROM set_aside_runs)",
        cases=[ON_FLASH],
    )
    assert (
        "13 of 90 runs (14 %) were excluded: 10 gave no result, 2 have exactly the same figures as other runs "
        "and 1 has a series that does not change."
    ) in answer(page)
    assert "table set_aside_runs lists them" in page.section("runs")


@pytest.mark.slow
def test_a_session_on_another_level_is_reported_with_what_follows(render_head: Render) -> None:
    page = render_head(
        "UPDATE blocks SET other_level = true, level = ln(0.2) WHERE block_id = "
        "(SELECT min(block_id) FROM blocks WHERE device = 'slow-disk')",
        cases=[ON_DISK],
    )
    assert "sessions of sqlite · slow-disk" in answer(page)
    assert "was 5x slower than the others throughout" in answer(page)
    assert "comparisons of speeds across sessions exclude it" in answer(page)
    assert "was 5x slower than the other sessions throughout" in page.section("runs")
    none = render_head(cases=())
    assert "sessions of sqlite" not in answer(none)
