"""What the page says of servers that were killed at the end of their runs."""

import re
from collections.abc import Callable

from pages import Page


def test_recovery_and_losses_are_reported_by_configuration(render_changed: Callable[..., Page]) -> None:
    page = render_changed(
        """
        UPDATE runs SET recovery_s = 1.5, lost_writes = 0, lost_s = 0 WHERE status = 'ok' AND device = 'fast-flash'
        """,
        """
        UPDATE runs SET lost_writes = 512, lost_s = 0.25
        WHERE recovery_s IS NOT NULL
            AND config_id IN (SELECT config_id FROM knob_values WHERE knob = 'synchronous' AND value = 'off')
        """,
        "INSERT INTO phases (run_id, phase, seconds) SELECT run_id, 'start', 0.5 FROM runs WHERE recovery_s > 0",
    )
    text = page.section("effects")
    told = text[text.index("Crash recovery") :]
    assert told.count("Until it answered again") == 1  # the other case has none
    assert re.search(r"default\s*\d+\s*1.5 s \(1.5 s to 1.5 s\)\s*0.5 s\s*none", told), told[:900]
    pattern = r"synchronous = off\s*\d+\s*1.5 s.*?0.5 s\s*up to 512 rows, the last 250 ms, in (\d+) of (\d+) run"
    lost = re.search(pattern, told)
    assert lost, told[:900]
    assert lost[1] == lost[2]


def test_without_recovery_nothing_is_said(page: Page) -> None:
    assert "started again" not in page.section("effects")
