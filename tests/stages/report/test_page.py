import base64
import csv
import hashlib
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from pages import SVG, XHTML, Page, render, words_of

from knobscope.errors import UserError
from knobscope.figures import measure_intervals, with_pauses
from knobscope.specs import StudySpecs
from knobscope.stages.report import render_report
from knobscope.stages.report.page import make_environment
from knobscope.stages.report.sections.devices import build_devices
from knobscope.stages.report.sections.ranking import build_ranking
from knobscope.study_data.study import StudyData

Change = Callable[..., Path]
Render = Callable[..., Page]  # as fixture `render_changed`


def test_page_answers_in_its_first_sentence(page: Page) -> None:
    (answer,) = page.all("div", "answer")
    first = words_of(answer[0])
    # The simulation makes `off` 31 times faster on the disk.
    match = re.fullmatch(
        r"synchronous matters most: off is (\d+)x faster than full \(sqlite on slow-disk, ycsb-a\)"
        r", but risks committed data\.",
        first,
    )
    assert match, first
    assert abs(int(match[1]) - 31) <= 4


def test_a_property_of_a_device_has_a_name_of_the_field(changed_study: Change, specs: StudySpecs) -> None:
    changed = changed_study(
        "INSERT INTO device_property (device, property, value, unit, confidence, because) "
        "SELECT DISTINCT device, 'reads_beside_writes', 2.7, 'ratio', 'high', 'medians' FROM device_profile"
    )
    with StudyData.open(changed, specs) as data:
        properties = [device.properties for device in build_devices(data).devices]
    assert any('<td>Read latency during writes</td><td class="number">2.7x</td>' in table for table in properties)


def test_page_says_how_well_the_model_predicts(page: Page) -> None:
    said = " ".join(page.text.split())
    assert re.search(
        r"Model ?0\.95\d? ?R² of the screening model on runs that it has not seen \(0\.93\d? in the worst split\)", said
    )


def test_page_tells_what_the_model_does_not_predict(page: Page) -> None:
    told = page.text
    assert "wal_autocheckpoint = 100 pages, page_size = 64 KiB, mmap_size = 0 B120 ops/s300 ops/s2.5x too high" in told
    assert "x too low" not in told  # what is off by less than a tenth is not told


def test_page_tells_what_setting_a_knob_gains_compared_with_what_was_measured(page: Page) -> None:
    told = page.section("ranking")
    assert re.search(r"page_size ?3 ?64 KiB ?25 % faster \(16 % to 35 %\) ?2\d % faster \(95 % interval", told)
    assert re.search(r"wal_autocheckpoint ?2 ?10,?000 pages ?22 % faster \(12 % to 34 %\)", told)
    assert "The model sees no clear gain from 1 other knob." in told
    assert "two halves of the runs agree" not in told  # of the first 5 knobs, where there are 6 or fewer


def test_an_effect_next_to_a_gain_is_clear_by_the_thresholds_of_the_study(
    changed_study: Change, specs: StudySpecs
) -> None:
    with StudyData.open(changed_study("UPDATE effects SET q_value = 0.5"), specs) as data:
        parts = [case.tunability for case in build_ranking(data).cases if case.tunability is not None]
    last_cells = {text for part in parts for text in re.findall(r"<td>([^<]*)</td></tr>", part.gains)}
    told = last_cells - {"not measured alone"}
    assert told
    assert all(text.startswith("no clear effect (95") for text in told), told


def test_page_names_the_strongest_safe_knob(page: Page) -> None:
    safe = "Among settings that put committed data at no additional risk, the largest effect is that of "
    assert f"{safe}wal_autocheckpoint: 10 pages is 4" in page.text


def test_every_finding_appears(page: Page, study: Path) -> None:
    with duckdb.connect(str(study), read_only=True) as connection:
        findings = connection.execute(
            "SELECT verdict, sentence FROM findings "
            "WHERE coalesce(evidence ->> 'obstacle', '') NOT IN ('alone', 'no_calls', 'no_unit')"
        ).fetchall()
    assert {verdict for verdict, _ in findings} >= {"mismatch", "none"}
    findings_text = page.section("findings")
    # Where several rules find nothing to explain, a line says the effect, and not what each of them looked at.
    texts = [sentence.partition("; ")[0] if verdict == "none" else sentence for verdict, sentence in findings]
    assert [text for text in texts if " ".join(text.replace("`", "").split()) not in findings_text] == []


