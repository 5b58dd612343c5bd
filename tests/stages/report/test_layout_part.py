"""What each device of a layout was asked for: means over the runs of the sweep that differ in the layout alone."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pages import Page, render

from knobscope.specs import StudySpecs


def test_devices_of_a_layout_are_reported_by_layout(
    changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path
) -> None:
    database = changed_study(
        "UPDATE knob_values SET knob = 'device.log' WHERE knob = 'synchronous'",
        """
        INSERT INTO layout_io
        SELECT run_id, d, op, CASE op WHEN 'flush' THEN 100 * window_s ELSE 1 END,
            CASE WHEN op = 'write' THEN 4096 * factor * window_s ELSE 0 END, 1.5, 0.25
        FROM runs, (VALUES ('fast-flash', 1), ('log-disk', 3)) AS devices(d, factor),
            (VALUES ('write'), ('flush')) AS operations(op)
        WHERE status = 'ok' AND device = 'fast-flash'
        """,
    )
    knobs = specs.dbms["sqlite"].knobs
    dbms = specs.dbms["sqlite"].model_copy(update={"knobs": {**knobs, "device.log": knobs["synchronous"]}})
    page = render(database, replace(specs, dbms={"sqlite": dbms}), tmp_path)
    text = page.section("runs")
    told = text[text.index("Requests to each device of the layout") :]
    assert told.count("Requests to each device") == 1  # the other case has no layout
    assert re.search(r"default\s*fast-flash\s*–\s*4 KiB/s\s*100 /s\s*1.5\s*25 %", told), told[:600]
    assert re.search(r"device.log=off\s*log-disk\s*–\s*12 KiB/s\s*100 /s", told), told[:600]
    assert "page_size" not in told[: told.index("Requests of the default configuration at the device")]
    assert "Other devices of the layout are not included" in page.section("effects")


def test_without_a_layout_nothing_is_said(page: Page) -> None:
    assert "of the layout" not in page.text
