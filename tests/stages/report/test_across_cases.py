"""Pictures across devices and of important points: tiles, ranks and bends."""

import math
import re
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pages import SVG, plain, read_xml

from knobscope.figures import (
    Figure,
    OrderPoint,
    RankLine,
    Tile,
    TileRow,
    draw_order,
    draw_ranks,
    draw_tiles,
)
from knobscope.specs import Case, StudySpecs
from knobscope.stages.report.sections.across_cases import effects_by_case, ranks_by_case
from knobscope.stages.report.sections.bends import bend_figures
from knobscope.stages.report.sections.grids import grid_figure
from knobscope.stages.report.sections.sequentiality import order_figures
from knobscope.study_data.rows import write_query
from knobscope.study_data.study import StudyData

Change = Callable[..., Path]


@pytest.fixture
def data(study: Path, specs: StudySpecs) -> Iterator[StudyData]:
    with StudyData.open(study, specs) as opened:
        yield opened


def draw(figure: Figure, width: float = 400) -> ElementTree.Element:
    return read_xml(figure.draw(width).svg(figure.description))


def looks(root: ElementTree.Element, tag: str, word: str) -> list[str]:
    return [str(mark.get("class")) for mark in root.iter(SVG + tag) if word in str(mark.get("class")).split()]


def test_effects_stand_side_by_side_and_turns_are_named(data: StudyData) -> None:
    (figure,) = effects_by_case(data)
    # The simulation makes pages of 64 KiB slower on flash and faster on the disk, and nothing else.
    assert "Faster on one device and slower on another: page_size = 64 KiB." in plain(figure.caption)
    tips = [plain(mark[0].text or "") for mark in draw(figure).iter(SVG + "rect") if len(mark)]
    assert len(tips) == len(figure.data) == 14
    assert [tip for tip in tips if re.match(r"fast-flash: (3[4-9]|40) % slower", tip)]
    assert [tip for tip in tips if re.match(r"slow-disk: (1\.[23]\d?x|[23]\d %) faster", tip)]


def test_tiles_are_darker_the_larger_the_change_and_plain_in_noise() -> None:
    usual = draw_changes(1.05, 1.2, 2, 9, 0.4)
    shown = [mark.get("class") for mark in usual.iter(SVG + "rect") if len(mark)]
    assert shown == [*(f"tile better s{strength}" for strength in (1, 2, 3, 4)), "tile worse s3", "tile unclear"]


def test_steps_of_colour_reach_large_effects() -> None:
    large = draw_changes(1.2, 4, 12, 42, 0.4)
    shown = [mark.get("class") for mark in large.iter(SVG + "rect") if len(mark)]
    assert shown[:4] == [f"tile better s{strength}" for strength in (1, 2, 3, 4)]
    assert "steps at 1.5x, 5x, 30x" in "".join(large.itertext())


def draw_changes(*ratios: float) -> ElementTree.Element:
    """Return a row of tiles with these changes, then one that is not clear, and none."""
    tiles = [Tile(math.log(ratio), "x", "tip") for ratio in ratios]
    row = TileRow("knob", "default 1", "2", [*tiles, Tile(3.0, "x", "tip", clear=False), None])
    return read_xml(draw_tiles(880, list("abcdefg"), [row]).svg("tiles"))


def test_ranks_that_drift_stand_out(changed_study: Change, specs: StudySpecs) -> None:
    database = changed_study(
        "UPDATE importance SET rank = CASE knob WHEN 'page_size' THEN 1 WHEN 'synchronous' THEN 3 ELSE rank END "
        "WHERE device = 'slow-disk'",
        "UPDATE rank_drift SET drifts = knob = 'page_size'",
    )
    with StudyData.open(database, specs) as data:
        (figure,) = ranks_by_case(data)
    root = draw(figure)
    assert looks(root, "path", "line-a") == ["curve line-a"]
    assert "the rank of page_size differs from one device to another" in figure.caption
    ends = [str(text.text) for text in root.iter(SVG + "text") if "page_size" in str(text.text)]
    assert ends == ["page_size 3", "1 page_size"]


def test_ranks_far_behind_end_at_the_edge() -> None:
    lines = [RankLine("first", [1, 40], [True, False], False), RankLine("never", [30, 50], [False, False], False)]
    canvas = draw_ranks(400, ["a", "b"], lines)
    words = "".join(read_xml(canvas.svg("ranks")).itertext())
    assert "first 1" in words
    assert "never" not in words
    assert canvas.height < 500


@pytest.mark.parametrize("kind", ["knee", "cliff"])
def test_both_sides_of_an_important_point_are_reported(data: StudyData, kind: str) -> None:
    case = Case("sqlite", "slow-disk", "ycsb-a")
    (figure,) = bend_figures(data, case, [{"knob": "wal_autocheckpoint", "type": kind, "value": "1000"}])
    # 10 pages are 0.55x of 1,000, and 10,000 are 1.02x; the disk has noise of 3 %.
    sides = re.findall(r"([\d,]+)[^\d]+(?:to ([\d,]+)[^\d]+: (.*?)|alone)\.", plain(figure.description))
    assert [side[0] for side in sides] == ["10", "1000"]
    assert bool(sides[0][1]) == (kind == "knee")  # a cliff leaves one value below
    root = draw(figure)
    assert looks(root, "path", "side") == ["side line-a", "side line-b"]
    assert len([mark for mark in root.iter(SVG + "circle") if len(mark)]) == 3


def test_a_point_of_words_or_of_too_few_values_has_no_curve(data: StudyData) -> None:
    case = Case("sqlite", "slow-disk", "ycsb-a")
    assert bend_figures(data, case, [{"knob": "mmap_size", "type": "knee", "value": "77"}]) == []


