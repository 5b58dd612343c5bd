"""Findings that are no mismatch: what several rules say alike of one value is one line, and every reason is kept."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pages import plain

from knobscope.specs import StudySpecs
from knobscope.stages.report.sections.findings import build_findings
from knobscope.stages.report.sections.judged import Judged, JudgedTable
from knobscope.study_data.study import StudyData

CHANGE = "Raising page_size from 4 KiB to 16 KiB"
UNJUDGED = (
    f"{CHANGE} could not be judged (ycsb-a on fast-flash): no clear effect (95 % interval 7 % slower to 9 % faster), "
    "which does not rule out an effect that matters."
)
OUTCOME = f"{CHANGE} has no clear effect (95 % interval 2 % slower to 4 % faster) on ycsb-a on fast-flash"
SOUND = {
    "flush": f"{OUTCOME}; the number of flushes per operation stays at 0.18: waiting for flushes explains no loss.",
    "io_size": f"{OUTCOME}; the share of such writes stays at 82 %: such writes explain no loss that matters.",
}
PAUSE = "UPDATE runs SET window_pause_s = 2 WHERE run_id = (SELECT min(run_id) FROM runs_behind WHERE {})"


@pytest.fixture
def tabulate(changed_study: Callable[..., Path], specs: StudySpecs) -> Callable[..., JudgedTable]:
    """Return a function that gives rules their findings on one value, and returns the table of the report."""

    def show(verdict: str, low: float, high: float, sentences: dict[str, str], *statements: str) -> JudgedTable:
        row = (
            "SELECT ? AS rule, ? AS sentence, 'sqlite' AS dbms, 'fast-flash' AS device, 'ycsb-a' AS workload, "
            f"'page_size' AS knob, '16384' AS value, '{verdict}' AS verdict, 0.01 AS effect, {low} AS effect_low, "
            f'{high} AS effect_high, \'none\' AS confirmed, \'{{"baseline": "4096", "step": 1}}\' AS evidence'
        )
        rows = " UNION ALL ".join([row] * len(sentences))
        parameters = [text for pair in sentences.items() for text in pair]
        insertion = f"DELETE FROM findings; INSERT INTO findings BY NAME {rows}"  # noqa: S608 - ours
        database = changed_study(insertion, *statements, parameters=parameters)
        with StudyData.open(database, specs) as data:
            findings = build_findings(data)
        table = findings.unjudged if verdict == "insufficient" else findings.sound
        assert table.count == len(sentences)
        return table

    return show


@pytest.fixture
def lines(tabulate: Callable[..., JudgedTable]) -> Callable[..., list[Judged]]:
    return lambda *told: tabulate(*told).rows


def test_one_reason_of_several_rules_is_one_line_and_another_reason_has_its_own(
    lines: Callable[..., list[Judged]],
) -> None:
    own = f"{CHANGE} could not be checked for misaligned writes (ycsb-a on fast-flash): too few of its runs wrote."
    sentences = {"flush": UNJUDGED, "intuition": UNJUDGED, "io_size": own, "io_sequentiality": UNJUDGED}
    rows = lines("insufficient", -0.07, 0.09, sentences)
    assert [(row.rules, plain(row.sentence)) for row in rows] == [
        ("flush, intuition, io_sequentiality", UNJUDGED),
        ("io_size", own),
    ]


def test_what_no_rule_could_explain_is_one_line_where_an_effect_that_matters_is_ruled_out(
    lines: Callable[..., list[Judged]],
) -> None:
    (row,) = lines("none", -0.02, 0.04, SOUND)
    assert (row.rules, plain(row.sentence)) == ("flush, io_size", f"{OUTCOME}: an effect that matters is ruled out.")
    assert [row.rules for row in lines("none", -0.02, 0.4, SOUND)] == ["flush", "io_size"]
    (row,) = lines("none", -0.02, 0.04, {"flush": SOUND["flush"]})
    assert plain(row.sentence) == SOUND["flush"]


@pytest.mark.parametrize(("side", "is_told"), [("value", True), ("default", False)])
def test_that_the_load_paused_with_a_value_is_said_once_for_all_lines(
    tabulate: Callable[..., JudgedTable], side: str, is_told: bool
) -> None:
    swept = "(device, knob, value) = ('fast-flash', 'page_size', '16384')"
    table = tabulate("none", -0.02, 0.4, SOUND, PAUSE.format(f"{swept} AND side = '{side}'"))
    assert plain(table.paused).startswith("In some runs behind 2 of 2 lines above, the load paused") == is_told
    assert not any("paused" in row.sentence for row in table.rows)
