"""The study in the order in which it was measured: does the same configuration stay equally fast?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import Frame, draw_y_axis
from knobscope.figures.canvas import Canvas, cut_text
from knobscope.figures.figure import WIDE
from knobscope.figures.scales import Scale, linear_ticks, ratio_ticks, short_number
from knobscope.text.formats import format_rate

_MOST_BLOCKS = 150
#: Where throughput differs by more than this factor, a linear axis would flatten all slow blocks.
_LOG_ABOVE = 4


@dataclass(frozen=True)
class TimelineRun:
    """A run in its order: throughput in ops/s, None for one that failed (then `status` tells how)."""

    throughput: float | None
    is_sentinel: bool
    status: str
    started: str


@dataclass(frozen=True)
class TimelineBlock:
    """The runs of a block, and what became of it: compared as it is (none), corrected (position), or dropped."""

    name: str
    started: str
    runs: Sequence[TimelineRun]
    treatment: str
    note: str


def choose_blocks(blocks: Sequence[TimelineBlock]) -> list[TimelineBlock]:
    """Return the blocks that a picture has room for: those that drifted, if there is room, and evenly some others."""
    drifting = sum(block.treatment != "none" for block in blocks)
    keeps = drifting < _MOST_BLOCKS // 2
    step = max(1, math.ceil(len(blocks) / (_MOST_BLOCKS - drifting if keeps else _MOST_BLOCKS)))
    return [block for index, block in enumerate(blocks) if index % step == 0 or (keeps and block.treatment != "none")]


def draw_timeline(width: float, blocks: Sequence[TimelineBlock], noise: float | None) -> Canvas:
    """Draw the sentinels' throughput block by block, with a band of two standard deviations (`noise`, log ratio).

    Blocks stand side by side however long the pause between them was; the strip below has a tick for every run.
    """
    canvas = Canvas(width, 268)
    frame = Frame(52, 40, width - 8, 200)
    scale = _sentinel_scale(frame, blocks, noise)
    ticks = ratio_ticks(scale.low, scale.high) if scale.log else linear_ticks(scale.low, scale.high, 4)
    draw_y_axis(canvas, frame, [(scale(tick), short_number(tick)) for tick in ticks])
    canvas.text(0, 14, "throughput of the default configuration, ops/s", "label")
    gap = 6 if len(blocks) < 40 else 1
    room = frame.width - gap * (len(blocks) - 1)
    total = sum(len(block.runs) for block in blocks)
    left = frame.left
    for block in blocks:
        wide = room * len(block.runs) / total
        _draw_block(canvas, Frame(left, frame.top, left + wide, frame.bottom), block, scale, noise, named=wide > 60)
        left += wide + gap
    canvas.text(frame.left - 6, frame.bottom + 22, "all runs", "tick", "end")
    if width >= WIDE:
        caption = (
            "ticks: a run each; long red ones failed.  band: ± 2 standard deviations of a run around the block's mean"
        )
        canvas.text(frame.left, frame.bottom + 62, caption, "tick")
    return canvas


def _sentinel_scale(frame: Frame, blocks: Sequence[TimelineBlock], noise: float | None) -> Scale:
    values = [
        run.throughput for block in blocks for run in block.runs if run.is_sentinel and run.throughput is not None
    ]
    if not values:
        return Scale(0, 1, frame.bottom, frame.top)
    spread = math.exp(2.4 * (noise or 0.02))
    low, high = min(values) / spread, max(values) * spread
    if high > _LOG_ABOVE * low:
        return Scale(low / 1.2, high * 1.2, frame.bottom, frame.top, log=True)
    margin = 0.15 * (high - low)
    return Scale(max(low - margin, 0), high + margin, frame.bottom, frame.top)


def _draw_block(
    canvas: Canvas, frame: Frame, block: TimelineBlock, scale: Scale, noise: float | None, *, named: bool
) -> None:
    canvas.rect(frame.left, frame.top, frame.width, frame.height, "block", f"{block.name}: {block.note}")
    step = frame.width / len(block.runs)
    sentinels = [
        (frame.left + step * (index + 0.5), run.throughput, run.started)
        for index, run in enumerate(block.runs)
        if run.is_sentinel and run.throughput is not None
    ]
    if sentinels:
        mean = math.exp(sum(math.log(value) for _, value, _ in sentinels) / len(sentinels))
        if noise:
            top, bottom = scale(mean * math.exp(2 * noise)), scale(mean * math.exp(-2 * noise))
            canvas.rect(frame.left, top, frame.width, bottom - top, "noise")
        canvas.line((frame.left, scale(mean)), (frame.right, scale(mean)), "grid")
        look = "base-bar" if block.treatment == "none" else "bad"
        canvas.path([(x, scale(value)) for x, value, _ in sentinels], f"curve thin {look}")
        for x, value, started in sentinels:
            canvas.dot(x, scale(value), 4.2, f"mark {look}", f"{format_rate(value)} at {started}")
    _draw_ticks(canvas, frame.left + step / 2, step, frame.bottom + 10, block.runs)
    if named:
        canvas.text(frame.left + 2, frame.top - 6, cut_text(block.name, frame.width), "tick")
        canvas.text(frame.left + 2, frame.bottom + 42, cut_text(block.started, frame.width), "tick")
        if block.treatment != "none":
            canvas.text(
                frame.left + 4, frame.top + 14, "drifts" if block.treatment == "position" else "dropped", "caution"
            )


def _draw_ticks(canvas: Canvas, x: float, step: float, y: float, runs: Sequence[TimelineRun]) -> None:
    """Draw a tick for each run; those that look alike are one mark, since there may be thousands."""
    looks: dict[str, list[float]] = {"tick-run": [], "tick-sentinel": [], "tick-failed": []}
    for index, run in enumerate(runs):
        look = "tick-failed" if run.status != "ok" else "tick-sentinel" if run.is_sentinel else "tick-run"
        looks[look].append(x + step * index)
    for look, where in looks.items():
        canvas.ticks(where, *((y - 1, y + 16) if look == "tick-failed" else (y + 3, y + 12)), look)
