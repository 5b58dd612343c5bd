"""The report as a reader sees it: on a telephone and on a desk, in light and dark, and on paper."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from browser import CHROMIUM, PAPER, look_at
from pages import render
from simulated_study import write_trace

from knobscope.figures import (
    Curve,
    Effect,
    ForestRow,
    MetricPanel,
    PairRow,
    Sizes,
    Span,
    Strip,
    Tile,
    TileRow,
    TuningCurve,
    depth_bins,
    draw_depths,
    draw_forest,
    draw_latencies,
    draw_pairs,
    draw_shares,
    draw_sizes,
    draw_spans,
    draw_strips,
    draw_tiles,
    draw_tuning,
    figure_style,
)
from knobscope.specs import StudySpecs

pytestmark = [pytest.mark.real, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

BROKEN = """<!DOCTYPE html><html><head>
<style>body { margin: 0; width: 600px; background: #fff; color: #000; }
td[data-head]::before { content: attr(data-head); }</style></head><body>
<p style="color: #bbb">pale words</p>
<p style="width: 40px; overflow: hidden; white-space: nowrap">words that are cut</p>
<details><summary>more</summary><p style="opacity: 1; color: #00000040">folded words</p></details>
<svg width="200" height="60"><text x="10" y="20">below</text><text x="14" y="24">above</text>
<text x="180" y="50">beyond the edge</text>
<rect x="100" width="60" height="20" fill="#000" fill-opacity="0.6"/><text x="110" y="14">on a tile</text></svg>
<div style="width: 100px; overflow: auto"><table><tr><td style="min-width: 120px">cell</td></tr></table></div>
<article style="width: 90px"><b style="white-space: nowrap">words beyond their card</b></article>
<svg width="50" viewBox="0 0 100 20"><text x="5" y="12" style="font-size: 12px">tiny</text></svg>
<table><tr><td data-head="Knob"><code></code></td><td data-head="Value">1</td></tr></table>
<p style="width: 900px">wide</p></body></html>
"""


def test_what_is_broken_is_found(tmp_path: Path) -> None:
    seen = look_at(BROKEN, tmp_path, 390, dark=False)
    faults = "\n".join(seen.faults)
    assert 'wider than the window: p "wide"' in faults
    assert 'wider than its box: table "cell"' in faults
    assert 'outside of its card: b "words beyond their card"' in faults
    assert 'too small: text "tiny"' in faults
    assert 'cut off: p "words that are cut"' in faults
    assert 'cut off: text "beyond the edge"' in faults
    assert 'one over the other: text "below", text "above"' in faults
    assert 'too pale (1.9): p "pale words"' in faults
    assert 'p "folded words"' in faults
    assert 'too pale (3.7): text "on a tile"' in faults
    assert "a name without a value: Knob" in faults
    assert "without a value: Value" not in faults


@pytest.mark.parametrize(
    ("width", "dark", "paper"),
    [
        (390, False, False),
        (700, False, False),
        (1280, True, False),
        (PAPER, False, True),
        *(
            pytest.param(*view, False, marks=pytest.mark.long)
            for view in [(390, True), (760, False), (760, True), (1280, False)]
        ),
        pytest.param(PAPER, True, True, marks=pytest.mark.long),
    ],
)
def test_nothing_of_a_report_is_broken(
    study: Path, specs: StudySpecs, tmp_path: Path, width: int, dark: bool, paper: bool
) -> None:
    with duckdb.connect(str(study), read_only=True) as connection:
        found = connection.execute("SELECT min(run_id) FROM runs WHERE is_sentinel AND status = 'ok'").fetchone()
    write_trace(tmp_path / "traces", str(found and found[0]))
    page = render(study, specs, tmp_path, traces=tmp_path / "traces")
    seen = look_at(page.source, tmp_path, width, dark=dark, paper=paper)
    assert (seen.width, seen.dark) == (width, dark)
    assert seen.texts > 1000
    assert seen.faults == []


def test_tables_of_tpcc_fit_a_window_of_1200_pixels(
    changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path
) -> None:
    """Five transactions, and numbers of a long run."""
    database = changed_study(
        "CREATE TEMP TABLE done AS SELECT run_id, kind, name, op FROM runs, "
        "(VALUES ('DELIVERY'), ('NEW_ORDER'), ('ORDER_STATUS'), ('PAYMENT'), ('STOCK_LEVEL')) k (kind), "
        "(VALUES ('order_line'), ('customer')) t (name), (VALUES ('read'), ('write')) o (op)",
        "INSERT INTO operations (run_id, operation, ok) SELECT DISTINCT run_id, kind, 1234 FROM done",
        "INSERT INTO operation_io (run_id, operation, transactions, file, role, table_name, op, requests, bytes) "
        "SELECT DISTINCT run_id, kind, 1234, 'base/' || name, 'data', name, op, 123456, 1.5e10 FROM done",
        "INSERT INTO statements (run_id, source, operation, table_name, statement, calls, rows) "
        "SELECT DISTINCT run_id, 'client', kind, name, statement, 1234567, 12345678 "
        "FROM done, (VALUES ('select'), ('insert'), ('update'), ('delete')) s (statement)",
        "INSERT INTO files (run_id, file, role, table_name, op, requests, bytes) "
        "SELECT DISTINCT run_id, 'base/' || name, 'data', name, op, 123456, 1.5e10 FROM done",
    )
    page = render(database, specs, tmp_path)
    assert "Statements per transaction" in page.section("files")
    assert look_at(page.source, tmp_path, 1200).faults == []


def test_a_long_risk_stays_in_its_card(changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path) -> None:
    dbms = specs.dbms["sqlite"]
    knobs = {name: knob.model_copy(update={"durability": [knob.default]}) for name, knob in dbms.knobs.items()}
    risky = replace(specs, dbms={**specs.dbms, "sqlite": dbms.model_copy(update={"knobs": knobs})})
    page = render(changed_study(), risky, tmp_path)
    risks = [len(risk.text or "") for risk in page.all("span") if risk.get("class") == "risk"]
    assert max(risks) > 80
    assert look_at(page.source, tmp_path, 1200).faults == []


@pytest.mark.parametrize("width", [400, 880])
def test_long_names_neither_cover_each_other_nor_end_outside(tmp_path: Path, width: int) -> None:
    others = "with innodb_flush_method = O_DIRECT and innodb_doublewrite = off"
    names, looks = [f"default 128 MiB {others}", f"1 GiB {others}"], ["base-bar", "value-bar"]
    settings, bins = list(zip(looks, names, strict=True)), depth_bins({0: 9, 1: 6, 2: 2})
    knob, effect = "binlog_group_commit_sync_no_delay_count", Effect(0.2, (0.1, 0.3), True)
    panel = MetricPanel("Throughput", "slower", "faster", 1)
    spaces = [TuningCurve(f"top{count} ({count} knobs)", [1, 1.1], [[1, 1.1]]) for count in (1, 2, 3, 5, 10, 15)]
    kinds = zip(("read", "write", "flush", "discard"), ("line-a", "line-b", "line-c", "plain"), strict=True)
    drawn = [
        draw_depths(width, [(look, f"{name} (busy 97 %)", bins) for look, name in settings]),
        draw_shares(width, [("sequential writes", [(look, name, 0.5) for look, name in settings])]),
        draw_sizes(width, [Sizes(f"{name}: 90 % aligned, 0.3 per operation", {4096: 9}) for name in names]),
        draw_strips(width, [Strip(name, look, [1.0, 2.0], 1.5) for look, name in settings]),
        draw_latencies(width, [Curve(name, look, [(100, 0.2), (200, 0.8)]) for name, look in kinds], "latency"),
        draw_tuning(width, spaces, None),
        draw_forest(width, [ForestRow(knob, names[0], "64 MiB", (effect,), durability=True)], [panel]),
        draw_spans(width, [Span(knob, others, effect, names[0], effect, names[1], durability=True)]),
        draw_pairs(width, [PairRow(knob, names[0], "64 MiB", effect, effect, effect)], panel),
        draw_tiles(width, names, [TileRow(knob, names[0], "64 MiB", [Tile(0.2, "1.2x", "20 % faster"), None])]),
    ]
    style = f"<style>{figure_style()} body {{ margin: 0; background: #fff; font-family: sans-serif }}</style>"
    pictures = "".join(canvas.svg("names").replace("<svg ", f'<svg width="{width}" ', 1) for canvas in drawn)
    page = f'<!DOCTYPE html><html><head>{style}</head><body class="page">{pictures}</body></html>'
    assert look_at(page, tmp_path, width + 20).faults == []
