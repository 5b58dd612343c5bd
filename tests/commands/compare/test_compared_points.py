"""Important points of one study around which the other one was not swept."""

from collections.abc import Callable
from pathlib import Path

from knobscope.commands.compare import Comparison
from knobscope.commands.compare.text import format_comparison

Make = Callable[..., Path]
Compare = Callable[[Path, Path], Comparison]
POINT = (
    "INSERT INTO important_points BY NAME SELECT DISTINCT dbms, device, workload, 'page' AS knob, '{kind}' AS type, "
    "'16' AS value, {beside} AS beside, 2.0 AS turn_ratio, 0.5 AS share, 1.0 AS score FROM effects"
)
KNEE = POINT.format(kind="knee", beside="NULL")
WITHOUT = "DELETE FROM effects WHERE knob = 'page' AND value = '16'"


def test_both_sides_of_a_point_are_asked_of_the_other_study(
    make_database: Make, compare: Compare, changed: Callable[..., Path]
) -> None:
    a, b = changed(make_database(seed=1), KNEE), changed(make_database(seed=2), WITHOUT)
    comparison = compare(a, b)
    (case,) = comparison.cases
    (point,) = case.points
    assert (point.knob, point.type, point.value, point.letter, point.other) == ("page", "knee", "16", "A", "B")
    assert point.lacking == ["16"]
    assert point.values[-1] == "16" and len(point.values) == 2
    text = " ".join(format_comparison(comparison).split())
    assert "page has a knee at 16 in A, and B was not swept at 16: to compare both sides of it, sweep" in text
    (turned,) = compare(b, a).cases[0].points
    assert (turned.letter, turned.other) == ("B", "A")


def test_a_point_that_both_were_swept_around_asks_for_nothing(
    make_database: Make, compare: Compare, changed: Callable[..., Path]
) -> None:
    a, b = changed(make_database(seed=1), KNEE), make_database(seed=2)
    assert compare(a, b).cases[0].points == []
    depends = POINT.format(kind="turning", beside="'{}'")  # on another knob: the sweep varies none
    assert compare(changed(make_database(seed=1), depends), changed(b, WITHOUT)).cases[0].points == []
