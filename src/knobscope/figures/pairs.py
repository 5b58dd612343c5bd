"""Two effects of the same value side by side, and their ratio (a dumbbell plot and a forest plot)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from knobscope.figures.axes import Frame
from knobscope.figures.canvas import Canvas, cut_text, text_width
from knobscope.figures.figure import WIDE
from knobscope.figures.forest import ChangeAxis, Effect, MetricPanel, shorten
from knobscope.text.formats import UNKNOWN, format_fold

_ROW, _HEAD = 34, 26
_TOP, _BOTTOM = 48, 26
_OFFSET = 6.5  # pixels of A above and of B below the middle of a row
_RATIO_NUMBERS = 142  # pixels for "9.8x (9.1x – 10.6x)"
_EFFECT_NUMBERS = 62  # pixels for "A 9.8x"
#: Looks of both sides; which one is above the other says the same as colour.
_LOOKS = {"A": "", "B": "value-bar"}


@dataclass(frozen=True)
class PairRow:
    """One value of one knob: its effects in A and B, and the ratio of B's to A's; None: not known."""

    group: str
    note: str  # behind the name of the group: what the effects are against
    label: str
    a: Effect | None
    b: Effect | None
    ratio: Effect | None

    def effects(self) -> dict[str, Effect | None]:
        """Return both effects by letter."""
        return {"A": self.a, "B": self.b}


def draw_pairs(width: float, rows: Sequence[PairRow], panel: MetricPanel) -> Canvas:
    """Draw both effects in one panel and their ratio in another, side by side when there is room."""
    groups = [(key, list(members)) for key, members in groupby(rows, key=lambda row: (row.group, row.note))]
    height = _TOP + sum(_HEAD + _ROW * len(members) for _, members in groups) + _BOTTOM
    beside = width >= WIDE
    labels = min(190.0, max(text_width(row.label) for row in rows) + 18) if beside else 104.0
    canvas = Canvas(width, height if beside else 2 * height)
    room = (width - labels) / 2 if beside else width - labels
    longest = max((text_width(_tell_ratio(row.ratio), 11) for row in rows if row.ratio), default=0.0)
    numbers = max(_RATIO_NUMBERS, longest + 10) if beside else _EFFECT_NUMBERS
    left = Frame(labels + 8, _TOP, labels + room - _EFFECT_NUMBERS - 8, height - _BOTTOM)
    start, top = (labels + room, 0.0) if beside else (labels, height)
    right = Frame(start + 8, top + _TOP, start + room - numbers, top + height - _BOTTOM)
    _draw_effects(canvas, left, panel, groups)
    _draw_ratios(canvas, right, panel, groups, short=not beside)
    for frame in [left] if beside else [left, right]:
        _draw_labels(canvas, groups, frame.top)
    return canvas


_Groups = Sequence[tuple[tuple[str, str], list[PairRow]]]


def _draw_labels(canvas: Canvas, groups: _Groups, top: float) -> None:
    y = top
    for (name, note), members in groups:
        canvas.text(0, y + 18, name, "strong")
        after = text_width(name, 14) + 8
        canvas.text(after, y + 18, cut_text(note, canvas.width - after), "note")
        y += _HEAD
        for row in members:
            canvas.text(10, y + _ROW / 2 + 4, shorten(row.label, 28), "name")
            y += _ROW


def _draw_effects(canvas: Canvas, frame: Frame, panel: MetricPanel, groups: _Groups) -> None:
    """Draw A above B in each row, and a line between them."""
    effects = [effect for _, members in groups for row in members for effect in (row.a, row.b)]
    axis = ChangeAxis.draw(canvas, frame, replace(panel, title=f"{panel.title} in A and in B"), effects, 0)
    axis.name_directions(canvas, (panel.worse, "tick"), (panel.better, "tick"))
    y = frame.top
    for _, members in groups:
        canvas.line((0, y + 1), (frame.right, y + 1), "grid")
        y += _HEAD
        for row in members:
            middle = y + _ROW / 2
            if row.a and row.b:
                x = [axis.scale(axis.sign * effect.estimate) for effect in (row.a, row.b)]
                canvas.line((x[0], middle - _OFFSET), (x[1], middle + _OFFSET), "link")
            for (letter, effect), side in zip(row.effects().items(), (-1, 1), strict=True):
                level = middle + side * _OFFSET
                if effect:
                    tip = (
                        f"{letter}: {row.group} = {row.label}: {panel.describe(effect)} ({effect.describe_interval()})"
                    )
                    axis.draw_effect(canvas, effect, level, _LOOKS[letter], tip)
                label = f"{letter} {format_fold(effect.estimate) if effect else UNKNOWN}"
                canvas.text(frame.right + 10, level + 4, label, "value line-a" if letter == "B" else "tick")
            y += _ROW


def _draw_ratios(canvas: Canvas, frame: Frame, panel: MetricPanel, groups: _Groups, *, short: bool) -> None:
    """Draw the ratio of B's effect to A's; clear ones are filled."""
    ratios = [row.ratio for _, members in groups for row in members]
    left = 0 if short else frame.left
    axis = ChangeAxis.draw(canvas, frame, replace(panel, title="B's effect against A's"), ratios, left)
    axis.name_directions(canvas, (f"{panel.worse} in B", "tick"), (f"{panel.better} in B", "tick"))
    y = frame.top
    for _, members in groups:
        canvas.line((left, y + 1), (frame.right, y + 1), "grid")
        y += _HEAD
        for row in members:
            middle = y + _ROW / 2
            if row.ratio:
                tip = f"{row.group} = {row.label}: {_tell_ratio(row.ratio)}"
                axis.draw_effect(canvas, row.ratio, middle, row.ratio.look(panel.sign), tip)
                label = format_fold(row.ratio.estimate) if short else _tell_ratio(row.ratio)
                canvas.text(frame.right + 10, middle + 4, label, "value" if row.ratio.clear else "tick")
            else:
                canvas.text(frame.right + 10, middle + 4, "not told", "tick")
            y += _ROW


def _tell_ratio(ratio: Effect) -> str:
    return f"{format_fold(ratio.estimate)} ({ratio.describe_interval()})"