def test_questions_that_the_design_does_not_ask_are_one_line(page: Page) -> None:
    text = page.section("findings")
    assert "Cannot check sqlite on fast-flash with ycsb-a against another DBMS" not in text
    assert "leaves some rules nothing to judge. To use them, add " in text
    assert "a second DBMS (cross_check)" in text


def test_confirmed_and_refuted_causes_are_distinguished(page: Page) -> None:
    text = page.section("findings")
    assert "✓ confirmed" in text
    assert "⊘ refuted 1 whose effect or cause an experiment refuted" in text
    assert "the cause lies elsewhere" in text
    assert text.count("⊘ 1") == 1  # in the table of all verdicts, where it is no mismatch
    assert "experiments refuted the effect or its cause for 1 finding" in page.text
    assert "does 1.9x as many bytes per second" in text


def test_mismatches_have_pictures(page: Page) -> None:
    cards = page.all("article", "card")
    assert cards
    assert all(list(card.iter(SVG + "svg")) for card in cards)


def test_every_failure_appears_with_its_words(page: Page) -> None:
    runs = page.section("runs")
    for status in ("failed_start", "rejected_value", "timeout", "failed_run", "invalid"):
        assert f"✗ {status}" in runs
    assert "FATAL: cannot map 64 GiB" in runs
    assert "not in force: cache_size=8000 reads back 2000" in runs
    assert "The server left no log." in runs


def test_failures_are_counted(page: Page) -> None:
    items = ["".join(item.itertext()) for item in page.all("li") if str(item.get("class")).startswith("status-")]
    counts = [int(text.split()[0]) for text in items]
    assert counts == [80, 2, 2, 2, 2, 2]


def test_drift_is_reported(page: Page) -> None:
    assert "sweep-0-1 drifted and was corrected for it" in page.section("runs")


def test_page_loads_nothing_from_elsewhere(page: Page) -> None:
    for element in page.root.iter():
        for name in ("src", "srcset", "data", "action", "poster"):
            assert element.get(name) is None, f"{element.tag} has {name}"
        href = element.get("href") or element.get("{http://www.w3.org/1999/xlink}href") or "#"
        holds_its_data = element.get("download") and href.startswith("data:text/csv;base64,")
        assert href.startswith("#") or holds_its_data, href
    assert not list(page.root.iter(XHTML + "link"))
    style = "".join(element.text or "" for element in page.all("style"))
    assert "url(" not in style
    assert "@import" not in style
    assert set(re.findall(r"https?://[^\s\"<]+", page.source)) == {
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/2000/svg",
    }


def test_pictures_come_with_their_data_and_the_query_that_gives_it_again(page: Page, study: Path) -> None:
    checked = 0
    for figure in page.root.iter(XHTML + "figure"):
        (link,) = (element for element in figure.iter(XHTML + "a") if element.get("download"))
        told = base64.b64decode(str(link.get("href")).partition(",")[2]).decode()
        header, *rows = csv.reader(io.StringIO(told))
        assert header and rows
        queries = list(figure.iter(XHTML + "pre"))
        if queries and str(link.get("download")).startswith(("effects-by", "ranks-by", "submitters", "order-")):
            with duckdb.connect(str(study), read_only=True) as connection:
                assert len(connection.execute(str(queries[0].text)).fetchall()) == len(rows)
            checked += 1
    assert checked == 8  # effects and ranks once; submitters, order, and what it costs on both devices


