"""All pictures of the report, drawn as SVG."""

from knobscope.figures.bends import BendPoint, Side, draw_bend
from knobscope.figures.canvas import Point
from knobscope.figures.curves import (
    Curve,
    Mark,
    bucket_points,
    draw_latencies,
    draw_loglog,
    draw_series,
    measure_intervals,
    with_pauses,
)
from knobscope.figures.figure import Figure, figure_style, slug, write_figures
from knobscope.figures.forest import Effect, ForestRow, MetricPanel, Span, draw_forest, draw_spans
from knobscope.figures.histograms import SizeMark, Sizes, depth_bins, draw_depths, draw_shares, draw_sizes
from knobscope.figures.locality import draw_locality
from knobscope.figures.pairs import PairRow, draw_pairs
from knobscope.figures.ranking import RankedKnob, RoundFit, draw_ranking, draw_rounds
from knobscope.figures.ranks import RankLine, draw_ranks
from knobscope.figures.rates import RateCurve, draw_rates
from knobscope.figures.sequentiality import OrderPoint, draw_order
from knobscope.figures.strips import Strip, draw_strips
from knobscope.figures.tiles import Tile, TileRow, draw_tiles
from knobscope.figures.timeline import TimelineBlock, TimelineRun, choose_blocks, draw_timeline
from knobscope.figures.times import TimeBar, TimePart, draw_times
from knobscope.figures.traffic import (
    OP_LOOKS,
    FileSizes,
    PointGroup,
    PointPanel,
    draw_file_sizes,
    draw_queues,
    draw_scatter,
)
from knobscope.figures.tuning import TuningCurve, draw_tuning
