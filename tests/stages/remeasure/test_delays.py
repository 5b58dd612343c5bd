"""Known times per operation behind a program that delays requests: what is waited for, and what rules named."""

import math
import re

import numpy as np
import pytest
from known_times import cause

from knobscope.specs import Case
from knobscope.specs.models.quantity import Duration
from knobscope.stages.remeasure.delays import DELAYED, NO_DELAY, DelayedAnswer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.judging import judge_finding
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import NOTHING, Amount
from knobscope.tables import WhatIfRunRow

CASE = Case("toy", "drive", "w")
#: Microseconds of a read, a write and a flush of the drive; those of a flush after the larger writes of the value.
REQUEST_US = {"read": 90.0, "write": 30.0, "flush": 1000.0}
SLOW_FLUSH_US = 1500.0
DELAY_US = {"read": 100.0, "write": 100.0, "flush": 1000.0}
PER_OP = {"read": "reads_per_op", "write": "writes_per_op", "flush": "flushes_per_op"}
Waits = dict[str, float]  # of an operation, for requests of each kind


def ask(*, is_level: bool = False, rest: Amount = NOTHING) -> Question:
    value = {} if is_level else {"sync": "full"}
    return Question(CASE, "sync", "full", value, {}, (0,), None, rest, is_level)


def measure(
    name: str, cpu: tuple[float, float], waits: tuple[Waits, Waits], seed: int, more: float = 1.0, waited: float = 1.0
) -> list[WhatIfRunRow]:
    """Return pairs of runs of the reference and the value: their CPU time, and what they ask for on this device.

    On a delayed device there are `more` times as many requests; a part `waited` of their time is waited for.
    """
    rng = np.random.default_rng(seed)
    rows: list[WhatIfRunRow] = []
    for pair in range(4):
        for side, is_reference in enumerate((True, False)):
            times = {**REQUEST_US, "flush": REQUEST_US["flush"] if is_reference else SLOW_FLUSH_US}
            delayed = {op: us + DELAY_US[op] * (DELAYED.get(name) == op) for op, us in times.items()}
            mix = math.exp(rng.normal(0, 0.05))  # of operations that ask for something, and others
            asked = {op: count * mix * (more if name in DELAYED else 1.0) for op, count in waits[side].items()}
            micros = cpu[side] + waited * sum(count * delayed[op] for op, count in asked.items())
            seen = {f"{op}_us": us if op in asked else 0.0 for op, us in delayed.items()}
            seen |= {name: asked.get(op, 0.0) for op, name in PER_OP.items()}
            throughput = 1e6 / micros * math.exp(rng.normal(0, 0.005))
            row = {"pair": pair, "is_reference": is_reference, "status": "ok", "reason": None, "property": name, **seen}
            rows.append(WhatIfRunRow(**row, throughput_ops=throughput))  # type: ignore[typeddict-item]
    return rows


def answer(cpu: tuple[float, float], waits: tuple[Waits, Waits], question: Question | None = None) -> DelayedAnswer:
    found = DelayedAnswer(question or ask())
    found.add(ITSELF, measure(ITSELF, cpu, waits, 0))
    found.add(NO_DELAY, measure(NO_DELAY, cpu, waits, 1))
    for number, (name, op) in enumerate(DELAYED.items()):
        if any(op in one for one in waits):
            found.add(name, measure(name, cpu, waits, number + 2), {op: Duration.of_ns(1e3 * DELAY_US[op])})
        else:
            found.note_unused(name)
    return found


FLUSH = ((200.0, 250.0), ({"write": 0.5}, {"write": 0.5, "flush": 1.0}))
CPU = ((200.0, 900.0), ({"write": 0.5, "flush": 0.1}, {"write": 0.5, "flush": 0.1}))
BOTH = ((200.0, 210.0), ({}, {"read": 5.0, "write": 15.0}))


@pytest.mark.parametrize(
    ("setting", "conclusion", "shares"),
    [
        (FLUSH, "cause", {"read_delay": 0.0, "write_delay": 0.0, "flush_delay": 1500 / 1550}),
        (CPU, "not_the_device", {"read_delay": 0.0, "write_delay": 0.0, "flush_delay": 50 / 750}),
        (BOTH, "several", {"read_delay": 450 / 910, "write_delay": 450 / 910, "flush_delay": 0.0}),
    ],
)
def test_shares_are_those_of_waiting_whatever_the_delay(
    setting: tuple[tuple[float, float], tuple[Waits, Waits]], conclusion: str, shares: dict[str, float]
) -> None:
    found = answer(*setting)
    assert {name: share.estimate for name, share in found.shares.items()} == pytest.approx(shares, abs=0.05)
    for name, share in found.shares.items():
        assert share.low <= shares[name] <= share.high
    # 450 of 910 is so near to half that noise decides whether reads or writes alone count as the cause.
    assert found.conclusion == conclusion or (setting is BOTH and found.conclusion == "cause")


