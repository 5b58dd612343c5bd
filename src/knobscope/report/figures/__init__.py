"""All pictures of the report, drawn as SVG."""

from knobscope.report.figures.curves import Curve, Mark, draw_latencies, draw_loglog, draw_series
from knobscope.report.figures.figure import Figure, figure_style, slug, write_figures
from knobscope.report.figures.forest import Effect, ForestRow, MetricPanel, draw_forest, draw_spans
from knobscope.report.figures.histograms import Sizes, depth_bins, draw_depths, draw_shares, draw_sizes
from knobscope.report.figures.ranking import RankedKnob, RoundFit, draw_ranking, draw_rounds
from knobscope.report.figures.strips import Strip, draw_strips
from knobscope.report.figures.timeline import TimelineBlock, TimelineRun, draw_timeline

__all__ = [
    "Curve",
    "Effect",
    "Figure",
    "ForestRow",
    "Mark",
    "MetricPanel",
    "RankedKnob",
    "RoundFit",
    "Sizes",
    "Strip",
    "TimelineBlock",
    "TimelineRun",
    "depth_bins",
    "draw_depths",
    "draw_forest",
    "draw_latencies",
    "draw_loglog",
    "draw_ranking",
    "draw_rounds",
    "draw_series",
    "draw_shares",
    "draw_sizes",
    "draw_spans",
    "draw_strips",
    "draw_timeline",
    "figure_style",
    "slug",
    "write_figures",
]
