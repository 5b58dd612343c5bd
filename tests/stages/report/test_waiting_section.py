"""What the page says of what configurations wait for, where requests were delayed."""

import re
from collections.abc import Callable

from pages import Page

_ROW = """
    INSERT INTO sensitivities BY NAME
    SELECT dbms, device, workload, '{knob}' AS knob, '{value}' AS value, {is_reference} AS is_reference, '{op}' AS op,
        1600 AS request_us, 1600 AS delay_us, 1.0 AS waited_share, 4 AS runs, {sensitivity} AS sensitivity,
        {low} AS sensitivity_low, {high} AS sensitivity_high
    FROM cases WHERE device = 'fast-flash'
"""


def row(knob: str, value: str, op: str, sensitivity: float, *, is_reference: bool, ends: tuple[str, str]) -> str:
    fields = {"knob": knob, "value": value, "op": op, "sensitivity": sensitivity, "is_reference": is_reference}
    return _ROW.format(**fields, low=ends[0], high=ends[1])


def test_each_configuration_is_reported_once_with_what_it_waits_for(render_changed: Callable[..., Page]) -> None:
    sure, open_end = ("-0.65", "-0.58"), ("NULL", "NULL")
    html = render_changed(
        row("synchronous", "off", "flush", -0.62, is_reference=True, ends=sure),
        row("journal_mode", "wal", "flush", -0.62, is_reference=True, ends=sure),  # of the same runs
        row("journal_mode", "wal", "flush", -0.3, is_reference=False, ends=("-0.7", "0.1")),
        row("synchronous", "off", "read", -0.02, is_reference=False, ends=open_end),
    )
    text = html.section("effects")
    told = text[text.index("What configurations wait for") :]
    assert told.count("One takes") == 1  # the other case has none
    assert len(re.findall(r"reference\s*flushes\s*1.6 ms\s*1.6 ms\s*4\s*-0.62 \(-0.65 to -0.58\)", told)) == 1
    assert re.search(r"journal_mode = wal\s*flushes\s*1.6 ms\s*1.6 ms\s*4\s*-0.3 \(-0.7 to 0.1\)", told)
    assert re.search(r"synchronous = off\s*reads\s*1.6 ms\s*1.6 ms\s*4\s*-0.02 \(no interval\)", told)
    assert told.index("reference") < told.index("journal_mode = wal") < told.index("synchronous = off")


def test_without_delays_nothing_is_said(page: Page) -> None:
    assert "wait for" not in page.section("effects")
