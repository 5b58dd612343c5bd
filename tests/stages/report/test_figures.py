import csv
import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest
from pages import SVG, plain, read_xml

from knobscope.figures import (
    Effect,
    Figure,
    ForestRow,
    MetricPanel,
    SizeMark,
    Sizes,
    Span,
    TimeBar,
    TimelineBlock,
    TimelineRun,
    TimePart,
    TuningCurve,
    choose_blocks,
    depth_bins,
    draw_forest,
    draw_sizes,
    draw_spans,
    draw_timeline,
    draw_times,
    draw_tuning,
    slug,
    write_figures,
)
from knobscope.figures.axes import Frame, draw_x_axis
from knobscope.figures.canvas import Canvas, text_width
from knobscope.figures.figure import figure_style
from knobscope.figures.histograms import size_bins
from knobscope.figures.scales import Scale, fold_ticks, linear_ticks, power_ticks, spread_labels
from knobscope.specs import Case, StudySpecs
from knobscope.stages.report import render_report
from knobscope.stages.report.sections.evidence import Comparison, Setting, picture_tail
from knobscope.stages.report.sections.findings import build_findings
from knobscope.study_data.study import StudyData

PANELS = [MetricPanel("Throughput", "slower", "faster", 1, 0.02)]


def parse(canvas: Canvas) -> ElementTree.Element:
    return read_xml(canvas.svg("a picture"))


def marks(canvas: Canvas, tag: str, look: str) -> list[ElementTree.Element]:
    return [mark for mark in parse(canvas).iter(SVG + tag) if look in str(mark.get("class")).split()]


def row(label: str, estimate: float, half: float = 0.05, *, clear: bool = True, durability: bool = False) -> ForestRow:
    effect = Effect(estimate, (estimate - half, estimate + half), clear)
    return ForestRow("knob", "default 1", label, (effect,), durability)


def test_labels_of_other_knobs_next_to_a_span_stay_inside_the_picture() -> None:
    effect = Effect(-5.0, None, True)
    ends = (effect, "100", effect, "100", True)
    many = " and ".join(f"innodb_some_long_knob_{number} = on" for number in range(4))
    spans = [Span("binlog_commit_wait_count", f"beside {many}", *ends), Span("log_bin", "", *ends)]
    for width in (520.0, 400.0):
        canvas = draw_spans(width, spans)
        texts = {"".join(text.itertext()): text for text in parse(canvas).iter(SVG + "text")}
        (told,) = [words for words in texts if words.startswith("beside")]
        assert told.startswith("beside innodb_some_long_knob_0 = on")
        assert text_width(told, 11) <= width
        heights = [float(texts[name].get("y", "")) for name in ("binlog_commit_wait_count", told, "log_bin")]
        assert heights == sorted(set(heights))


def test_names_of_devices_next_to_a_span_are_whole() -> None:
    slow, fast = Effect(-0.4, None, True), Effect(0.1, None, True)
    canvas = draw_spans(400, [Span("device.log", "", slow, "nvme-consumer-2", fast, "nvme-datacenter-plp", False)])
    texts = {"".join(text.itertext()): float(text.get("x", "")) for text in parse(canvas).iter(SVG + "text")}
    (left,) = [label for label in texts if label.startswith("nvme-consumer-2 ")]
    (right,) = [label for label in texts if label.startswith("nvme-datacenter-plp ")]
    assert 0 <= texts[left] - text_width(left, 11) < texts[right] + text_width(right, 11) <= 400


@pytest.mark.parametrize("width", [400.0, 960.0])
def test_forest_orders_dots_by_effect(width: float) -> None:
    canvas = draw_forest(width, [row("a", -1.0), row("b", 0.4), row("c", 2.0)], PANELS)
    positions = [float(dot.get("cx", "")) for dot in marks(canvas, "circle", "mark")]
    assert positions == sorted(positions)
    assert all(0 < position < width for position in positions)
    # Equal ratios are equally far: the axis is logarithmic.
    assert (positions[1] - positions[0]) / (positions[2] - positions[1]) == pytest.approx(1.4 / 1.6, abs=0.02)


def test_forest_tells_clear_effects_from_noise_and_marks_durability() -> None:
    canvas = draw_forest(960, [row("a", 1.0, durability=True), row("b", -0.5), row("c", 0.01, clear=False)], PANELS)
    assert len(marks(canvas, "path", "better")) == 1
    assert len(marks(canvas, "circle", "worse")) == 1
    assert len(marks(canvas, "circle", "unclear")) == 1
    assert "risks committed data" in "".join(parse(canvas).itertext())


