"""Which knobs matter (permutation importance), and how sure the model behind it is (R2 by round)."""

from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import Frame, draw_x_axis, draw_y_axis
from knobscope.figures.canvas import Canvas
from knobscope.figures.scales import Scale, linear_ticks
from knobscope.text.formats import format_number, format_share


@dataclass(frozen=True)
class RankedKnob:
    """A knob with its permutation importance (drop of R2 when its values are shuffled) and the model's own measure."""

    knob: str
    permutation: float
    own: float | None
    above_noise: bool
    selected: bool
    is_risk: bool = False  # some of its values risk committed data


@dataclass(frozen=True)
class RoundFit:
    """R2 over the splits of one screening round, after so many runs."""

    round: int
    runs: int
    r2_min: float | None
    r2_median: float | None


def draw_ranking(width: float, knobs: Sequence[RankedKnob]) -> Canvas:
    """Draw a bar per knob; hollow bars are not above noise; knobs that went on to the sweep are ticked."""
    row = 25
    canvas = Canvas(width, 34 + row * len(knobs) + 34)
    frame = Frame(142, 34, width - 104, 34 + row * len(knobs))
    highest = max((knob.permutation for knob in knobs), default=0.0)
    scale = Scale(0, max(highest, 1e-3) * 1.02, frame.left, frame.right)
    ticks = [(scale(tick), format_number(tick)) for tick in linear_ticks(0, scale.high, 3)]
    draw_x_axis(canvas, frame, ticks, "loss of R² when the knob's values are shuffled", grid=True)
    legend = ["✓ = swept", *(["◆ = risks committed data"] if any(knob.is_risk for knob in knobs) else [])]
    canvas.text(0, 16, ", ".join(legend), "tick")
    canvas.text(width, 16, "by the model", "tick", "end")
    for index, knob in enumerate(knobs):
        y = frame.top + row * index + row / 2
        canvas.text(0, y + 4, "✓" if knob.selected else "", "strong")
        mark = " ◆" if knob.is_risk else ""
        most = 19 - len(mark)
        name = knob.knob if len(knob.knob) <= most else f"{knob.knob[: most - 1]}…"
        canvas.text(15, y + 4, name + mark, "name")
        significance = "above noise" if knob.above_noise else "not above noise"
        tip = f"{knob.knob}: {format_number(knob.permutation)}, {significance}"
        look = "bar value-bar" if knob.above_noise else "bar hollow"
        end = scale(max(knob.permutation, 0))
        canvas.rect(frame.left, y - 8, max(end - frame.left, 1.5), 16, look, tip)
        if not knob.above_noise:
            canvas.text(end + 5, y + 4, "within noise", "tick")
        canvas.text(width, y + 4, format_share(knob.own), "value", "end")
    return canvas


def draw_rounds(width: float, rounds: Sequence[RoundFit], threshold: float) -> Canvas:
    """Draw smallest and median R2 of every round against the threshold that all splits must reach."""
    canvas = Canvas(width, 214)
    frame = Frame(40, 26, width - 84, 176)
    scale = Scale(0, 1, frame.bottom, frame.top)
    draw_y_axis(
        canvas, frame, [(scale(tick), format_number(tick)) for tick in (0, 0.25, 0.5, 0.75, 1)], "R² on held-out runs"
    )
    canvas.line((frame.left, scale(threshold)), (frame.right, scale(threshold)), "preferred")
    canvas.text(frame.left + 4, scale(threshold) - 5, f"goal {format_number(threshold)}", "tick")
    step = frame.width / max(len(rounds), 1)
    ticks = []
    for index, fit in enumerate(rounds):
        x = frame.left + step * (index + 0.5)
        ticks.append((x, str(fit.runs)))
        low, middle = fit.r2_min, fit.r2_median
        if low is None or middle is None:
            canvas.text(x, frame.bottom - 8, "no model", "tick", "middle")
            continue
        canvas.line((x, scale(low)), (x, scale(middle)), "interval value-bar")
        canvas.dot(x, scale(middle), 5, "mark hollow", f"median R² {format_number(middle, 3)}")
        canvas.dot(x, scale(low), 5, "mark value-bar", f"smallest R² {format_number(low, 3)}")
        if low < 0:
            canvas.text(x + 9, frame.bottom - 4, f"{format_number(low)} ↓", "tick")
    draw_x_axis(canvas, frame, ticks, "runs so far, by round")
    last = rounds[-1] if rounds else None
    if last is not None and last.r2_min is not None and last.r2_median is not None:
        x = frame.left + step * (len(rounds) - 0.5) + 9
        canvas.text(x, min(scale(last.r2_min) + 14, frame.bottom - 4), "smallest", "tick")
        canvas.text(x, scale(last.r2_median) - 4, "median", "tick")
    return canvas