def test_ids_are_unique_and_links_arrive(page: Page) -> None:
    ids = [element.get("id") for element in page.root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert {str(link.get("href"))[1:] for link in page.all("a") if not link.get("download")} <= set(ids)


def test_every_picture_speaks(page: Page) -> None:
    pictures = list(page.root.iter(SVG + "svg"))
    assert len(pictures) > 30
    assert all(picture.get("role") == "img" and len(picture.get("aria-label") or "") > 20 for picture in pictures)


def test_no_number_of_a_picture_is_missing(page: Page) -> None:
    for picture in page.root.iter(SVG + "svg"):
        for mark in picture.iter():
            wrong = [name for name, value in mark.items() if re.search(r"\b(nan|inf)\b", value)]
            assert not wrong, (picture.get("aria-label"), mark.tag, wrong)


def test_page_is_small(page: Page) -> None:
    assert len(page.source.encode()) < 1_000_000


def test_database_is_only_read(study: Path, specs: StudySpecs, tmp_path: Path) -> None:
    before = hashlib.sha256(study.read_bytes()).digest()
    render(study, specs, tmp_path)
    assert hashlib.sha256(study.read_bytes()).digest() == before


def test_hostile_words_stay_words(changed_study: Change, specs: StudySpecs, tmp_path: Path) -> None:
    hostile = "</pre></title></svg><script>alert(1)</script> & \"quoted\" 'words' <b>"
    database = changed_study(
        "SET VARIABLE hostile = ?",
        "UPDATE runs SET log_tail = getvariable('hostile'), reason = getvariable('hostile') WHERE status <> 'ok'",
        "UPDATE findings SET sentence = getvariable('hostile'), confirmation = getvariable('hostile')",
        "UPDATE findings SET evidence = to_json({obstacle: getvariable('hostile'), word: getvariable('hostile')})",
        "UPDATE knob_values SET value = getvariable('hostile') WHERE knob = 'temp_store' AND value = 'memory'",
        "UPDATE effects SET baseline = getvariable('hostile'), value = value || getvariable('hostile')",
        "UPDATE fits SET reason = getvariable('hostile')",
        "UPDATE device_profile SET filesystem = getvariable('hostile')",
        parameters=[hostile],
    )
    page = render(database, specs, tmp_path)  # with its pictures
    assert len(page.all("script")) == 1
    assert not page.all("b")
    assert " ".join(hostile.split()) in page.section("runs")
    assert " ".join(hostile.split()) in page.section("findings")


def test_empty_study_says_why_everything_is_empty(empty_study: Path, specs: StudySpecs, tmp_path: Path) -> None:
    page = render(empty_study, specs, tmp_path)
    for section, words in {
        "findings": "There is no successful run that changes one knob alone",
        "effects": "There is no successful run that changes one knob alone",
        "ranking": "The study has no screening runs",
        "devices": "knobscope characterise measures them",
        "runs": "Nothing has been measured yet",
    }.items():
        assert words in page.section(section)
    assert not list(page.root.iter(SVG + "svg"))


def test_without_bpf_the_page_says_what_is_missing(render_changed: Render) -> None:
    tables = ("io_profile", "io_sizes", "queue_depth", "io_latency", "io_series")
    page = render_changed("UPDATE runs SET monitor = 'procfs'", *(f"DELETE FROM {name}" for name in tables))  # noqa: S608
    assert "the monitor fell back to procfs" in page.section("runs")
    assert "Sizes of writes" not in page.text
    assert "Throughput" in page.section("findings")


def test_a_report_says_that_the_study_requested_procfs(render_changed: Render, specs: StudySpecs) -> None:
    asked = specs.study.model_copy(update={"monitor": "procfs"})
    page = render_changed("UPDATE runs SET monitor = 'procfs'", of=replace(specs, study=asked))
    assert "the study uses the procfs monitor" in page.section("runs")


def test_effects_without_interval_are_shown_as_such(changed_study: Change, specs: StudySpecs, tmp_path: Path) -> None:
    database = changed_study("UPDATE effects SET low = NULL, high = NULL, q_value = NULL, noise = 'nan'::DOUBLE")
    page = render(database, specs, tmp_path)  # with its pictures
    assert "no interval" in page.section("effects")
    assert "No effect of a knob can be told from noise: none has an interval" in page.text


def test_runs_that_all_failed_still_make_a_page(render_changed: Render) -> None:
    page = render_changed(
        "UPDATE runs SET status = 'failed_start', reason = 'no disk left', throughput_ops = NULL, monitor = NULL",
        "DELETE FROM effects",
        "DELETE FROM findings",
        "DELETE FROM blocks",
    )
    assert "90 of 90 runs gave no result" in page.text
    assert "no run of the default configuration succeeded" in page.section("runs")
    assert "no disk left" in page.section("runs")


def test_insufficient_verdicts_appear_with_their_reason(render_changed: Render) -> None:
    page = render_changed(
        "DELETE FROM findings WHERE verdict = 'insufficient'",
        "UPDATE findings SET verdict = 'insufficient', sentence = 'Cannot be judged: one block only.', penalty = NULL "
        "WHERE rule = 'intuition'",
    )
    example = r"intuition for synchronous = off \(\d+x faster; sqlite · slow-disk · ycsb-a\)\."
    assert re.search(f"; 10 questions could not be judged, such as {example}", page.text)
    assert page.section("findings").count("Cannot be judged: one block only.") == 10


def test_the_example_of_what_could_not_be_judged_is_a_knob(render_changed: Render, study: Path) -> None:
    page = render_changed(
        "UPDATE findings SET verdict = 'insufficient', penalty = NULL, sentence = CASE WHEN knob IS NULL "
        "THEN 'One DBMS only.' ELSE 'The runs differ too much.' END"
    )
    with duckdb.connect(str(study), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM findings WHERE knob IS NULL").fetchall() != [(0,)]
    assert "for example: The runs differ too much." in page.text


@pytest.mark.parametrize(("op", "other"), [("read", "write"), ("write", "read")])
def test_the_example_query_counts_what_the_runs_mostly_did(render_changed: Render, op: str, other: str) -> None:
    page = render_changed(f"UPDATE io_profile SET requests = 0 WHERE op = '{other}'")  # noqa: S608
    assert f"AS {op}s_per_op" in page.text and f"p.op = '{op}'" in page.text


def test_findings_are_sorted_by_their_effect_and_not_by_its_words(render_changed: Render) -> None:
    """As text, "19 % faster" comes before "4.7x slower", and what is not clear between them."""
    page = render_changed(
        "DELETE FROM findings WHERE rule <> 'intuition'",
        "UPDATE findings SET verdict = 'none', penalty = NULL, effect = 0.19, effect_low = 0.1, effect_high = 0.3",
        "UPDATE findings SET effect = -0.787, effect_low = -0.8, effect_high = -0.77 WHERE knob = 'page_size'",
        "UPDATE findings SET effect = 0.5, effect_low = -0.1, effect_high = 1.5 WHERE value = 'normal'",
    )
    (table,) = (one for one in page.all("table") if "judged" in (one.get("class") or ""))
    cells = [cell for cell in table.iter(f"{XHTML}td") if cell.get("data-order") is not None]
    in_order = sorted((float(cell.attrib["data-order"]), (cell.text or "").replace("\u00a0", " ")) for cell in cells)
    assert list(dict.fromkeys(words for _, words in in_order)) == ["4.7x slower", "no clear effect", "19 % faster"]
    assert ".dataset.order ??" in page.source  # what a click on the heading sorts by


def test_tables_and_columns_of_an_older_study_may_be_missing(render_changed: Render) -> None:
    older = ["DROP TABLE blocks", "DROP TABLE io_series", "ALTER TABLE runs DROP COLUMN client_host"]
    page = render_changed(*older, "ALTER TABLE effects DROP COLUMN beside")
    assert "synchronous matters most" in page.text


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "does not exist"), (b"no database", "not a valid DuckDB database file")],
)
def test_what_is_no_database_is_refused(content: bytes | None, message: str, specs: StudySpecs, tmp_path: Path) -> None:
    database = tmp_path / "study.duckdb"
    if content is not None:
        database.write_bytes(content)
    with pytest.raises(UserError, match=message):
        render_report(database, specs, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_database_of_something_else_is_refused(specs: StudySpecs, tmp_path: Path) -> None:
    database = tmp_path / "other.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE cooking (recipe VARCHAR)")
    with pytest.raises(UserError, match="no table `runs`"):
        render_report(database, specs, tmp_path / "report.html")