def test_less_latency_is_to_the_right() -> None:
    latency = [MetricPanel("Latency", "longer", "shorter", -1)]
    canvas = draw_forest(960, [row("a", -1.0), row("b", 1.0)], latency)
    shorter, longer = (float(dot.get("cx", "")) for dot in marks(canvas, "circle", "mark"))
    assert shorter > longer


def test_words_of_a_latency_are_of_the_latency_itself() -> None:
    """A latency of three quarters is 25 % shorter; the rate that belongs to it would be 33 % higher."""
    latency = [MetricPanel("Latency", "longer", "shorter", -1)]
    canvas = draw_forest(960, [row("a", math.log(0.75)), row("b", math.log(1.5))], latency)
    tips = ["".join(dot.itertext()) for dot in marks(canvas, "circle", "mark")]
    assert [tip.split(" (")[0] for tip in tips] == ["knob = a: 25\u00a0% shorter", "knob = b: 50\u00a0% longer"]


def test_absurd_intervals_do_not_squeeze_the_picture() -> None:
    canvas = draw_forest(960, [row("a", 0.5), row("b", -0.5, half=40.0)], PANELS)
    left, right = sorted(float(dot.get("cx", "")) for dot in marks(canvas, "circle", "mark"))
    assert right - left > 200
    assert "‹" in "".join(parse(canvas).itertext())


def test_sizes_split_multiples_of_the_preferred_size() -> None:
    # 4 KiB x 50, 8 KiB x 30, 12 KiB x 10, 16 KiB x 10: 50, 60, 30 and 40 of 180 units of 4 KiB.
    bins = size_bins({4096: 50, 8192: 30, 12288: 10, 16384: 10}, unit=8192)
    assert (bins[12].whole, bins[12].broken, bins[12].requests) == pytest.approx((0, 50 / 180, 0.5))
    assert (bins[13].whole, bins[13].broken, bins[13].requests) == pytest.approx((60 / 180, 30 / 180, 0.4))
    assert (bins[14].whole, bins[14].broken, bins[14].requests) == pytest.approx((40 / 180, 0, 0.1))


def test_preferred_size_is_marked_even_where_nothing_was_written() -> None:
    panels = [Sizes("default", {4096: 10}), Sizes("64 KiB", {65536: 10})]
    both = [SizeMark("write unit", 16384), SizeMark("preferred size", 1 << 20)]
    canvas = draw_sizes(400, panels, both)
    words = [str(text.text).replace("\u00a0", " ") for text in parse(canvas).iter(SVG + "text")]
    assert {"1 M", "write unit: 16 KiB", "preferred size: 1 MiB"} <= set(words)
    positions = {line.get("x1") for line in marks(canvas, "line", "preferred") if line.get("x1") == line.get("x2")}
    assert len(positions) == 2
    same = draw_sizes(400, panels, [SizeMark("write unit", 16384), SizeMark("preferred size", 16384)])
    assert "write unit and preferred size: 16 KiB" in "".join(parse(same).itertext()).replace("\u00a0", " ")


def test_bytes_and_requests_by_size_are_apart() -> None:
    canvas = draw_sizes(400, [Sizes("default", {4096: 90, 1 << 20: 10})], [])
    with_tips = [mark for look in ("rect", "circle") for mark in parse(canvas).iter(SVG + look) if len(mark)]
    heights = [float(mark.get("height", "")) for mark in with_tips if mark.tag == SVG + "rect"]
    tops = [float(mark.get("cy", "")) for mark in with_tips if mark.tag == SVG + "circle"]
    # 90 % of the requests have 4 KiB, and 3.4 % of the bytes.
    assert heights[0] / heights[1] == pytest.approx(90 * 4096 / (10 << 20), rel=0.05)
    assert tops[0] < tops[1]


def test_depth_bins_are_shares_of_busy_time() -> None:
    bins = depth_bins({0: 900, 1: 60, 2: 20, 7: 15, 400: 5})
    assert bins == pytest.approx({"1": 0.6, "2": 0.2, "3": 0, "4": 0, "5–8": 0.15, "9–16": 0, "17–32": 0, "≥ 33": 0.05})


def test_a_legend_shows_the_whole_part_where_a_bar_has_it() -> None:
    through = TimePart("flush", "wait wait-flush through", 50, "through another thread")
    bars = [TimeBar("default", "", [through]), TimeBar("off", "", [TimePart("flush", "wait wait-flush", 20)])]
    for shown, look in ((bars, "bar wait wait-flush"), (bars[:1], "bar wait wait-flush through")):
        assert next(parse(draw_times(400, shown)).iter(SVG + "rect")).get("class") == look


