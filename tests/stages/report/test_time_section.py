"""Where the time goes: parts of the time per operation, of known devices."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pages import SVG, plain, read_xml

from knobscope.specs import StudySpecs
from knobscope.stages.report.sections.times import time_figures
from knobscope.study_data.study import StudyData

Change = Callable[..., Path]
#: The device has requests for half of each window of 5 s, and a run flushes so many times, for 100 us each.
HALF_BUSY = ("UPDATE run_depths SET busy_share = 0.5", "DELETE FROM run_flushes")
FLUSHES = "INSERT INTO run_flushes SELECT run_id, {}, 100 FROM runs"


@pytest.mark.parametrize(
    ("flushes", "shares"), [(10_000, (0.2, 0.3, 0.5)), (40_000, (0.5, 0.0, 0.5)), (0, (0.0, 0.5, 0.5))]
)
def test_an_operation_consists_of_flushes_requests_and_the_rest(
    changed_study: Change, specs: StudySpecs, flushes: int, shares: tuple[float, ...]
) -> None:
    """Flushes that overlap, so that they seem to take longer than the device had any request, take all of that time."""
    with StudyData.open(changed_study(*HALF_BUSY, FLUSHES.format(flushes)), specs) as data:
        figures = time_figures(data)
        clear = data.value(
            "SELECT count(*) FROM effects WHERE metric = 'throughput_ops' AND device = 'slow-disk' AND q_value <= 0.05 "
            "AND abs(exp(estimate) - 1) >= 0.05"
        )
        reference = data.value(
            "SELECT any_value(reference) FROM effects WHERE metric = 'throughput_ops' AND device = 'slow-disk'"
        )
    disk = figures[-1]
    default, *others = disk.data
    assert default["total_us"] == pytest.approx(1e6 / reference)
    for row in disk.data:
        parts = [row[part] / row["total_us"] for part in ("flush_us", "transfer_us", "idle_us")]
        assert parts == pytest.approx(shares, abs=0.02)
    assert len(others) == min(clear, 11)
    assert [abs(row["estimate"]) for row in others] == sorted((abs(row["estimate"]) for row in others), reverse=True)
    root = read_xml(disk.draw(400).svg("times"))
    assert len([mark for mark in root.iter(SVG + "rect") if len(mark)]) == 3 * len(disk.data)
    said = plain(disk.caption)
    assert ("flushes for" in said) == bool(flushes)
    assert ("reads or writes for" in said) == (shares[1] > 0)
    assert "has no request for" in said


def test_the_picture_has_the_time_that_a_finding_tells(changed_study: Change, specs: StudySpecs) -> None:
    """It is that of the sweep, also where the effect was measured again."""
    again = "UPDATE effects SET swept = estimate, estimate = estimate / 2 WHERE metric = 'throughput_ops'"
    with StudyData.open(changed_study(*HALF_BUSY, again), specs) as data:
        default, *others = time_figures(data)[-1].data
        effects = {
            (row["knob"], row["value"]): row
            for row in data.rows(
                "SELECT * FROM effects WHERE metric = 'throughput_ops' AND device = 'slow-disk' AND beside IS NULL"
            )
        }
    alone = [row for row in others if row["beside"] is None]
    assert alone
    for row in alone:
        effect = effects[row["knob"], row["value"]]
        difference = 1e6 / effect["reference"] * (math.exp(-effect["swept"]) - 1)  # as the rules have it
        assert row["total_us"] - default["total_us"] == pytest.approx(difference)


def test_without_a_clear_effect_there_is_nothing_to_divide(changed_study: Change, specs: StudySpecs) -> None:
    with StudyData.open(changed_study("UPDATE effects SET q_value = 1"), specs) as data:
        assert time_figures(data) == []


def test_without_bpf_nobody_knows_what_the_device_did(changed_study: Change, specs: StudySpecs) -> None:
    with StudyData.open(changed_study("DELETE FROM run_depths"), specs) as data:
        assert time_figures(data) == []


@pytest.mark.parametrize(("threads", "is_shared"), [(1, False), (2, True)])
def test_time_of_all_clients_is_said_of_several(
    changed_study: Change, specs: StudySpecs, threads: int, is_shared: bool
) -> None:
    workloads = {name: workload.model_copy(update={"threads": threads}) for name, workload in specs.workloads.items()}
    with StudyData.open(changed_study(*HALF_BUSY), replace(specs, workloads=workloads)) as data:
        caption = plain(time_figures(data)[-1].caption)
    assert ("over all clients" in caption, "all clients together take" in caption) == (is_shared, is_shared)
    assert ("the client takes" in caption) != is_shared
