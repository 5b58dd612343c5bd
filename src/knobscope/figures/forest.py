"""Dots with intervals on an axis of x-fold changes: how much each value of each knob does (a forest plot)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from knobscope.figures.axes import Frame, draw_x_axis
from knobscope.figures.canvas import Canvas, cut_text, text_width
from knobscope.figures.figure import WIDE
from knobscope.figures.scales import Scale, fold_ticks
from knobscope.text.formats import describe_change, format_fold

_ROW, _HEAD = 21, 26
_TOP, _BOTTOM = 44, 26
_CAUTION = "⚠ risks committed data"
_NUMBERS = 142  # pixels for "9.8x (9.1x – 10.6x)"


@dataclass(frozen=True)
class Effect:
    """A natural-log ratio to the default; `clear` when it stands out from the noise. No interval: one block only."""

    estimate: float
    interval: tuple[float, float] | None
    clear: bool

    def signed(self, sign: int) -> tuple[float, float]:
        """Return both ends (the estimate where there is no interval), turned around when `sign` is -1."""
        low, high = self.interval or (self.estimate, self.estimate)
        return (low, high) if sign > 0 else (-high, -low)

    def look(self, sign: int = 1) -> str:
        """Return how its mark looks where a change of this sign is better."""
        return ("better" if sign * self.estimate > 0 else "worse") if self.clear else "unclear"

    def describe_interval(self) -> str:
        """Return the interval as x-fold changes, or that there is none."""
        if self.interval is None:
            return "no interval"
        return f"{format_fold(self.interval[0])} – {format_fold(self.interval[1])}"


@dataclass(frozen=True)
class ForestRow:
    """One value of one knob; an effect per panel, None where it was not measured."""

    group: str
    note: str  # behind the name of the group, e.g. its default
    label: str
    effects: tuple[Effect | None, ...]
    durability: bool = False


@dataclass(frozen=True)
class MetricPanel:
    """What one panel shows; `sign` is -1 where less is better; `noise` is the log-ratio standard deviation of a run."""

    title: str
    worse: str
    better: str
    sign: int
    noise: float | None = None

    def describe(self, effect: Effect) -> str:
        """Say an effect in words, a ratio of the metric itself: a latency that is halved is 50 % shorter."""
        more, less = (self.better, self.worse) if self.sign > 0 else (self.worse, self.better)
        return describe_change(effect.estimate, more, less)


def draw_forest(width: float, rows: Sequence[ForestRow], panels: Sequence[MetricPanel]) -> Canvas:
    """Draw the panels next to each other when there is room, else below each other; better is always on the right."""
    groups = [(key, list(members)) for key, members in groupby(rows, key=lambda row: (row.group, row.note))]
    body = sum(_HEAD + _ROW * len(members) for _, members in groups)
    height = _TOP + body + _BOTTOM
    beside = width >= WIDE
    labels = min(200.0, max(text_width(row.label) for row in rows) + 18) if beside else 104.0
    canvas = Canvas(width, height if beside else height * len(panels))
    room = (width - labels) / len(panels) if beside else width - labels
    texts = [_tell(effect, short=not beside) for row in rows for effect in row.effects if effect]
    numbers = max([_NUMBERS if beside else 66, *(text_width(text, 11) + 10 for text in texts)])
    for index, panel in enumerate(panels):
        left, top = (labels + index * room, 0.0) if beside else (labels, index * height)
        frame = Frame(left + 8, top + _TOP, left + room - numbers, top + height - _BOTTOM)
        _draw_panel(canvas, frame, panel, groups, index, short=not beside)
        if index == 0 or not beside:
            _draw_labels(canvas, groups, top + _TOP, width - text_width(_CAUTION, 12))
    return canvas


def _draw_labels(
    canvas: Canvas, groups: list[tuple[tuple[str, str], list[ForestRow]]], top: float, right: float
) -> None:
    y = top
    for (group, note), members in groups:
        is_risky = any(member.durability for member in members)
        end = right - 8 if is_risky else canvas.width
        name = cut_text(group, end, 13)
        canvas.text(0, y + 18, name, "strong")
        position = text_width(name, 14) + 8
        if note and end - position > 30:
            shown = cut_text(note, end - position)
            canvas.text(position, y + 18, shown, "tick")
            position += text_width(shown, 11) + 10
        if is_risky:
            canvas.text(min(position, right), y + 18, _CAUTION, "caution")
        y += _HEAD
        for row in members:
            canvas.text(10, y + 15, shorten(row.label, 30), "name")
            y += _ROW


def shorten(text: str, most: int) -> str:
    """Return a text with so many letters at most."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fold_scale(frame: Frame, effects: Sequence[Effect | None], sign: int = 1) -> Scale:
    """Return a scale for signed log ratios that holds all estimates, and intervals as far as they are not absurd."""
    points = [sign * effect.estimate for effect in effects if effect]
    low, high = min([0.0, *points]), max([0.0, *points])
    reach = max(0.5 * (high - low), 0.05)
    for effect in effects:
        if effect:
            ends = effect.signed(sign)
            low, high = min(low, max(ends[0], low - reach)), max(high, min(ends[1], high + reach))
    pad = 0.04 * (high - low) + 0.005
    return Scale(low - pad, high + pad, frame.left, frame.right)