def test_no_two_spaces_of_a_tuner_look_alike() -> None:
    curves = [TuningCurve(f"top{count}", [1, 1.1], [[1, 1.1]]) for count in (1, 2, 3, 5, 10, 15, 20)]
    looks = [mark.get("class") for mark in parse(draw_tuning(880, curves, None)).iter(SVG + "rect")]
    assert len(looks) == len(set(looks)) == len(curves)


def test_timeline_shows_every_run_and_where_it_drifted() -> None:
    runs = [TimelineRun(1000.0 - 50 * position, position % 4 == 0, "ok", "12:00") for position in range(9)]
    runs.append(TimelineRun(None, False, "timeout", "12:10"))
    blocks = [TimelineBlock("sweep-0-0", "12:00", runs, "position", "it moves")]
    canvas = draw_timeline(960, blocks, 0.02)
    ticks = [
        [mark.get("d", "").count("V") for mark in marks(canvas, "path", look)]
        for look in ("tick-run", "tick-sentinel", "tick-failed")
    ]
    assert ticks == [[6], [3], [1]]
    heights = [float(dot.get("cy", "")) for dot in marks(canvas, "circle", "bad")]
    assert heights == sorted(heights)
    assert "drifts" in "".join(parse(canvas).itertext())


def test_timeline_of_many_blocks_stays_small() -> None:
    runs = [TimelineRun(1000.0, True, "ok", "12:00")] * 3
    blocks = [TimelineBlock(str(n), "", runs, "dropped" if n in (7, 4001) else "none", "") for n in range(5000)]
    drawn = choose_blocks(blocks)
    assert {"7", "4001"} <= {block.name for block in drawn}
    assert len(draw_timeline(960, drawn, 0.02).svg("many")) < 300_000
    assert len(choose_blocks([replace(block, treatment="dropped") for block in blocks])) <= 150
    assert choose_blocks(blocks[:100]) == blocks[:100]


@pytest.mark.parametrize(
    ("low", "high"), [(-0.004, 0.004), (-0.08, 0.05), (-0.5, 0.3), (-0.7, 3.4), (-9.0, 11.0), (0.0, 2.3)]
)
def test_fold_ticks_are_few_and_hold_the_default(low: float, high: float) -> None:
    ticks = fold_ticks(low, high, 6)
    assert (0.0, "1x") in ticks
    assert 1 <= len(ticks) <= 11
    assert all(low <= position <= high for position, _ in ticks)
    assert all(math.exp(position) == pytest.approx(float(text[:-1].replace(",", ""))) for position, text in ticks)


def test_ticks_are_round_numbers() -> None:
    assert linear_ticks(0, 9.2, 5) == [0, 2, 4, 6, 8]
    assert linear_ticks(3, 3) == [3]
    assert power_ticks(4096, 131072, 2) == [4096, 8192, 16384, 32768, 65536, 131072]


def test_scale_keeps_outliers_at_the_edge() -> None:
    scale = Scale(1, 100, 0, 200, log=True)
    assert [scale(value) for value in (0.1, 1, 10, 100, 1e9)] == pytest.approx([0, 0, 100, 200, 200])


def test_labels_move_apart_and_keep_their_order() -> None:
    moved = spread_labels([50, 52, 51, 10], 14, 0, 100)
    assert sorted(range(4), key=lambda index: moved[index]) == [3, 0, 2, 1]
    ordered = sorted(moved)
    assert all(after - before >= 14 - 1e-9 for before, after in pairwise(ordered))
    assert spread_labels([95, 96], 14, 0, 100) == pytest.approx([86, 100])


def test_canvas_escapes_words() -> None:
    canvas = Canvas(10, 10)
    canvas.text(0, 0, "<b> & 'c'", 'lo"ok')
    canvas.dot(1, 1, 1, "mark", "</title><script>")
    root = read_xml(canvas.svg('"said" <loud>'))
    assert root.get("aria-label") == '"said" <loud>'
    assert [element.tag.removeprefix(SVG) for element in root.iter()] == ["svg", "text", "circle", "title"]


def test_figure_files_hold_picture_and_numbers(tmp_path: Path) -> None:
    data = [{"knob": "a", "estimate": 0.5}, {"knob": "b, with comma", "low": -1}]
    figure = Figure("name", "Title", "What it shows.", lambda width: Canvas(width, 50), data)
    (path,) = write_figures([figure], tmp_path)
    assert read_xml(path.read_text()).get("width")
    with path.with_suffix(".csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [
            {"knob": "a", "estimate": "0.5", "low": ""},
            {"knob": "b, with comma", "estimate": "", "low": "-1"},
        ]


