"""What the page says of runs and values that do not count in full: left out, excluded, paused, uneven."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import ON_FLASH, SVG, Page, render

from knobscope.specs import StudySpecs
from knobscope.stages.report.sections import head

Render = Callable[..., Page]  # as fixture `render_head`


def test_values_that_the_sweep_left_out_are_listed_with_the_reason(render_head: Render) -> None:
    page = render_head(
        "INSERT INTO left_out_values VALUES ('server', 'disk', 'mix', 'size', '512', 'size requires `size < limit`'), "
        "('server', 'disk', 'other', 'size', '512', 'size requires `size < limit`')",
        cases=[ON_FLASH],
    )
    assert page.text.count("size requires `size < limit`") == 1


def test_knobs_that_were_left_out_are_listed_by_reason(render_head: Render, page: Page) -> None:
    left_out = render_head(
        "INSERT INTO left_out_values VALUES ('server', 'disk', 'mix', 'b<c', NULL, 'it listens'), "
        "('server', 'disk', 'mix', 'a', NULL, 'it listens'), ('server', 'disk', 'other', 'a', NULL, 'it listens')",
        cases=[ON_FLASH],
    )
    assert "<li>server, 2: it listens: <code>a</code>, <code>b&lt;c</code></li>" in left_out.source
    assert 'id="left-out"' not in left_out.source, "no value was left out"
    assert 'id="knobs-left-out"' not in page.source


def test_stalled_runs_and_repeated_attempts_are_named(render_head: Render, page: Page) -> None:
    changed = render_head(
        "INSERT INTO set_aside_runs SELECT min(run_id), 'stalled', NULL, 'it stalled' FROM runs WHERE is_sentinel",
        "INSERT INTO operations (run_id, operation, ok, failed, retried) "
        "SELECT min(run_id), 'UPDATE', 90, 10, 7 FROM runs WHERE status = 'ok'",
        cases=[ON_FLASH],
    )
    runs = changed.section("runs")
    assert re.search(r"Excluded ?1 stalled, at least three times slower than others of its conf", runs), runs[:3000]
    assert "excluded it stalled" in runs
    assert re.search(r"Attempts repeated ?7 in 100 operations", runs)
    assert "it stalled" not in page.section("runs")
    assert "repeated" not in page.section("runs")


def test_runs_that_failed_at_first_are_counted(render_changed: Render, page: Page) -> None:
    changed = render_changed(
        "UPDATE runs SET first_failure = 'failed_run: it crashed' "
        "WHERE run_id IN (SELECT run_id FROM runs WHERE status = 'ok' AND is_sentinel ORDER BY run_id LIMIT 2)",
        cases=[ON_FLASH],
    )
    runs = changed.section("runs")
    words = (
        "⚠ 2 runs of 1 configuration failed at first and succeeded when repeated; the reason: failed_run: it crashed"
    )
    assert re.search(f"Second attempts ?{words}", runs), runs[:3000]
    assert "Second attempts" not in page.section("runs")


@pytest.mark.parametrize(
    ("columns", "facts"),
    [
        (
            "window_pause_s = 0.75, window_halves = 0.4, window_late_s = 0.25, window_change = -0.4, "
            "window_steady = false",
            [
                "Pauses ?⚠ 1 window had an interval without any operation; the longest pause lasted 0.75 s",
                "Uneven windows ?⚠ in 1 of 1 window one half was 2x or more faster than the other, up to 2.5x",
                "Late windows ?1 window lasted longer than requested, by at most 0.25 s",
                "Steady windows ?⚠ 1 of 1 are not: throughput still fell by 40 % in one",
            ],
        ),
        (
            "window_halves = 0.6, window_late_s = 0.05, window_change = 0.01, window_steady = true",
            ["Steady windows ?all of 1"],
        ),
    ],
    ids=["as they should not be", "as they are"],
)
def test_windows_that_paused_or_were_uneven_late_or_unsteady_are_counted(
    render_head: Render, columns: str, facts: list[str]
) -> None:
    page = render_head(
        "UPDATE runs SET window_pause_s = 0, window_halves = NULL, window_late_s = 0, window_steady = NULL",
        f"UPDATE runs SET {columns} WHERE run_id = (SELECT min(run_id) FROM runs WHERE status = 'ok')",  # noqa: S608
        cases=[ON_FLASH],
    )
    runs = page.section("runs")
    assert [fact for fact in facts if not re.search(fact, runs)] == [], runs[:3000]
    names = ["Pauses", "Uneven windows", "Late windows"]
    assert [name for name in names if re.search(f"{name} ?(⚠|[0-9])", runs)] == (names if len(facts) > 1 else [])


def test_a_stall_is_a_flat_part_of_the_operations_so_far(
    changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path, page: Page
) -> None:
    assert "Operations so far" not in page.section("runs")  # it has no intervals
    defaults = "SELECT run_id FROM runs WHERE device = 'fast-flash' AND is_sentinel AND status = 'ok'"
    changed = changed_study(
        "INSERT INTO intervals BY NAME SELECT run_id, t::DOUBLE AS t_s, CASE WHEN t = 2 THEN 0 ELSE 100 END AS ops "  # noqa: S608
        f"FROM ({defaults}), range(1, 6) seconds(t)",
        f"UPDATE runs SET window_pause_s = 1 WHERE run_id = (SELECT min(run_id) FROM ({defaults}))",  # noqa: S608
    )
    rendered = render(changed, specs, tmp_path, cases=[ON_FLASH])
    assert "the one that paused longest, for 1 s" in rendered.section("runs")
    (picture,) = (svg for svg in rendered.root.iter(f"{SVG}svg") if "done by each second" in svg.get("aria-label", ""))
    (stalled,) = (path for path in picture.iter(f"{SVG}path") if path.get("class") == "curve thin bad")
    heights = [point.split()[1] for point in stalled.get("d", "")[1:].split("L")]
    assert (heights[1] == heights[2], heights[2] == heights[3]) == (True, False)


def test_the_account_compares_the_study_with_a_full_grid(page: Page) -> None:
    account = re.search(r"([\d,]+) runs took .*? a full grid of the values .*? has ([\d,]+) runs", page.text)
    assert account and int(account[1]) == 90 and int(account[2].replace(",", "")) > 2


def test_a_grid_that_nobody_can_count_is_told_by_its_size(render_head: Render, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head, "_COUNTABLE", 1)
    page = render_head()
    assert re.search(r"a full grid of the values that screening draws from has about 10\^\d runs", page.text)
