"""All processors of this machine: what keeps them busy shows, whoever it is."""

import os
import time

import pytest

from knobscope.watch import processors
from knobscope.watch.processors import ProcessorMeter


def test_work_of_this_process_shows() -> None:
    """At least what this process took, but for the ticks of a hundredth of a second in which the kernel counts."""
    meter, begin, before = ProcessorMeter(), time.monotonic(), time.process_time()
    while time.process_time() - before < 0.5:
        pass
    share, took = meter.busy_share(), time.monotonic() - begin
    assert share is not None
    assert 0.4 / (took * (os.cpu_count() or 1)) < share <= 1


def test_waiting_for_storage_is_idle_and_stolen_time_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([[0] * 8, [10, 0, 10, 30, 40, 0, 0, 10]])  # user, nice, system, idle, iowait, irq, softirq, steal
    monkeypatch.setattr(processors, "read_ticks", lambda: next(ticks))
    assert ProcessorMeter().busy_share() == pytest.approx(0.3)


def test_no_time_has_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "read_ticks", lambda: [1] * 8)
    assert ProcessorMeter().busy_share() is None