def test_figures_of_names_that_differ_in_signs_do_not_overwrite_each_other(tmp_path: Path) -> None:
    files = ["base/1.db", "base/1_db", "base/1-db", "base 1 db 2"]
    figures = [
        Figure(slug("trace", file), file, file, lambda width: Canvas(width, 50), [{"file": file}]) for file in files
    ]
    paths = write_figures(figures, tmp_path)
    assert [path.with_suffix(".csv").read_text().splitlines()[1] for path in paths] == files


def test_study_writes_a_file_per_figure(study: Path, specs: StudySpecs, tmp_path: Path) -> None:
    rendered = render_report(study, specs, tmp_path / "report.html", figures=tmp_path / "figures")
    pictures = sorted((tmp_path / "figures").glob("*.svg"))
    assert len(pictures) == rendered.figures
    for picture in pictures:
        assert read_xml(picture.read_text()).tag == SVG + "svg"
        assert picture.with_suffix(".csv").stat().st_size > 20
    with (tmp_path / "figures" / "effects-sqlite-slow-disk-ycsb-a.csv").open(newline="") as file:
        written = {
            (line["knob"], line["value"]): float(line["estimate"])
            for line in csv.DictReader(file)
            if line["metric"] == "throughput_ops"
        }
    with duckdb.connect(str(study), read_only=True) as connection:
        known = connection.execute(
            "SELECT knob, value, estimate FROM effects WHERE device = 'slow-disk' AND metric = 'throughput_ops'"
        ).fetchall()
    assert written == {(knob, value): estimate for knob, value, estimate in known}


def test_slug_is_safe_for_files() -> None:
    assert slug("Finding", 1, "../io_size", "shared buffers") == "finding-1-io-size-shared-buffers"


def palettes() -> list[dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", figure_style(), re.DOTALL)
    return [dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", block)) for block in blocks]


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_read_by_day_by_night_and_on_paper() -> None:
    """WCAG 2.2: 4.5 for text (1.4.3), 3 for marks (1.4.11)."""
    found = palettes()
    assert len(found) == 3
    for palette in found:
        for ground in ("paper", "ground", "soft"):
            for text in ("ink", "muted", "blue", "red", "green", "amber"):
                assert contrast(palette[text], palette[ground]) >= 4.5, (text, ground, palette)
            for mark in ("purple", "base"):
                assert contrast(palette[mark], palette[ground]) >= 3, (mark, ground, palette)


def test_texts_of_ticks_neither_touch_nor_end_outside() -> None:
    canvas = Canvas(200, 60)
    ticks = [(2.0, "0.01 ms"), (20.0, "0.02 ms"), (100.0, "1 ms"), (198.0, "100 ms")]
    draw_x_axis(canvas, Frame(0, 0, 200, 40), ticks, grid=True)
    texts = [(float(text.get("x", "")), text.text or "") for text in parse(canvas).iter(f"{SVG}text")]
    assert [text for _, text in texts] == ["0.01 ms", "1 ms", "100 ms"]
    edges = [(x - text_width(text) / 2, x + text_width(text) / 2) for x, text in texts]
    assert min(edges)[0] >= -0.1 and max(edges)[1] <= 200.1
    assert all(end <= start for (_, end), (start, _) in pairwise(edges))
    assert len([line for line in parse(canvas).iter(f"{SVG}line") if line.get("class") == "grid"]) == 4


def test_a_tail_has_the_percentile_and_the_median_of_its_finding() -> None:
    """The rule takes medians of logarithms; those of two runs are not halfway between them."""
    runs = [{"run_id": us, "latency_p95_us": us, "latency_p99_us": 9 * us, "watched": False} for us in (1000, 4000)]
    case = Case("sqlite", "disk", "load")
    figure = picture_tail(Comparison(case, "finding-1", [Setting("default", "base-bar", runs)]), 95)
    assert figure is not None and figure.title == "95th percentile of latency"
    assert "default: 2 ms in 2 runs" in plain(figure.description)


def test_an_interval_of_new_runs_is_said_to_be_one(
    study: Path, changed_study: Callable[..., Path], specs: StudySpecs
) -> None:
    """It need not hold the mean of the dots, which are runs of the sweep."""
    for database, is_said in ((study, False), (changed_study("UPDATE effects SET swept = estimate"), True)):
        with StudyData.open(database, specs) as data:
            captions = [figure.caption for figure in build_findings(data).figures if figure.title == "Throughput"]
        assert captions
        assert all(("as new pairs of runs show it" in caption) == is_said for caption in captions)
