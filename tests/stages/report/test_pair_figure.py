"""The figure of effects in two studies."""

from xml.etree import ElementTree

import pytest
from pages import SVG, read_xml

from knobscope.figures import Effect, MetricPanel, PairRow, draw_pairs
from knobscope.figures.canvas import Canvas

THROUGHPUT = MetricPanel("Throughput", "slower", "faster", 1)
LATENCY = MetricPanel("p95", "longer", "shorter", -1)


def effect(estimate: float, *, clear: bool = False) -> Effect:
    return Effect(estimate, (estimate - 0.05, estimate + 0.05), clear)


def row(label: str, a: float, b: float, *, clear: bool = False, known: bool = True) -> PairRow:
    ratio = effect(b - a, clear=clear) if known else None
    return PairRow("knob", "against 1", label, effect(a), effect(b), ratio)


def dots(canvas: Canvas) -> list[dict[str, float | str]]:
    found = list(read_xml(canvas.svg("a picture")).iter(SVG + "circle"))
    return [
        {"x": float(dot.get("cx", "")), "y": float(dot.get("cy", "")), "look": dot.get("class", "")} for dot in found
    ]


def texts(canvas: Canvas) -> list[ElementTree.Element]:
    return list(read_xml(canvas.svg("a picture")).iter(SVG + "text"))


@pytest.mark.parametrize("width", [400.0, 880.0])
def test_a_is_above_b_on_one_logarithmic_axis(width: float) -> None:
    a, b, a2, b2, *ratios = dots(draw_pairs(width, [row("x", -1.0, 0.0), row("y", 2.0, 1.0)], THROUGHPUT))
    assert [dot["look"] for dot in (a, b, a2, b2)] == ["mark", "mark value-bar", "mark", "mark value-bar"]
    assert a["y"] < b["y"] < a2["y"] < b2["y"]
    assert a["x"] < b["x"] < b2["x"] < a2["x"] < width
    assert (float(b["x"]) - float(a["x"])) == pytest.approx(float(b2["x"]) - float(b["x"]), abs=0.3)
    assert len(ratios) == 2
    assert float(ratios[1]["x"]) < float(ratios[0]["x"]) < width


def test_only_clear_ratios_are_filled_and_unknown_ones_are_said_to_be() -> None:
    rows = [
        row("x", 0.0, 1.0, clear=True),
        row("y", 0.0, -1.0, clear=True),
        row("z", 0.0, 0.1),
        row("u", 0, 0, known=False),
    ]
    canvas = draw_pairs(880.0, rows, THROUGHPUT)
    looks = [str(dot["look"]) for dot in dots(canvas) if dot["look"] not in ("mark", "mark value-bar")]
    assert looks == ["mark better", "mark worse", "mark unclear"]
    assert sum(text.text == "not told" for text in texts(canvas)) == 1


def test_better_is_on_the_right_for_latency_too() -> None:
    a, b, ratio = dots(draw_pairs(880.0, [row("x", 0.0, -1.0, clear=True)], LATENCY))
    assert float(b["x"]) > float(a["x"])  # shorter in B
    assert ratio["look"] == "mark better"


@pytest.mark.parametrize("width", [400.0, 880.0])
def test_numbers_stay_inside(width: float) -> None:
    canvas = draw_pairs(width, [row("x", -3.9, 3.9), row("y", 0.0, 0.01)], THROUGHPUT)
    for text in texts(canvas):
        anchored = {"end": 0.0, "middle": 0.5}.get(text.get("text-anchor", ""), 1.0)
        assert float(text.get("x", "")) + anchored * 5.6 * len(text.text or "") <= width + 1, text.text


def test_a_value_of_one_study_alone_has_one_dot() -> None:
    canvas = draw_pairs(880.0, [PairRow("knob", "", "x", effect(0.3), None, None), row("y", 0.0, 0.1)], THROUGHPUT)
    assert len(dots(canvas)) == 1 + 3
    assert any(text.text == "B –" for text in texts(canvas))