def test_origins_add_up_even_where_foreign_requests_are_counted_apart(render_changed: Render) -> None:
    page = render_changed(
        "UPDATE io_profile SET own_requests = 30, inode_requests = 20, journal_requests = 10, flush_requests = 0, "
        "foreign_requests = 40 WHERE op = 'write'"
    )
    rows = [list(row) for row in page.all("tr") if row[0].text == "write"]
    assert rows
    shares = [["".join(cell.itertext()).replace("\u00a0", " ") for cell in row[-5:]] for row in rows]
    assert shares == [["30 %", "20 %", "10 %", "0 %", "40 %"]] * len(rows)


def test_pauses_of_a_series_are_drawn_as_zero() -> None:
    points = [(0.1, 5.0), (0.2, 5.0), (0.6, 4.0), (0.7, 4.0)]
    step, _ = measure_intervals([time for time, _ in points])
    assert [value for _, value in with_pauses(points, step, 0.72)] == [5.0, 5.0, 0.0, 0.0, 4.0, 4.0]


def test_a_series_reaches_from_the_start_of_the_window_to_its_end() -> None:
    assert with_pauses([(0.5, 3.0)], 0.1, 1.04) == [
        *(pytest.approx(point) for point in ((0.1, 0.0), (0.4, 0.0), (0.5, 3.0), (0.6, 0.0), (1.04, 0.0)))
    ]
    assert with_pauses([(0.1, 3.0)], 0.1, 0.18)[1:] == [(0.18, 0.0), (0.18, 0.0)], "the last interval is shorter"