@dataclass(frozen=True)
class ChangeAxis:
    """Where a change is in a panel; better is always on the right."""

    frame: Frame
    scale: Scale
    sign: int

    @classmethod
    def draw(
        cls, canvas: Canvas, frame: Frame, panel: MetricPanel, effects: Sequence[Effect | None], title_at: float
    ) -> "ChangeAxis":
        """Draw axis and title of a panel."""
        scale = fold_scale(frame, effects, panel.sign)
        if panel.noise:
            left, right = scale(-2 * panel.noise), scale(2 * panel.noise)
            canvas.rect(left, frame.top, right - left, frame.height, "noise", "two standard deviations of a single run")
        low, high = (scale.low, scale.high) if panel.sign > 0 else (-scale.high, -scale.low)
        ticks = [(scale(panel.sign * value), text) for value, text in fold_ticks(low, high, int(frame.width / 42))]
        draw_x_axis(canvas, frame, ticks, grid=True)
        canvas.line((scale(0), frame.top - 4), (scale(0), frame.bottom), "zero")
        canvas.text(title_at, frame.top - 30, panel.title, "strong")
        return cls(frame, scale, panel.sign)

    def name_directions(self, canvas: Canvas, worse: tuple[str, str], better: tuple[str, str]) -> None:
        """Write which way is worse and which is better, each a text and its look."""
        canvas.text(self.scale(0) - 6, self.frame.top - 8, f"← {worse[0]}", worse[1], "end")
        canvas.text(self.scale(0) + 6, self.frame.top - 8, f"{better[0]} →", better[1])

    def draw_effect(self, canvas: Canvas, effect: Effect, y: float, look: str, tip: str, risky: bool = False) -> None:
        """Draw an effect with its interval; an end outside the panel gets an arrow."""
        ends = effect.signed(self.sign)
        canvas.line((self.scale(ends[0]), y), (self.scale(ends[1]), y), f"interval {look}".rstrip())
        for end, arrow in zip(ends, "‹›", strict=True):
            if not self.scale.holds(end):
                canvas.text(self.scale(end), y + 4, arrow, "tick", "middle")
        mark = canvas.diamond if risky else canvas.dot
        mark(self.scale(self.sign * effect.estimate), y, 5.5 if risky else 4.5, f"mark {look}".rstrip(), tip)


def _draw_panel(
    canvas: Canvas,
    frame: Frame,
    panel: MetricPanel,
    groups: list[tuple[tuple[str, str], list[ForestRow]]],
    index: int,
    *,
    short: bool,
) -> None:
    effects = [row.effects[index] for _, members in groups for row in members]
    axis = ChangeAxis.draw(canvas, frame, panel, effects, 0 if short else frame.left)
    axis.name_directions(canvas, (panel.worse, "worse"), (panel.better, "better"))
    y = frame.top
    for _, members in groups:
        canvas.line((0 if index == 0 or short else frame.left, y + 1), (frame.right, y + 1), "grid")
        y += _HEAD
        for row in members:
            if (effect := row.effects[index]) is not None:
                tip = f"{row.group} = {row.label}: {panel.describe(effect)} ({effect.describe_interval()})"
                axis.draw_effect(canvas, effect, y + _ROW / 2, effect.look(panel.sign), tip, row.durability)
                words = _tell(effect, short=short)
                canvas.text(frame.right + 10, y + _ROW / 2 + 4, words, "value" if effect.clear else "tick")
            y += _ROW


