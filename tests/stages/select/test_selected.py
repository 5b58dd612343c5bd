"""Which knobs of a ranking go on to the sweep."""

from knobscope.stages.select import select_first


def ranked(*stands_out: bool) -> list[dict[str, object]]:
    """Return a ranking of knobs a, b, c, ..."""
    return [{"knob": name, "stands_out": out} for name, out in zip("abcdefgh", stands_out, strict=False)]


def selected(top: int, *stands_out: bool) -> str:
    """Return the knobs that are selected."""
    return "".join(str(one["knob"]) for one in select_first(ranked(*stands_out), top) if one["selected"])


def test_the_first_of_those_that_stand_out_are_selected_wherever_they_rank() -> None:
    assert selected(2, False, True, False, True, True) == "bd"
    assert selected(9, False, True, False, True, True) == "bde"


def test_where_none_stands_out_the_first_are_selected() -> None:
    assert selected(2, False, False, False) == "ab"
