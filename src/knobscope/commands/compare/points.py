"""Values that both studies should have: those on both sides of the important points of either.

Two systems compared at a few settings can come out either way; a knee or turning point of one of them is where that
happens. Hui et al. (SIGMOD 2024) therefore advise to compare them on both sides of the important points of each.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from knobscope.commands.compare.matching import CasePair
from knobscope.commands.compare.reading import StudyTables
from knobscope.specs import Case


@dataclass(frozen=True)
class LackingPoint:
    """An important point of a study, the swept values at and next to it, and those of them that the other one lacks."""

    knob: str
    type: str
    value: str
    letter: str  # the study that has the point
    values: list[str]
    other: str
    lacking: list[str]


def find_lacking_points(a: StudyTables, b: StudyTables, pair: CasePair) -> list[LackingPoint]:
    """Return the points of either study around which the other one was not swept."""
    return [*_of_one(a, pair.a, b, pair.b), *_of_one(b, pair.b, a, pair.a)]


def _of_one(study: StudyTables, case: Case, other: StudyTables, other_case: Case) -> Iterator[LackingPoint]:
    for point in study.of_case("important_points", case):
        swept = _list_swept(study, case, point["knob"])
        number = _number(point["value"])
        if point["beside"] or number not in swept:
            continue
        numbers = sorted(swept)
        position = numbers.index(number)
        near = numbers[max(position - 1, 0) : position + 2]
        others = _list_swept(other, other_case, point["knob"])
        lacking = [swept[one] for one in near if one not in others]
        if lacking:
            values = [swept[one] for one in near]
            yield LackingPoint(point["knob"], point["type"], swept[number], study.letter, values, other.letter, lacking)


def _list_swept(study: StudyTables, case: Case, knob: str) -> dict[float, str]:
    """Return the numbers that the sweep has of a knob, the reference value among them, with their texts."""
    texts = {
        text
        for row in study.of_case("effects", case)
        if row["knob"] == knob and not row["beside"]
        for text in (row["value"], row["baseline"])
    }
    return {number: str(text) for text in texts if (number := _number(text)) is not None}


def _number(text: object) -> float | None:
    try:
        return float(str(text))
    except ValueError:
        return None
