"""The report as a reader sees it: on a telephone and on a desk, in light and dark."""

from pathlib import Path

import duckdb
import pytest
from browser import CHROMIUM, look_at
from pages import render
from simulated_study import write_trace

from knobscope.specs import StudySpecs

pytestmark = [pytest.mark.real, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

BROKEN = """<!DOCTYPE html><html><head>
<style>body { margin: 0; width: 600px; background: #fff; color: #000; }</style></head><body>
<p style="color: #bbb">pale words</p>
<p style="width: 40px; overflow: hidden; white-space: nowrap">words that are cut</p>
<details><summary>more</summary><p style="opacity: 1; color: #00000040">folded words</p></details>
<svg width="200" height="60"><text x="10" y="20">below</text><text x="14" y="24">above</text>
<text x="180" y="50">beyond the edge</text>
<rect x="100" width="60" height="20" fill="#000" fill-opacity="0.6"/><text x="110" y="14">on a tile</text></svg>
<p style="width: 900px">wide</p></body></html>
"""


def test_what_is_broken_is_found(tmp_path: Path) -> None:
    seen = look_at(BROKEN, tmp_path, 390, dark=False)
    faults = "\n".join(seen.faults)
    assert 'wider than the window: p "wide"' in faults
    assert 'cut off: p "words that are cut"' in faults
    assert 'cut off: text "beyond the edge"' in faults
    assert 'one over the other: text "below", text "above"' in faults
    assert 'too pale (1.9): p "pale words"' in faults
    assert 'p "folded words"' in faults
    assert 'too pale (3.7): text "on a tile"' in faults


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (390, False),
        (1280, True),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in [(390, True), (760, False), (760, True), (1280, False)]
        ),
    ],
)
def test_nothing_of_a_report_is_broken(study: Path, specs: StudySpecs, tmp_path: Path, width: int, dark: bool) -> None:
    with duckdb.connect(str(study), read_only=True) as connection:
        found = connection.execute("SELECT min(run_id) FROM runs WHERE is_sentinel AND status = 'ok'").fetchone()
    write_trace(tmp_path / "traces", str(found and found[0]))
    page = render(study, specs, tmp_path, traces=tmp_path / "traces")
    seen = look_at(page.source, tmp_path, width, dark=dark)
    assert (seen.width, seen.dark) == (width, dark)
    assert seen.texts > 1000
    assert seen.faults == []
