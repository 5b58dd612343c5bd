"""A study whose knobs are ranked by a latency: every sentence and picture of the ranking is about that."""

from dataclasses import replace
from pathlib import Path

from pages import Page, render

from knobscope.specs import StudySpecs


def test_a_ranking_by_a_latency_speaks_of_it(study: Path, specs: StudySpecs, tmp_path: Path, page: Page) -> None:
    screening = specs.study.screening.model_copy(update={"response": "latency_p99"})
    by_tail = replace(specs, study=specs.study.model_copy(update={"screening": screening}))
    rendered = render(study, by_tail, tmp_path)
    ranking = rendered.section("ranking")
    assert "Knobs are ranked by the 99th percentile of latency." in ranking
    assert "Mean 99th percentile of latency of the screening runs" in rendered.source
    assert " shorter" in ranking
    assert "throughput" not in ranking.lower()
    # The model expects 1.25 times as much of 1 / latency, which is a latency of four fifths.
    assert "20 % shorter (14 % to 26 %)" in ranking
    assert "Knobs are ranked by" not in page.section("ranking")
