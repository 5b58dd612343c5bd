"""Findings that are no mismatch: what several rules say alike of one value is one line, and every reason is kept."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pages import plain

from knobscope.specs import StudySpecs
from knobscope.stages.report.sections.findings import build_findings
from knobscope.stages.report.sections.judged import Judged
from knobscope.study_data.study import StudyData

NOISE = (
    "no clear effect (95 % interval 7 % slower to 9 % faster), which does not rule out an effect that matters; these "
    "runs could have shown one of 8 % or more."
)
CASE = "(ycsb-a on fast-flash)"
CHANGE = "Raising cache_size from 2000 pages to 8000 pages"


@pytest.fixture
def lines(changed_study: Callable[..., Path], specs: StudySpecs) -> Callable[..., list[Judged]]:
    """Return a function that gives rules their findings on one value, and returns the lines of the report."""

    def show(verdict: str, low: float, high: float, **sentences: str) -> list[Judged]:
        row = (
            "SELECT ? AS rule, ? AS sentence, 'sqlite' AS dbms, 'fast-flash' AS device, 'ycsb-a' AS workload, "
            f"'cache_size' AS knob, '8000' AS value, '{verdict}' AS verdict, 0.01 AS effect, {low} AS effect_low, "
            f"{high} AS effect_high, 'none' AS confirmed, '{{}}' AS evidence"
        )
        rows = " UNION ALL ".join([row] * len(sentences))
        parameters = [text for pair in sentences.items() for text in pair]
        insertion = f"DELETE FROM findings; INSERT INTO findings BY NAME {rows}"  # noqa: S608 - ours
        database = changed_study(insertion, parameters=parameters)
        with StudyData.open(database, specs) as data:
            findings = build_findings(data)
        table = findings.unjudged if verdict == "insufficient" else findings.sound
        assert table.count == len(sentences)
        return table.rows

    return show


def test_one_reason_of_several_rules_is_one_line_and_another_reason_has_its_own(
    lines: Callable[..., list[Judged]],
) -> None:
    rows = lines(
        "insufficient", -0.07, 0.09,
        flush=f"{CHANGE} could not be checked for waiting on flushes {CASE}: {NOISE}",
        intuition=f"{CHANGE} could not be judged {CASE}: {NOISE}",
        io_size=f"{CHANGE} could not be checked for misaligned writes {CASE}: too few of its runs wrote to the device.",
        io_sequentiality=f"{CHANGE} could not be checked for CPU spent on sequential I/O {CASE}: {NOISE}",
    )  # fmt: skip
    assert [(row.rules, plain(row.sentence)) for row in rows] == [
        ("flush, intuition, io_sequentiality", f"{CHANGE} could not be judged {CASE}: {NOISE}"),
        (
            "io_size",
            f"{CHANGE} could not be checked for misaligned writes {CASE}: too few of its runs wrote to the device.",
        ),
    ]


def test_what_no_rule_could_explain_is_one_line_where_an_effect_that_matters_is_ruled_out(
    lines: Callable[..., list[Judged]],
) -> None:
    outcome = f"{CHANGE} has no clear effect (95 % interval 2 % slower to 4 % faster) on ycsb-a on fast-flash"
    sentences = {
        "flush": f"{outcome}; the number of flushes per operation stays at 0.18: waiting for flushes explains no loss.",
        "io_size": f"{outcome}; the share of such writes stays at 82 %: such writes explain no loss that matters.",
    }
    (row,) = lines("none", -0.02, 0.04, **sentences)
    assert (row.rules, plain(row.sentence)) == ("flush, io_size", f"{outcome}: an effect that matters is ruled out.")
    rows = lines("none", -0.02, 0.4, **sentences)
    assert [row.rules for row in rows] == ["flush", "io_size"]
    (row,) = lines("none", -0.02, 0.04, flush=sentences["flush"])
    assert plain(row.sentence) == sentences["flush"]
