"""All pictures of the report, drawn as SVG."""

from knobscope.report.figures.canvas import Point
from knobscope.report.figures.curves import Curve, Mark, draw_latencies, draw_loglog, draw_series
from knobscope.report.figures.figure import Figure, figure_style, slug, write_figures
from knobscope.report.figures.files import FileSizes, draw_file_sizes, draw_scatter
from knobscope.report.figures.forest import Effect, ForestRow, MetricPanel, draw_forest, draw_spans
from knobscope.report.figures.histograms import Sizes, depth_bins, draw_depths, draw_shares, draw_sizes
from knobscope.report.figures.pairs import PairRow, draw_pairs
from knobscope.report.figures.ranking import RankedKnob, RoundFit, draw_ranking, draw_rounds
from knobscope.report.figures.strips import Strip, draw_strips
from knobscope.report.figures.timeline import TimelineBlock, TimelineRun, draw_timeline
from knobscope.report.figures.tuning import TuningCurve, draw_tuning

__all__ = [
    "Curve",
    "Effect",
    "Figure",
    "FileSizes",
    "ForestRow",
    "Mark",
    "MetricPanel",
    "PairRow",
    "Point",
    "RankedKnob",
    "RoundFit",
    "Sizes",
    "Strip",
    "TimelineBlock",
    "TimelineRun",
    "TuningCurve",
    "depth_bins",
    "draw_depths",
    "draw_file_sizes",
    "draw_forest",
    "draw_latencies",
    "draw_loglog",
    "draw_pairs",
    "draw_ranking",
    "draw_rounds",
    "draw_scatter",
    "draw_series",
    "draw_shares",
    "draw_sizes",
    "draw_spans",
    "draw_strips",
    "draw_timeline",
    "draw_tuning",
    "figure_style",
    "slug",
    "write_figures",
]
