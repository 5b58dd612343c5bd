"""A page of many cases or findings shows some of them, says how many it leaves out, and where they are."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pages import Page, words_of
from pages import render_text as render

from knobscope.errors import UserError
from knobscope.specs import StudySpecs
from knobscope.stages.report.sections import findings, judged

Render = Callable[..., Page]  # as fixture `render_changed`
FAST, SLOW = "sqlite/fast-flash/ycsb-a", "sqlite/slow-disk/ycsb-a"


@pytest.fixture
def one_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cases, as those of the simulated study, are too many."""
    monkeypatch.setattr("knobscope.study_data.study.MOST_CASES", 1)


@pytest.mark.usefixtures("one_case")
@pytest.mark.parametrize(("costly", "other"), [("fast-flash", "slow-disk"), ("slow-disk", "fast-flash")])
def test_of_too_many_cases_those_with_the_costliest_mismatches_are_shown(
    render_changed: Render, costly: str, other: str
) -> None:
    page = render_changed(
        "UPDATE findings SET penalty = CASE device WHEN ? THEN 9 ELSE 2 END WHERE verdict = 'mismatch'",
        parameters=[costly],
    )
    for section in ("effects", "runs", "files"):
        assert f"sqlite · {costly} · ycsb-a" in page.section(section)
        assert f"sqlite · {other} · ycsb-a" not in page.section(section).split("Failed and excluded runs")[0]
        assert "1 more case is not shown" in page.section(section)
        assert "those with the costliest mismatches" in page.section(section)
    assert f"sqlite · {other} · ycsb-a" in page.section("findings")


def test_a_page_shows_the_cases_that_are_asked_for(study: Path, specs: StudySpecs, tmp_path: Path) -> None:
    effects = render(study, specs, tmp_path, cases=[SLOW]).section("effects")
    assert "sqlite · slow-disk · ycsb-a" in effects
    assert "sqlite · fast-flash · ycsb-a" not in effects
    assert "1 more case is not shown, to keep this page small; it shows those that were requested." in effects
    with pytest.raises(UserError, match=f"has no case 'sqlite/x/y'; expected some of {FAST}, {SLOW}"):
        render(study, specs, tmp_path, cases=["sqlite/x/y"])


def test_a_page_of_few_cases_leaves_nothing_out(page: Page) -> None:
    assert "not shown here" not in page.text
    assert "more findings of this mismatch" not in page.text


def test_of_many_findings_those_with_the_largest_effects_are_shown(
    render_changed: Render, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged, "_MOST", 2)
    monkeypatch.setattr(findings, "_MOST_VALUES", 1)
    page = render_changed(
        "UPDATE findings SET verdict = 'none', penalty = NULL, effect = 0.01, sentence = 'tiny'",
        "UPDATE findings SET sentence = 'large', effect = 0.9 WHERE knob = 'page_size' AND value = '65536'",
    )
    text = page.section("findings")
    assert text.count("large") == 2
    assert "tiny" not in text
    assert "more, with smaller effects or none: table findings" in text


def test_a_mismatch_has_a_clear_effect_whatever_an_interval_of_95_percent_holds(render_changed: Render) -> None:
    """With a threshold `fdr` above 0.05 it may hold no change."""
    effects = "effect = -0.06, effect_low = -0.12, effect_high = 0.01"
    page = render_changed(f"UPDATE findings SET {effects} WHERE verdict = 'mismatch'")  # noqa: S608
    shown = page.section("findings")
    assert "Throughput6 % slower 12 % slower to 1 % faster" in shown
    assert "Throughputno clear effect" not in shown


def test_of_many_findings_of_a_mismatch_the_costliest_are_shown(
    page: Page, study: Path, specs: StudySpecs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "_MOST_VALUES", 1)
    fewer = render(study, specs, tmp_path)
    assert "less costly, of this mismatch: table findings" in fewer.text
    answers = [words_of(each.all("div", "answer")[0]) for each in (page, fewer)]
    assert "finding" in answers[0]
    assert answers[0] == answers[1]  # what is not shown counts
