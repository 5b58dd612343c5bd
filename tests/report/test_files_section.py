"""Section "Where the I/O goes": sentences, lines and pictures from table `files`, and points from traces."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest
from pages import SVG, Page, render
from simulated_study import write_trace

from knobscope.report.figures.files import FileSizes, draw_file_sizes, draw_scatter
from knobscope.specs import StudySpecs


@pytest.fixture(scope="module")
def traced_page(study: Path, specs: StudySpecs, tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("traced")
    with duckdb.connect(str(study), read_only=True) as connection:
        found = connection.execute(
            "SELECT run_id FROM runs WHERE device = 'fast-flash' AND is_sentinel AND status = 'ok' ORDER BY started_at"
        ).fetchone()
    assert found
    write_trace(folder / "traces", found[0])
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


def test_a_trace_becomes_points_over_time(traced_page: Page) -> None:
    pictures = [svg for svg in traced_page.root.iter(SVG + "svg") if svg.find(f"{SVG}path[@class='points line-a']")
                is not None]  # fmt: skip
    assert len(pictures) == 2  # ycsb.db by its offsets, and what has no file by its addresses
    assert "1,600 requests of ycsb.db" in (pictures[0].get("aria-label") or "").replace("\u00a0", " ")
    assert "by address on the device" in (pictures[1].get("aria-label") or "")
    for picture in pictures:
        for path in picture.iter(SVG + "path"):
            assert (path.get("d") or "").count("M") <= 3000


def test_without_a_trace_there_are_no_points(study: Path, specs: StudySpecs, tmp_path: Path) -> None:
    assert 'class="points' not in render(study, specs, tmp_path).source


def test_without_files_the_section_says_why(
    changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path
) -> None:
    page = render(changed_study("DELETE FROM files"), specs, tmp_path)
    assert "that takes BPF" in page.section("files")


def test_names_from_files_are_escaped(changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path) -> None:
    page = render(changed_study("UPDATE files SET file = '<b>&\"', role = 'data'"), specs, tmp_path)
    assert '<b>&"' in page.section("files")


def test_bars_of_files_keep_inside_the_picture() -> None:
    names = ["t", "base/5/16384_a_very_long_name_of_a_file_that_nobody_can_print_in_one_line"]
    canvas = draw_file_sizes(400, [FileSizes(name, "data", {"read": 5e9, "write": 100.0}) for name in names])
    root = ElementTree.fromstring(canvas.svg("Bytes by table, for a test."))  # noqa: S314 - we wrote it
    for mark in root.iter(SVG + "rect"):
        assert 0 <= float(mark.get("x", 0)) <= float(mark.get("x", 0)) + float(mark.get("width", 0)) <= 400


def test_one_request_at_the_start_of_a_file_can_be_drawn() -> None:
    assert "M" in draw_scatter(400, {"read": [(0.0, 0.0)]}, 0.0, 0.0, "offset").svg("One request, for a test.")
