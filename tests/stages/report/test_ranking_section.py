"""Section "Knob ranking": which of the knobs that stand out a tuner may change."""

from pathlib import Path

from pages import plain
from simulated_specs import make_specs

from knobscope.specs import StudySpecs
from knobscope.stages.report.sections.ranking import CaseRanking, build_ranking
from knobscope.study_data.study import StudyData


def rank(database: Path, specs: StudySpecs) -> CaseRanking:
    with StudyData.open(database, specs) as data:
        return build_ranking(data).cases[0]


def test_a_ranking_says_what_is_closed_to_tuners_and_what_remains(study: Path, specs: StudySpecs) -> None:
    ranking = rank(study, specs)
    assert (
        "leave out values that risk committed data: synchronous (all but its default). Of the knobs that remain, "
        "wal_autocheckpoint and page_size stand out." in plain(ranking.summary)
    )
    drawn = ranking.pictures[0].draw(400).svg("ranking")
    assert "synchronous ◆" in drawn
    assert "page_size ◆" not in drawn


def test_where_tuners_take_the_risk_nothing_is_closed(study: Path) -> None:
    ranking = rank(study, make_specs(tune={"with_durability": True}))
    assert "leave out" not in ranking.summary
    assert "◆" not in ranking.pictures[0].draw(400).svg("ranking")
