"""Section "Where the I/O goes": sentences, lines and pictures from table `files`, and points from traces."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest
from pages import SVG, Page, render
from simulated_study import write_trace

from knobscope.figures.traffic import FileSizes, PointGroup, PointPanel, draw_file_sizes, draw_scatter
from knobscope.specs import StudySpecs
from knobscope.stages.report.sections.traffic import SHORT_NAMES


@pytest.fixture(scope="module")
def traced_page(study: Path, specs: StudySpecs, tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("traced")
    with duckdb.connect(str(study), read_only=True) as connection:
        traced = connection.execute(
            "SELECT arg_min(run_id, started_at) FROM runs JOIN knob_values USING (config_id) "
            "WHERE device = 'fast-flash' AND status = 'ok' AND phase = 'sweep' AND knob = 'page_size' "
            "AND (is_sentinel OR value IN ('1024', '65536')) GROUP BY value"
        ).fetchall()
    assert len(traced) == 3
    for (run_id,) in traced:
        write_trace(folder / "traces", run_id)
    return render(study, specs, folder, traces=folder / "traces")


def test_the_journal_has_its_sentence(traced_page: Page) -> None:
    text = traced_page.section("files")
    assert "61 % of the writes came from the file system's journal (61 % of the bytes written)." in text
    assert "Of the bytes written, 30 % went to ycsb.db." in text
    assert "Of the bytes read, 100 % came from ycsb.db." in text


def test_files_come_with_role_and_order(traced_page: Page) -> None:
    text = traced_page.section("files")
    assert re.search(r"log fileslogwrite[\d,]+ [KM]iB9 %sequential, 93 % in order", text)
    assert re.search(r"ycsb\.dbdatawrite[\d,.]+ MiB30 %random, 4 % in order", text)
    assert "ycsb.dbdataread9003.52 MiB100 %–" in text  # their addresses told no order


def _pictures(page: Page, words: str) -> list[ElementTree.Element]:
    """Return the pictures whose description has these words."""
    return [svg for svg in page.root.iter(SVG + "svg") if words in (svg.get("aria-label") or "").replace("\u00a0", " ")]


def test_a_trace_becomes_points_over_time(traced_page: Page) -> None:
    (with_file,) = _pictures(
        traced_page, "1,600 requests of ycsb.db over the seconds of a run, by offset in the file: "
    )
    (without,) = _pictures(traced_page, "over the seconds of a run, by address on the device, above the lowest: ")
    for picture in (with_file, without):
        paths = [path for path in picture.iter(SVG + "path") if "points" in str(path.get("class"))]
        assert [path.get("class") for path in paths] == ["points line-a", "points line-b"]
        assert all(0 < (path.get("d") or "").count("M") <= 3000 for path in paths)


def test_ways_to_load_the_data_are_panels_of_one_picture(traced_page: Page) -> None:
    wide, narrow = _pictures(traced_page, "a panel for each way to load the data: ")
    for picture in (wide, narrow):
        labels = [label.text or "" for label in picture.iter(SVG + "text") if label.get("class") == "label"]
        assert [label.replace("\u00a0", " ") for label in labels] == [
            "page_size = 4 KiB (default)",
            "page_size = 1 KiB",
            "page_size = 64 KiB",
            "seconds of the run",
        ]
        assert len([path for path in picture.iter(SVG + "path") if path.get("class") == "points line-a"]) == 3


def test_threads_of_a_trace_are_distinguished(traced_page: Page) -> None:
    (picture,) = _pictures(traced_page, "by offset in the file, by thread: kworker/uN:N, sqlite-N.")
    # Every fourth request is the DBMS's: the busier thread comes first.
    drawn = {path.get("class"): (path.get("d") or "").count("M") for path in picture.iter(SVG + "path")}
    assert drawn["points line-a"] > drawn["points line-b"] > 0


def test_depth_of_hardware_queues_is_time_in_flight(traced_page: Page) -> None:
    # 2,000 requests in 5 s to two queues in turn: 200 a second of 90 us, and 200 a second of 12.5 ms.
    (picture,) = _pictures(traced_page, "queue 0: 0.018 on average; queue 1: 2.5 on average")
    cells = [mark for mark in picture.iter(SVG + "rect") if str(mark.get("class")).startswith("depth") and len(mark)]
    assert len(cells) == 160
    assert {mark.get("class") for mark in cells} == {"depth s1", "depth s4"}


def test_locality_is_one_picture_with_a_sentence(traced_page: Page) -> None:
    (picture,) = _pictures(traced_page, "Bytes read from the device by size of an additional cache")
    assert len([dot for dot in picture.iter(SVG + "circle") if len(dot)]) > 5
    text = traced_page.section("files")
    assert "What a larger cache would save" in text
    assert re.search(r"80 % of the requests to a file go to \d+ % of ycsb.db\. Measured in", text)
    assert re.search(
        r"(An LRU cache of .* would save|would save nothing\.).*Measured in one run with the default", text
    )


def test_submitters_are_named_without_their_numbers(traced_page: Page) -> None:
    pictures = _pictures(traced_page, "by submitting thread: sqlite-N ")
    assert len(pictures) == 2
    assert "2 names" in "".join(pictures[0].itertext())


def test_order_of_calls_is_next_to_that_of_the_device(traced_page: Page) -> None:
    (picture, _) = _pictures(traced_page, "ycsb.db writes: system calls 95 %, device 4 %")
    widths = [float(bar.get("width", "")) for bar in picture.iter(SVG + "rect") if len(bar)]
    assert widths[0] / widths[1] == pytest.approx(0.95 / 0.04, rel=0.05)


def test_without_a_trace_there_are_no_points(page: Page) -> None:
    assert 'class="points' not in page.source


def test_without_files_the_section_says_why(render_changed: Callable[..., Page]) -> None:
    page = render_changed("DELETE FROM files")
    assert "that requires BPF" in page.section("files")


def test_names_from_files_are_escaped(render_changed: Callable[..., Page]) -> None:
    page = render_changed("UPDATE files SET file = '<b>&\"', role = 'data'")
    assert '<b>&"' in page.section("files")


def test_bars_of_files_keep_inside_the_picture() -> None:
    names = ["t", "base/5/16384_a_very_long_name_of_a_file_that_nobody_can_print_in_one_line"]
    canvas = draw_file_sizes(400, [FileSizes(name, "data", {"read": 5e9, "write": 100.0}) for name in names])
    root = ElementTree.fromstring(canvas.svg("Bytes by table, for a test."))  # noqa: S314 - we wrote it
    for mark in root.iter(SVG + "rect"):
        assert 0 <= float(mark.get("x", 0)) <= float(mark.get("x", 0)) + float(mark.get("width", 0)) <= 400


def test_files_of_the_file_system_are_named_in_full() -> None:
    canvas = draw_file_sizes(400, [FileSizes(name, "", {"write": 100.0}) for name in SHORT_NAMES.values()])
    assert all(f">{name}<" in canvas.svg("Bytes by table, for a test.") for name in SHORT_NAMES.values())


def test_one_request_at_the_start_of_a_file_can_be_drawn() -> None:
    assert "M" in draw_scatter(
        400, [PointPanel("offset", [PointGroup("reads", "line-a", [(0.0, 0.0)])], 0.0)], 0.0
    ).svg("One request, for a test.")
