"""The command: what it takes, what it writes, and what it says of wrong input."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import CHROMIUM, look_at
from json_documents import read_document
from simulated_pairs import TRUTH, Truth

from knobscope.cli import main
from knobscope.commands.compare import Comparison
from knobscope.commands.compare.matching import CasePair
from knobscope.commands.compare.page import render_page
from knobscope.commands.compare.text import format_comparison
from knobscope.specs import Case

Make = Callable[..., Path]
Changed = Callable[..., Path]
XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def two(make_database: Make) -> tuple[Path, Path]:
    other = {**TRUTH, ("buffer", "32"): Truth(throughput=0.1)}
    return make_database(seed=1, judged=True), make_database(seed=2, judged=True, truth=other)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return what the command says when it refuses its input; that is one sentence in one line."""
    assert main(["compare", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("knobscope: ")
    return captured.err


def test_the_text_says_what_differs(two: tuple[Path, Path], prints: Callable[..., str]) -> None:
    text = prints("compare", *two)
    assert "Of 9 effects on throughput that both studies measured, 1 differs clearly and 8 show no clear" in text
    (line,) = re.findall(r"^  buffer = 32 .*$", text.split("differ clearly")[1], re.MULTILINE)
    assert re.search(r" 8  1\.\d+x  1\.\d+x   0\.7\d", line)
    assert "None" not in text and "nan" not in text and "\u00a0" not in text
    assert all(len(line) <= 120 for line in text.splitlines())


def test_what_an_operation_waits_for_is_shown_of_both(
    make_database: Make, changed: Changed, tmp_path: Path, prints: Callable[..., str]
) -> None:
    waits = [(("flush", us), ("cpu", 50.0), ("network", 500.0)) for us in (1450.0, 20.0)]
    latency = {"latency_mean_us": 3000.0}
    a, b = (make_database(seed=number, waits=of_study, columns=latency) for number, of_study in enumerate(waits))
    page, document = tmp_path / "page.html", tmp_path / "compared.json"
    text = " ".join(prints("compare", a, b, "--out", page, "--json", document).split())
    of_a = r"in A 1\.\d ms \((49|50|51) % of its latency of 3 ms\), of which 1\.\d ms flush, \d\d µs CPU"
    said = rf"{of_a}; in B \d\d µs \(2\.\d % of its latency of 3 ms\), of which \d\d µs CPU, \d\d µs flush"
    assert re.search(rf"Time of an operation in the server: {said}\. In B an operation takes 1\.4 ms less", text)
    assert "Time of an operation in the server" in page.read_text()
    (case,) = json.loads(document.read_text())["cases"]
    micros = {letter: {part["reason"]: part["micros"] for part in case["budgets"][letter]} for letter in "ab"}
    assert micros["a"]["flush"] == pytest.approx(1450, rel=0.05)
    assert micros["b"]["cpu"] == pytest.approx(50, rel=0.05)
    unwatched = changed(b, "DELETE FROM waits")
    assert "Time of an operation in the server" not in prints("compare", a, unwatched)


def test_studies_are_found_by_folder_file_name_and_spec(
    two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, database in zip(("before", "after"), two, strict=True):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "study.duckdb").write_bytes(database.read_bytes())
    said = []
    for a, b in (("before", "after"), ("results/before", "specs/studies/after.yaml"),
                 ("results/before/study.duckdb", "after")):  # fmt: skip
        assert main(["compare", a, b]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] == said[2]
    assert "or one of those in results: after, before" in refused(capsys, "before", "later")
    (tmp_path / "results/empty").mkdir()
    assert "results/empty: found no study.duckdb in it" in refused(capsys, "before", "empty")


def test_json_holds_all_numbers(two: tuple[Path, Path], tmp_path: Path, prints: Callable[..., str]) -> None:
    document = read_document("compare", prints("compare", *two, "--json", "-"))
    assert document["limits"] == {"fdr": 0.05, "min_effect": 0.05}
    (case,) = document["cases"]
    assert case["pair"] == {"a": "simdb/nvme/ycsb-a", "b": "simdb/nvme/ycsb-a"}
    first = case["effects"][0]
    assert (first["knob"], first["value"], first["verdict"]) == ("buffer", "32", "differs")
    assert first["low"] < first["estimate"] < first["high"] < 0
    assert first["a"]["interval"][0] < first["a"]["estimate"] < first["a"]["interval"][1]
    assert case["levels"][0]["a"]["blocks"] == 3
    out = tmp_path / "new" / "compared.json"
    assert main(["compare", *map(str, two), "--json", str(out)]) == 0
    assert json.loads(out.read_text()) == document


def test_the_page_is_whole_and_loads_nothing(
    two: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "compared.html"
    assert main(["compare", *map(str, two), "--out", str(out), "--csv"]) == 0
    assert f"wrote {out} and {out.with_suffix('.csv')}" in capsys.readouterr().err
    source = out.read_text()
    root = ElementTree.fromstring(source.split("<!DOCTYPE html>", 1)[1])  # noqa: S314 - we wrote it
    assert not re.search(r"(src|href)=\"(?!#)", source) and "url(" not in source and "<script " not in source
    words = " ".join("".join(root.itertext()).replace("\u00a0", " ").split())
    assert "Of 9 effects on throughput that both studies measured, 1 differs clearly" in words
    assert f"sim: {two[0]} and {two[1]}" in words  # both studies have one name, so their databases tell them apart
    assert "None" not in words and "nan" not in words
    targets = {element.get("id") for element in root.iter()}
    assert all(link.get("href", "")[1:] in targets for link in root.iter(f"{XHTML}a"))
    figures = list(root.iter(f"{SVG}svg"))
    assert len(figures) == 4  # two metrics, each for a screen and for a phone
    dots = list(figures[0].iter(f"{SVG}circle"))
    assert len(dots) == 9 * 3  # an effect of A and of B, and what one is of the other
    assert sum("worse" in (dot.get("class") or "") for dot in dots) == 1
    with out.with_suffix(".csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18
    assert rows[0]["verdict"] == "differs"
    assert float(rows[0]["a_estimate"]) == pytest.approx(0.4, abs=0.06)
    assert float(rows[0]["estimate"]) == pytest.approx(float(rows[0]["b_estimate"]) - float(rows[0]["a_estimate"]))
    assert [path.name for path in sorted(out.parent.iterdir())] == ["compared.csv", "compared.html"]


def test_links_to_cases_whose_names_differ_in_signs_lead_to_their_own(
    two: tuple[Path, Path], compare: Callable[..., Comparison]
) -> None:
    comparison = compare(*two)
    similar = Case("simdb", "nvme", "ycsb_a")
    cases = [*comparison.cases, replace(comparison.cases[0], pair=CasePair(similar, similar))]
    source = render_page(replace(comparison, cases=cases))
    anchors = re.findall(r'<section id="(case-[^"]*)">', source)
    assert len(anchors) == len(set(anchors)) == 2


@pytest.mark.slow
def test_cases_of_other_names_are_matched_or_asked_for(
    make_database: Make, two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    other = make_database(seed=3, devices=("nvme2", "hdd"))
    said = refused(capsys, two[0], other)
    assert "--match A_CASE=B_CASE" in said
    assert "B has simdb/hdd/ycsb-a, simdb/nvme2/ycsb-a" in said
    assert main(["compare", str(two[0]), str(other), "--match", "simdb/nvme/ycsb-a=simdb/nvme2/ycsb-a"]) == 0
    text = capsys.readouterr().out
    assert "cases of B: simdb/hdd/ycsb-a." in text
    assert main(["compare", str(two[0]), str(make_database(seed=3, devices=("nvme2",)))]) == 0
    assert "nvme2" in capsys.readouterr().out


def test_several_cases_are_reported_one_after_the_other(make_database: Make, prints: Callable[..., str]) -> None:
    a, b = (make_database(seed=seed, devices=("nvme2", "hdd")) for seed in (3, 4))
    text = prints("compare", a, b)
    assert "\nsimdb/hdd/ycsb-a\n" in text and "\nsimdb/nvme2/ycsb-a\n" in text
    assert "Of 18 effects on throughput" in text


def test_wrong_input_is_refused(
    two: tuple[Path, Path], tmp_path: Path, changed: Changed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no results of a study 'nothing'; expected a folder" in refused(capsys, two[0], "nothing")
    assert "expected two studies" in refused(capsys, two[0], two[0])
    assert "expected --out FILE.html" in refused(capsys, *two, "--csv")
    assert "expected A_CASE=B_CASE" in refused(capsys, *two, "--match", "nonsense")
    text, torn = tmp_path / "text.duckdb", tmp_path / "torn.duckdb"
    text.write_text("no database at all")
    whole = two[0].read_bytes()
    torn.write_bytes(whole[:4096] + bytes(len(whole) // 2))
    for damaged in (text, torn):
        assert f"knobscope: {damaged}: " in refused(capsys, two[0], damaged)
    foreign = changed(two[1], "DROP VIEW IF EXISTS ok_runs", "ALTER TABLE runs RENAME TO others")
    assert "found no table `runs`; expected a DuckDB file that `knobscope detect` wrote" in refused(
        capsys, two[0], foreign
    )
    empty = changed(two[1], "DELETE FROM runs")
    assert "found no run in table `runs`" in refused(capsys, two[0], empty)


def test_an_older_database_is_compared_as_far_as_it_goes(
    two: tuple[Path, Path], changed: Changed, prints: Callable[..., str]
) -> None:
    older = changed(two[1], "DROP TABLE setup", "DROP TABLE importance", "ALTER TABLE runs DROP COLUMN machine",
                    "ALTER TABLE effects DROP COLUMN set_aside")  # fmt: skip
    text = " ".join(prints("compare", str(two[0]), older).split())
    assert text.count("The database of B has no tables `importance` and `setup`: an earlier version") == 1
    assert "Whether both were asked for the same cannot be told" in text
    assert "1 differs clearly and 8 show no clear difference" in text


def test_an_older_database_without_effects_says_so(
    two: tuple[Path, Path], changed: Changed, compare: Callable[..., object]
) -> None:
    older = changed(two[1], "DROP TABLE effects")
    text = format_comparison(compare(two[0], older))  # type: ignore[arg-type]
    assert "No effect of a knob value was measured in both studies." in text
    assert "Measured in A only: ahead = true" in text


@pytest.mark.real
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize(
    ("width", "dark"),
    [(390, True), *(pytest.param(*one, marks=pytest.mark.long) for one in [(390, False), (1280, False), (1280, True)])],
)
def test_nothing_of_the_page_is_broken(two: tuple[Path, Path], tmp_path: Path, width: int, dark: bool) -> None:
    out = tmp_path / "compared.html"
    assert main(["compare", *map(str, two), "--out", str(out)]) == 0
    seen = look_at(out.read_text(encoding="utf-8"), tmp_path, width, dark=dark)
    assert (seen.width, seen.dark, seen.faults) == (width, dark, [])
    assert seen.texts > 100