def _tell(effect: Effect, *, short: bool) -> str:
    return format_fold(effect.estimate) + ("" if short else f" ({effect.describe_interval()})")


@dataclass(frozen=True)
class Span:
    """A knob's way from its slowest to its fastest value; `beside` says in words what other knobs are set to."""

    knob: str
    beside: str
    slow: Effect
    slow_value: str
    fast: Effect
    fast_value: str
    durability: bool


def draw_spans(width: float, spans: Sequence[Span]) -> Canvas:
    """Draw per knob the way from its slowest to its fastest value, the default at 1x."""
    row, more, top = 42, 16, 22  # more: for a second line of words
    heights = [row + (more if span.beside else 0) for span in spans]
    canvas = Canvas(width, top + sum(heights) + 24)
    frame = Frame(0, top, width, top + sum(heights))
    labels = [
        _span_label(*end) for span in spans for end in ((span.slow, span.slow_value), (span.fast, span.fast_value))
    ]
    scale = _scale_around(frame, [("default", 0.0, 0), *labels])
    ticks = fold_ticks(scale.low, scale.high, int(width / 60))
    draw_x_axis(canvas, frame, [(scale(v), text) for v, text in ticks if 12 < scale(v) < width - 12], grid=True)
    canvas.line((scale(0), frame.top - 4), (scale(0), frame.bottom), "zero")
    canvas.text(scale(0), frame.top - 10, "default", "tick", "middle")
    y = frame.top
    for span, height in zip(spans, heights, strict=True):
        room = width - (text_width(_CAUTION, 12) + 8 if span.durability else 0.0)
        knob = cut_text(span.knob, room, 13)
        canvas.text(0, y + 15, knob, "strong")
        if span.durability:
            canvas.text(min(text_width(knob, 14), room) + 8, y + 15, _CAUTION, "caution")
        if span.beside:
            canvas.text(0, y + 15 + more, cut_text(span.beside, width), "tick")
        y += height
        _draw_span(canvas, scale, span, y - 13)
    return canvas


def _draw_span(canvas: Canvas, scale: Scale, span: Span, y: float) -> None:
    canvas.line((scale(min(span.slow.estimate, 0)), y), (scale(max(span.fast.estimate, 0)), y), "span")
    for effect, value, sign in ((span.slow, span.slow_value, -1), (span.fast, span.fast_value, 1)):
        text, end, side = _span_label(effect, value)
        if side == sign:
            look = effect.look()
            canvas.dot(scale(end), y, 4.5, f"mark {look}", f"{value}: {describe_change(end)}")
            canvas.text(scale(end) + side * 9, y + 4, text, "tick", "start" if side > 0 else "end")


def _scale_around(frame: Frame, labels: Sequence[tuple[str, float, int]]) -> Scale:
    """Return the widest scale at which labels, to the left (-1), around (0) or to the right (1) of their end, fit."""
    lefts = [(end, text_width(text, 11) + 14 if side < 0 else 24.0) for text, end, side in labels if side <= 0]
    rights = [(end, text_width(text, 11) + 14 if side > 0 else 24.0) for text, end, side in labels if side >= 0]
    pixels = min(
        (
            (frame.width - before - after) / (right - left)
            for left, before in lefts
            for right, after in rights
            if right - left > 1e-9
        ),
        default=frame.width,
    )
    start = max(frame.left + before - pixels * left for left, before in lefts)
    return Scale((frame.left - start) / pixels, (frame.right - start) / pixels, frame.left, frame.right)


def _span_label(effect: Effect, value: str) -> tuple[str, float, int]:
    """Return the text next to an end of a span, the end, and its side: -1 slower than the default, 1 faster."""
    text = f"{shorten(value, 20)} {format_fold(effect.estimate)}"
    return text, effect.estimate, -1 if effect.estimate < 0 else 1
