"""Counts per operation that may follow from slower operations: replicas that repeat them cannot refute a cause."""

from dataclasses import replace

import pytest
from simulated_group import simulate_group_commit

from knobscope.stages.imitate.pattern import Pattern
from knobscope.stages.imitate.trials import Figures, Outcome, Setting, plan_trial

FLUSH_S = 0.002
UNIT = 65536


def committed(flushes: float) -> Pattern:
    """Return the I/O of a thousand operations, in which each flush follows one write."""
    writes = max(1, round(flushes))
    return Pattern(0, writes, {}, {4096: writes}, 1.0, 1.0, flushes, 1.0, operations=1000)


def compare_cpu(clients: int, cpu_s: float, more: float, known: int | None) -> Setting:
    """Return a setting that takes more CPU time only, beside another one."""
    fewer, faster_s = simulate_group_commit(clients, cpu_s, FLUSH_S)
    flushes, slower_s = simulate_group_commit(clients, cpu_s * more, FLUSH_S)
    return Setting("slow", committed(flushes), "fast", committed(fewer), slower_s / faster_s, 1.0, known)


def count_flushes(pattern: Pattern) -> float:
    return pattern.flushes


@pytest.mark.parametrize("clients", [2, 8, 32])
@pytest.mark.parametrize("cpu_s", [0.0002, 0.001])
@pytest.mark.parametrize("more", [1.5, 3, 10])
def test_cpu_time_raises_flushes_per_operation_and_not_per_second(clients: int, cpu_s: float, more: float) -> None:
    setting = compare_cpu(clients, cpu_s, more, clients)
    assert setting.may_share(count_flushes)
    assert setting.other_pattern is not None
    assert setting.pattern.flushes / setting.measured <= 1.05 * setting.other_pattern.flushes


def test_more_flushes_per_second_and_those_of_one_client_are_no_consequence() -> None:
    flushes, slower_s = simulate_group_commit(8, 0.0005, FLUSH_S)
    _, faster_s = simulate_group_commit(8, 0.0005, 0)
    durable = Setting("on", committed(flushes), "off", committed(20), slower_s / faster_s, 1.0, 8)
    assert not durable.may_share(count_flushes)
    assert not compare_cpu(8, 0.0005, 3, 1).may_share(count_flushes)
    assert compare_cpu(8, 0.0005, 3, None).may_share(count_flushes)
    assert not Setting("on", committed(flushes), "", None, 1.0, 1.0, 8).may_share(count_flushes)


def judge(factor: str, setting: Setting, *times: float) -> Outcome:
    """Return what replicas come to that do operations so many times as fast as the first one."""
    figures: Figures = [[1000 * times_as_fast * (1 + 0.001 * round_) for round_ in range(5)] for times_as_fast in times]
    return plan_trial(factor, setting, UNIT).judge(figures)


def test_a_faster_setting_that_only_reads_is_compared_too() -> None:
    """As SQLite with synchronous = off where its reads miss the cache and its writes stay in the page cache."""
    reading = Pattern(200, 0, {4096: 200}, {}, 1.0, 1.0, 0.0, 1.0, operations=1000)
    setting = Setting("full", committed(1000), "off", reading, 0.25, 1.0, 4)
    assert judge("write_size", setting, 1, 9, 1, 4, 4).sentences


@pytest.mark.parametrize(
    ("factor", "times", "alone", "shared"),
    [
        ("flush", (1, 4, 4), True, "flushes"),
        ("write_size", (1, 9, 1, 4, 4), True, "writes"),
        ("sequentiality", (1, 4, 1), False, "flushes"),
    ],
)
def test_a_difference_that_replicas_reproduce_is_no_answer_where_counts_may_be_shared(
    factor: str, times: tuple[float, ...], alone: bool, shared: str
) -> None:
    assert judge(factor, compare_cpu(8, 0.0005, 10, 1), *times).is_borne_out is alone
    several = judge(factor, compare_cpu(8, 0.0005, 10, 8), *times)
    assert several.is_borne_out is None
    assert several.obstacle is not None
    assert f"commits of the 8 clients can share {shared}," in several.obstacle


@pytest.mark.parametrize(("flushes", "answer"), [(900, None), (1030, None), (2000, False)])
def test_flushes_that_are_not_more_but_longer_are_not_refuted(flushes: float, answer: bool | None) -> None:
    outcome = judge("flush", Setting("slow", committed(flushes), "fast", committed(1000), 3.0, 1.0, 8), 1, 1, 1)
    assert outcome.is_borne_out is answer
    assert answer is False or "hardly flushes more often per operation than fast" in str(outcome.obstacle)


def test_what_an_idle_device_allows_is_not_rounded_away() -> None:
    seldom_busy = Setting("slow", committed(2000), "fast", committed(1000), 1.1, 0.03, 1)
    told = judge("flush", seldom_busy, 1, 1.1, 1.1)
    assert told.is_borne_out is None
    assert "3 % of the time; without that time the DBMS would be 1.03x as fast, and fast is 1.10x" in str(told.obstacle)
    assert judge("flush", seldom_busy, 1, 1, 1).is_borne_out is False


def test_an_idle_device_refutes_nothing_that_clients_were_seen_waiting_for() -> None:
    """A fast flush takes the kernel as long as the device."""
    waiting = Setting("slow", committed(2000), "fast", committed(1000), 3.0, 0.2, 1, is_timed=True)
    assert judge("flush", waiting, 1, 3, 3).is_borne_out is True
    assert judge("flush", replace(waiting, is_timed=False), 1, 3, 3).is_borne_out is None


def test_large_ratios_are_plain_numbers() -> None:
    told = judge("flush", Setting("slow", committed(2000), "fast", committed(1000), 150.0, 1.0, 1), 1, 1.1, 1.1)
    assert "where the DBMS did 150 times as many." in told.sentences


@pytest.mark.parametrize(("factor", "times"), [("flush", (1, 1, 1)), ("write_size", (1, 1, 1, 1, 1))])
def test_replicas_that_show_no_difference_refute_also_what_may_be_shared(factor: str, times: tuple[float, ...]) -> None:
    refuted = judge(factor, compare_cpu(8, 0.0005, 10, 8), *times)
    assert (refuted.is_borne_out, refuted.obstacle) == (False, None)


def test_more_requests_at_a_time_gain_no_more_than_clients_wait() -> None:
    busy, waited = (
        judge("parallelism", Setting("default", committed(10), "", None, 1.0, 0.9, waited_share=share), 1, 4)
        for share in (None, 0.5)
    )
    assert (busy.most_gain, waited.most_gain) == pytest.approx((1 / (0.1 + 0.9 / 4), 1 / (0.5 + 0.5 / 4)))
    assert "the device is busy for 90 % of the time, so that is worth at most" in busy.sentences
    assert "clients wait for reads and writes for at most 50 % of their time, so that" in waited.sentences