def test_a_short_interval_makes_no_pause_of_the_others() -> None:
    points = [(0.1, 5.0), (0.2, 5.0), (0.3, 4.0), (0.36, 3.0)]
    step, lengths = measure_intervals([time for time, _ in points])
    assert with_pauses(points, step, 0.36) == points
    assert list(lengths.values()) == pytest.approx([0.1, 0.1, 0.1, 0.06])


def test_effects_with_another_change_name_it_everywhere(
    changed_study: Change, specs: StudySpecs, tmp_path: Path
) -> None:
    database = changed_study("""UPDATE effects SET beside = '{"page_size":"1024"}' WHERE knob = 'wal_autocheckpoint'""")
    page = render(database, specs, tmp_path)  # with its pictures
    assert re.search(r"10 pages is 4.{1,60} with page_size = 1 KiB", page.text)
    figures = page.section("effects")
    assert "default 1000 pages with page_size = 1 KiB" in figures
    assert "default 4 KiB with" not in figures


def test_a_loss_above_one_is_explained(page: Page) -> None:
    assert "the model with shuffled values predicts worse than the mean of all runs would" in page.section("ranking")


def test_backticks_of_a_sentence_are_code_on_the_page() -> None:
    """The same sentence is printed in terminals, where they stay."""
    sentence = "Watching tells (`watch: [waits]`); below 5 ms `a < b`, a lone ` stays on 2026-11-30 14:33."
    shown = make_environment("knobscope.stages.report").from_string("{{ text | prose }}").render(text=sentence)
    assert shown == (
        "Watching tells (<code>watch: [waits]</code>); below 5\u00a0ms <code>a &lt; b</code>, a lone ` stays on "
        '<span class="whole">2026-11-30 14:33</span>.'
    )


def test_no_line_of_a_tile_ends_within_a_name() -> None:
    text = "median of sqlite · nvme-2 · ycsb-a & <b>"
    shown = make_environment("knobscope.stages.report").from_string("{{ text | whole }}").render(text=text)
    names = [f'<span class="whole">{name}</span>' for name in ("nvme-2", "ycsb-a")]
    assert shown == "median of sqlite · {} · {} &amp; &lt;b&gt;".format(*names)
