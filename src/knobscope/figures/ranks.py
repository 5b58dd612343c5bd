"""Ranks of knobs from case to case (a slope graph): which knobs matter everywhere, and which on one device only."""

from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import Frame
from knobscope.figures.canvas import Anchor, Canvas, text_width
from knobscope.figures.forest import shorten

_ROW, _TOP, _MOST = 24, 46, 12


@dataclass(frozen=True)
class RankLine:
    """Ranks of a knob, one per case, None where it has none; 1 matters most.

    `clear` says per case whether the knob is above noise there, `drifts` whether its rank differs by more than chance.
    """

    knob: str
    ranks: Sequence[int | None]
    clear: Sequence[bool]
    drifts: bool


def draw_ranks(width: float, cases: Sequence[str], lines: Sequence[RankLine]) -> Canvas:
    """Draw a line per knob through its ranks; one beyond the first twelve ends at the lower edge, without its name.

    Knobs that are among the first in no case are left out.
    """
    shown = [line for line in lines if any(rank is not None and rank <= _MOST for rank in line.ranks)]
    last = min(max(rank for line in shown for rank in line.ranks if rank is not None), _MOST + 1)
    names = min(0.4 * width, max(text_width(line.knob) for line in shown) + 36)
    canvas = Canvas(width, _TOP + _ROW * last + 34)
    frame = Frame(names, _TOP, width - names, _TOP + _ROW * last)
    step = frame.width / max(len(cases) - 1, 1)
    x = [frame.left + step * index for index in range(len(cases))]
    for index, case in enumerate(cases):
        canvas.line((x[index], frame.top - 4), (x[index], frame.bottom), "grid")
        canvas.text(x[index], _TOP - 16, shorten(case, max(int(step / text_width("m", 11)) - 1, 6)), "tick", "middle")
    # Lines that drift are drawn last, above the others.
    for line in sorted(shown, key=lambda line: line.drifts):
        _draw_line(canvas, x, line)
        letters = int((names - 14) / text_width("m")) - 3
        _name_end(canvas, x[0] - 10, line, line.ranks[0], letters, "end")
        _name_end(canvas, x[-1] + 10, line, line.ranks[-1], letters, "start")
    canvas.text(0, canvas.height - 6, "filled: above noise; blue: a difference beyond chance", "tick")
    return canvas


def _height(rank: int) -> float:
    return _TOP + _ROW * (min(rank, _MOST + 1) - 0.5)


def _draw_line(canvas: Canvas, x: Sequence[float], line: RankLine) -> None:
    ranked = [(at, rank, clear) for at, rank, clear in zip(x, line.ranks, line.clear, strict=True) if rank is not None]
    look = "curve line-a" if line.drifts else "curve thin soft"
    canvas.path([(at, _height(rank)) for at, rank, _ in ranked], look)
    for at, rank, clear in ranked:
        look = "hollow" if not clear else "line-a" if line.drifts else "base-bar"
        canvas.dot(at, _height(rank), 4.5, f"mark {look}", f"{line.knob}: rank {rank}")


def _name_end(canvas: Canvas, x: float, line: RankLine, rank: int | None, letters: int, anchor: Anchor) -> None:
    if rank is not None and rank <= _MOST:
        parts = [shorten(line.knob, letters), str(rank)]
        text = " ".join(parts if anchor == "end" else reversed(parts))
        canvas.text(x, _height(rank) + 4, text, "name line-a" if line.drifts else "name", anchor)