def test_no_configuration_waits_for_more_than_its_time() -> None:
    """Flushes take all of it, but for a microsecond; noise makes the ends of the interval more."""
    found = answer((1.0, 1.0), ({"flush": 1.0}, {"flush": 3.0}))
    said = found.describe().split("the reference configuration waits for flushes ")[1]
    assert max(map(float, re.findall(r"([\d.]+) %", said))) <= 100


def test_the_flush_that_a_rule_names_is_borne_out_or_refuted_and_sizes_are_left_to_fio() -> None:
    assert judge_finding(answer(*FLUSH), cause("flush"), "It flushes.")["confirmed"] == "yes"
    refuted = judge_finding(answer(*CPU), cause("flush"), "It flushes.")
    assert refuted["confirmed"] == "no"
    assert refuted["sentence"].startswith("Refuted")
    assert "Waiting for the device is not the cause" in refuted["confirmation"]
    assert judge_finding(answer(*FLUSH), cause("io_size"), "It is small.")["confirmed"] is None
    assert judge_finding(answer(*CPU), cause("io_size"), "It is small.")["confirmed"] == "no"
    assert judge_finding(answer(*CPU), cause("io_sequentiality"), "It sorts.")["confirmed"] == "yes"


@pytest.mark.parametrize(("more", "waited"), [(1.3, 1.0), (0.7, 1.0), (1.0, 0.5), (1.3, 0.6)])
def test_what_is_asked_for_more_or_less_often_when_it_is_slower_does_not_count_as_waiting(
    more: float, waited: float
) -> None:
    """3 flushes of 1 ms, of whose time a part is waited for, beside 200 us of CPU."""
    cpu, waits = (200.0, 200.0), ({"flush": 3.0}, {"flush": 3.0})
    found = DelayedAnswer(ask(is_level=True))
    for number, (name, change) in enumerate(
        {ITSELF: None, NO_DELAY: None, "flush_delay": {"flush": Duration("1ms")}}.items()
    ):
        found.add(name, measure(name, cpu, waits, number, more, waited), change)
    share = found.shares["flush_delay"]
    true = 3000 * waited / (200 + 3000 * waited)
    assert share.low <= true <= share.high
    assert share.estimate == pytest.approx(true, abs=0.06)
    (row,) = found.list_sensitivities()
    assert row["waited_share"] == pytest.approx(waited, abs=0.06)


def test_what_a_configuration_waits_for_is_a_share_of_its_time() -> None:
    """1,000 of 1,200 us; of what it takes more than on a lower tier, where it takes 400 us, 1,000 of 800 us."""
    cpu, waits = (200.0, 200.0), ({"flush": 1.0}, {"flush": 1.0})
    found = answer(cpu, waits, ask(is_level=True))
    assert found.shares["flush_delay"].estimate == pytest.approx(1000 / 1200, abs=0.04)
    assert judge_finding(found, None, "It is held back.") | {"confirmation": ""} == {
        "confirmed": "found",
        "cause": "flush",
        "confirmation": "",
    }
    more = answer(cpu, waits, ask(is_level=True, rest=Amount(400.0, 4.0, 3)))
    assert more.shares["flush_delay"].estimate == pytest.approx(1000 / 800, abs=0.06)


def test_sensitivities_are_elasticities_of_both_settings() -> None:
    rows = {(row["op"], row["is_reference"]): row for row in answer(*FLUSH).list_sensitivities()}
    assert set(rows) == {("write", True), ("flush", False)}  # the value's writes are a hundredth of its time
    assert rows["flush", False]["sensitivity"] == pytest.approx(-1500 / 1765, abs=0.04)
    assert rows["write", True]["sensitivity"] == pytest.approx(-15 / 215, abs=0.02)
    for row in rows.values():
        low, high = row["sensitivity_low"], row["sensitivity_high"]
        assert low is not None
        assert high is not None
        assert low < row["sensitivity"] < high
    assert (rows["flush", False]["request_us"], rows["flush", False]["delay_us"]) == (SLOW_FLUSH_US, 1000.0)


def test_an_effect_that_is_not_there_behind_the_program_is_not_followed() -> None:
    found = DelayedAnswer(ask())
    found.add(ITSELF, measure(ITSELF, *FLUSH, 0))
    assert found.is_open
    found.add(NO_DELAY, measure(NO_DELAY, (200.0, 200.0), ({}, {}), 1))
    assert not found.is_open
    assert found.conclusion == "undecided"
    assert "Behind the program the difference is not clear" in found.describe()
    assert judge_finding(found, cause("flush"), "It flushes.")["confirmed"] is None


def test_without_bpf_it_is_not_known_how_long_requests_take() -> None:
    found = DelayedAnswer(ask())
    found.add(ITSELF, measure(ITSELF, *FLUSH, 0))
    found.add(NO_DELAY, measure(NO_DELAY, *FLUSH, 1))
    assert found.is_watched
    unknown = [WhatIfRunRow(**{**row, "flush_us": None}) for row in found.runs[NO_DELAY]]  # type: ignore[typeddict-item]
    found.add(NO_DELAY, unknown)
    assert not found.is_watched