def test_order_is_plotted_against_cpu_time(data: StudyData) -> None:
    (flash, disk) = order_figures(data)
    # Checkpoints every 10 pages halve the sequential share from 62 % to 31 %, on both devices.
    for figure in (flash, disk):
        assert "default configuration: 62 % in order" in plain(figure.description)
        assert "wal_autocheckpoint = 10 pages: 31 % in order" in plain(figure.description)
        root = draw(figure)
        dots = {mark[0].text or "": mark for mark in root.iter(SVG + "circle") if len(mark)}
        assert len(dots) == len(figure.data) + 1
        (few,) = (
            mark for tip, mark in dots.items() if tip.startswith("wal_autocheckpoint") and "10 pages" in plain(tip)
        )
        (default,) = (mark for tip, mark in dots.items() if tip.startswith("default"))
        # Less in order is further left; it is slower, and no cheaper: CPU time is higher up.
        assert float(few.get("cx", "")) < float(default.get("cx", ""))
        assert float(few.get("cy", "")) < float(default.get("cy", ""))
        assert few.get("class") == "mark worse"
    assert "as fast as sequential" not in plain(flash.caption)


def test_the_device_is_named_by_the_operation_that_is_drawn(changed_study: Change, specs: StudySpecs) -> None:
    """A picture of writes named the gap of reads. What was hard to measure is no fact."""
    database = changed_study(
        "INSERT INTO device_property (device, property, value, confidence) "
        "VALUES ('fast-flash', 'random_to_sequential_writes_depth_1', 0.5, 'low'), "
        "('fast-flash', 'random_to_sequential_reads_depth_1', 0.7, 'high')"
    )
    with StudyData.open(database, specs) as data:
        flash, _ = order_figures(data)
    assert "random writes are 0.5x as fast as sequential ones, measured with low confidence." in plain(flash.caption)


def test_order_is_that_of_what_moves_more_bytes(data: StudyData, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all("Sequential writes" in figure.caption for figure in order_figures(data))
    monkeypatch.setattr("knobscope.stages.report.sections.sequentiality._by_bytes", lambda *_: ["read", "write"])
    said = [figure.caption for figure in order_figures(data)]
    assert said
    assert all("Sequential reads" in caption for caption in said)


def test_numbers_of_dots_cover_no_dot() -> None:
    points = [OrderPoint(f"knob = {index}", 0.5 + index / 1000, 100.0 + index, "unclear") for index in range(6)]
    root = read_xml(draw_order(400, points, "sequential share").svg("order"))
    numbers = [
        text for text in root.iter(SVG + "text") if text.get("text-anchor") == "middle" and str(text.text) in "123456"
    ]
    assert len(numbers) == 6
    spots = [(float(text.get("x", "")), float(text.get("y", ""))) for text in numbers]
    assert all(abs(a[0] - b[0]) > 10 or abs(a[1] - b[1]) > 12 for a, b in combinations(spots, 2))


def test_the_first_knobs_meet_in_a_grid(data: StudyData) -> None:
    case = Case("sqlite", "slow-disk", "ycsb-a")
    figure = grid_figure(data, case, _ranking("synchronous", "page_size"))
    assert figure is not None
    runs = data.connection.execute(
        "SELECT count(*) FROM runs WHERE device = 'slow-disk' AND phase = 'screen' AND status = 'ok'"
    ).fetchone()
    assert runs and sum(row["runs"] for row in figure.data) == runs[0]
    root = draw(figure)
    tiles = [mark for mark in root.iter(SVG + "rect") if len(mark)]
    assert len(tiles) == len(figure.data)
    assert [mark.get("class") for mark in tiles if "framed" in str(mark.get("class"))] != []
    # Without synchronous writes the disk is 31 times as fast, whatever the page size does.
    for row in figure.data:
        if row["across_value"] == "off":
            assert row["estimate"] > math.log(8)


def test_a_third_knob_makes_tiles_of_tiles_where_runs_suffice(changed_study: Change, specs: StudySpecs) -> None:
    database = changed_study("UPDATE runs SET phase = 'screen'")
    case = Case("sqlite", "slow-disk", "ycsb-a")
    with StudyData.open(database, specs) as data:
        # Some 40 runs: more than 3 x 2 x 3 tiles, fewer than 3 x 4 x 4.
        few = grid_figure(data, case, _ranking("synchronous", "temp_store", "wal_autocheckpoint"))
        many = grid_figure(data, case, _ranking("synchronous", "page_size", "cache_size"))
    assert few is not None and many is not None
    assert {row["outer_value"] for row in few.data} == {"10", "1000", "10000"}
    words = plain("".join(draw(few).itertext()))
    assert all(f"wal_autocheckpoint = {value} pages" in words for value in (10, 1000, 10000))
    assert {row["outer_value"] for row in many.data} == {""}


def _ranking(*knobs: str) -> list[dict[str, object]]:
    return [{"knob": knob, "rank": rank} for rank, knob in enumerate(knobs, 1)]


def test_one_knob_makes_no_grid(data: StudyData) -> None:
    assert grid_figure(data, Case("sqlite", "slow-disk", "ycsb-a"), _ranking("synchronous")) is None


def test_a_query_with_its_parameters_gives_the_same_rows(data: StudyData) -> None:
    rows = data.rows(
        "SELECT run_id, ? AS word, ? AS nothing FROM runs WHERE list_contains(?, device) AND throughput_ops > ?",
        "it's", None, ["slow-disk", "o'clock"], 1.5,
    )  # fmt: skip
    again = data.connection.execute(rows.query).fetchall()
    assert again == [tuple(row.values()) for row in rows]
    assert len(again) > 10


def test_a_query_needs_all_its_parameters() -> None:
    with pytest.raises(ValueError, match="zip"):
        write_query("SELECT ?, ?", [1])
