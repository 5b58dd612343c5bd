"""Known times per operation on a device and on what-if devices: which property is the cause, and of which rule."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from known_times import (
    BOTH,
    CASE,
    CPU,
    FLUSH,
    READS,
    REFERENCE_US,
    UNIT,
    answer,
    as_reference,
    ask,
    cause,
    pairs,
)

from knobscope.specs import read_shipped_rule, shipped_rules
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.judging import judge_finding
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import NOTHING, Amount, Share


@pytest.mark.parametrize(
    ("times", "conclusion", "first"),
    [
        (FLUSH, "cause", "flush"),
        (UNIT, "cause", "write_unit"),
        (CPU, "not_the_device", None),
        (BOTH, "several", "write_unit"),
        ({ITSELF: 201, "everything": 200}, "undecided", None),  # no effect to explain
    ],
)
def test_the_cause_is_the_property_whose_change_removes_the_effect(
    times: Mapping[str, float], conclusion: str, first: str | None
) -> None:
    found = answer(times)
    assert found.conclusion == conclusion
    assert (found.causes[0][0] if found.causes else None) == first


@pytest.mark.parametrize("what", ["a write unit", "reads"])
def test_what_could_not_be_measured_is_neither_excluded_nor_refuted(what: str) -> None:
    name, rule = {"a write unit": ("write_unit", "io_size"), "reads": ("latency", "read_amplification")}[what]
    found = answer({ITSELF: 2200, "everything": 260, "flush": 1900, "bandwidth": 2190})
    assert found.conclusion == "several"
    failed = [{**row, "status": "invalid", "reason": "the machine is slow."} for row in pairs(name, 520)]
    found.add(name, failed)
    assert found.conclusion == "device"
    judged = judge_finding(found, cause(rule), "It is slower.")
    assert (judged["confirmed"], "sentence" in judged) == ("not_tested", False)
    assert "there is no result: the machine is slow. Most of it is due to the device;" in (judged["confirmation"] or "")
    found.add(name, pairs(name, 2190))
    assert (found.conclusion, found.failures) == ("several", {})


def test_two_properties_that_each_remove_most_of_it_are_both_a_cause() -> None:
    found = answer({ITSELF: 2200, "everything": 260, "flush": 400, "write_unit": 300, "bandwidth": 2190})
    assert found.describe().endswith(
        "Half of it or more disappears with a write unit of 4 KiB, and also with a flush that takes no time: "
        "each of these properties is a cause."
    )
    judged = [judge_finding(found, cause(rule), "It is slower.")["confirmed"] for rule in ("flush", "io_size")]
    assert judged == ["yes", "yes"]


def test_that_no_property_is_the_cause_takes_shares_that_surely_are_less_than_half() -> None:
    found = answer(BOTH)
    assert found.describe().endswith("No single property explains it, but all of them together do.")
    found.shares["write_unit"] = Share(0.45, 0.36, 0.52)
    assert found.conclusion == "device"
    assert found.describe().endswith("due to the device; these runs cannot tell to which of its properties.")


def test_the_way_that_a_flush_without_cost_still_takes_is_part_of_the_flush() -> None:
    """A flush of 37 us, ten per operation: without its cost it still takes 8.4 us, the way to the modelled device."""
    found = answer({ITSELF: 1000, "everything": 710, "flush": 714})
    assert found.shares["flush"].estimate < 0.5
    assert found.conclusion == "not_the_device"
    runs = {name: pairs(name, us) for name, us in ((ITSELF, 1000), ("everything", 710), ("flush", 714))}
    known = Answer(ask())
    for name, rows in runs.items():
        known.add(name, [{**row, "flush_way_us": 0 if row["is_reference"] else 84} for row in rows])
    assert known.amounts[ITSELF] == found.amounts[ITSELF]  # there the model answers early, and nothing is left
    assert found.shares["flush"].estimate + 84 / 800 == pytest.approx(known.shares["flush"].estimate, abs=0.01)
    gap = Answer(ask(other="disk", rest=Amount(0.1, 0.01, 3)))
    for name, rows in runs.items():
        gap.add(name, [{**row, "flush_way_us": 0 if row["is_reference"] else 84} for row in rows])
    assert gap.amounts["flush"].mean == pytest.approx(-np.log(714 / REFERENCE_US), abs=0.05)  # ratios do not add up


@pytest.mark.parametrize(("busy_us", "conclusion"), [(5, "not_the_device"), (300, "undecided"), (600, "undecided")])
def test_time_that_requests_still_take_without_cost_may_be_the_way_to_the_model(busy_us: int, conclusion: str) -> None:
    """Of 800 us more, 300 are gone without all costs; what the device is still busy for then may be its cost, too."""
    found = Answer(ask())
    for name, micros in ((ITSELF, 1000), ("everything", 700)):
        runs = pairs(name, micros)
        found.add(name, [{**row, "busy_us": 0 if row["is_reference"] else busy_us} for row in runs])
    assert found.conclusion == conclusion
    assert found.is_open == (conclusion == "undecided")
    assert ("if the path to the modelled device is included" in found.describe()) == found.is_open
    refuted = judge_finding(found, cause("flush"), "It flushes.")["confirmed"]
    assert refuted == ("not_tested" if found.is_open else "no")


def test_cpu_spent_on_order_is_not_refuted_by_the_way_to_the_model() -> None:
    found = Answer(replace(ask(), blamed=frozenset({"everything"})))
    for name, micros in ((ITSELF, 1000), ("everything", 950)):
        found.add(name, [{**row, "busy_us": 0 if row["is_reference"] else 600} for row in pairs(name, micros)])
    assert (found.shares["everything"].is_minor, found.conclusion) == (True, "undecided")
    assert judge_finding(found, cause("io_sequentiality"), "It sorts.")["confirmed"] is None


def test_a_rule_is_judged_by_the_device_without_what_it_blames() -> None:
    """Asked by default: one device each. What they leave open stays with fio."""
    asked = replace(ask(), blamed=frozenset({"flush"}))
    shown = answer({ITSELF: 2200, "flush": 500}, asked)
    assert judge_finding(shown, cause("flush"), "It flushes.")["confirmed"] == "yes"
    assert judge_finding(shown, None, "It flushes.")["cause"] == "flush"
    cpu = answer({ITSELF: 2200, "flush": 2190}, asked)
    refuted = judge_finding(cpu, cause("flush"), "It flushes.")
    assert (cpu.conclusion, refuted["confirmed"]) == ("not_as_blamed", "no")
    assert "takes no time. Most of it remains: something else is the cause." in refuted["confirmation"]
    assert refuted["sentence"].startswith("Refuted")
    for open_ in (answer({ITSELF: 2200, "flush": 1500}, asked), answer({ITSELF: 2200}, asked)):
        assert judge_finding(open_, cause("flush"), "It flushes.")["confirmed"] is None
    part = answer({ITSELF: 2200, "flush": 1500}, asked).describe()
    assert part.endswith("That is a part of it, and certainly less than half; the cause of the rest is not known.")
    noisy = answer({ITSELF: 2200}, asked)
    noisy.shares["flush"] = Share(1.0, -math.inf, math.inf)
    assert noisy.describe().endswith("more per operation. These runs cannot tell what the cause is.")
    several = replace(noisy, question=replace(asked, clients=2)).describe()
    assert several.endswith("per operation, over all clients. These runs cannot tell what the cause is.")
    spent = replace(ask(), blamed=frozenset({"everything"}))
    wasted = judge_finding(answer(CPU, spent), cause("io_sequentiality"), "It sorts.")
    needed = judge_finding(answer({ITSELF: 2200, "everything": 260}, spent), cause("io_sequentiality"), "It sorts.")
    assert (wasted["confirmed"], needed["confirmed"]) == ("yes", "no")
    assert "Most of it is due to the device." in needed["confirmation"]


DEFAULT = {"sync": "full"}


@pytest.mark.parametrize(
    ("other", "rest", "times", "conclusion", "share"),
    [
        (None, NOTHING, FLUSH, "cause", 1700 / 2200),
        (None, NOTHING, {ITSELF: 2200, "everything": 1900}, "not_the_device", None),
        # 2,200 us where another device takes 200: of the 2,000 more, 1,700 go with the flush.
        ("disk", Amount(200, 2, 7), FLUSH, "cause", 1700 / 2000),
        ("disk", Amount(2190, 20, 7), FLUSH, "undecided", None),  # as long as on the other one
        ("disk", Amount(3000, 20, 7), FLUSH, "undecided", None),  # it takes less, though its slowest operations may not
    ],
)
def test_what_holds_a_configuration_back_is_the_share_of_its_own_time(
    other: str | None, rest: Amount, times: Mapping[str, float], conclusion: str, share: float | None
) -> None:
    found = Answer(Question(CASE, None, None, DEFAULT, DEFAULT, (0,), other, rest, is_level=True))
    for name, micros in times.items():
        of_others = [run for run in pairs(name, REFERENCE_US) if not run["is_reference"]]
        found.add(name, of_others + as_reference(pairs(name, micros)))
    assert found.conclusion == conclusion
    if share is not None:
        assert found.shares["flush"].estimate == pytest.approx(share, abs=0.02)
        assert "the default configuration took 2" in found.describe()
        assert ("more than on disk" in found.describe()) == (other is not None)
        judged = judge_finding(found, None, "It is slow.")
        assert (judged["confirmed"], judged["cause"]) == ("found", "flush")
        (row,) = [row for row in found.rows() if row["property"] == "flush"]
        assert (row["knob"], row["is_level"], row["other_device"]) == (None, True, other)


@pytest.mark.parametrize(
    ("without", "confirmed", "words"),
    [
        (500, "found", "), disappears with a flush that takes no time: this property is the cause."),
        (2000, "no", "Most of it remains: something else is the cause."),
        (1400, "not_tested", "the cause of the rest is not known."),
    ],
)
def test_what_limits_the_default_is_tested_by_the_device_without_it(without: float, confirmed: str, words: str) -> None:
    question = Question(CASE, None, None, DEFAULT, DEFAULT, (0,), is_level=True, blamed=frozenset({"flush"}))
    found = Answer(question)
    for name, micros in {ITSELF: 2200.0, "flush": without}.items():
        found.add(name, as_reference(pairs(name, micros)))
    judged = judge_finding(found, None, "Flushes limit it.")
    assert (judged["confirmed"], words in (judged["confirmation"] or "")) == (confirmed, True)
    refuted = "Refuted: most of the time remains without what it blames. Original finding: Flushes limit it."
    assert judged.get("sentence") == (refuted if confirmed == "no" else None)


def test_shares_are_of_time_and_cover_the_truth() -> None:
    share = answer(FLUSH).shares["flush"]
    assert share.low < 1700 / 2000 < share.high
    assert share.estimate == pytest.approx(0.85, abs=0.03)
    assert "bandwidth" not in dict(answer(FLUSH).causes)


@pytest.mark.parametrize(
    ("rule", "times", "confirmed"),
    [
        ("flush", FLUSH, "yes"),
        ("flush", UNIT, "no"),
        ("flush", CPU, "no"),
        ("flush", BOTH, "not_tested"),  # a third is its doing: one of several causes
        ("io_size", UNIT, "yes"),
        ("io_size", FLUSH, "no"),
        ("io_size", CPU, "no"),
        ("read_amplification", READS, "yes"),
        ("read_amplification", FLUSH, "no"),
        ("read_amplification", CPU, "no"),
        ("io_sequentiality", CPU, "yes"),
        ("io_sequentiality", FLUSH, "no"),
        ("flush", {ITSELF: 201, "everything": 200}, "not_tested"),
    ],
)
def test_a_rule_keeps_its_finding_where_its_own_cause_was_found(
    rule: str, times: Mapping[str, float], confirmed: str
) -> None:
    judged = judge_finding(answer(times), cause(rule), "It is slower.")
    assert judged["confirmed"] == confirmed
    assert ("sentence" in judged) == (confirmed == "no")
    if confirmed == "no":
        assert judged["sentence"] == f"Refuted: {cause(rule).refuted}. Original finding: It is slower."


def test_what_a_layer_would_gain_is_said_of_the_slower_setting_and_explains_nothing() -> None:
    found = answer({ITSELF: 2200, "flush": 500})
    explained = found.conclusion, found.describe()
    own = [{**row, "written_per_flush": 4096.0} for row in pairs(ITSELF, 2200)]
    found.add(ITSELF, own)
    found.add("merged", pairs("merged", 1100), {"merge": "32KiB"})
    found.add("spread", pairs("spread", 2200), {"channels": 6})
    assert (found.conclusion, found.describe()) == explained
    assert set(found.shares) == {"flush"}
    rows = {row["property"]: row for row in found.rows()}
    assert rows["merged"]["gain"] == pytest.approx(math.log(2), abs=0.03)
    assert rows["merged"]["gain_low"] < rows["merged"]["gain"] < rows["merged"]["gain_high"]
    assert rows["flush"]["gain"] == pytest.approx(math.log(4.4), abs=0.03)
    assert "gain" not in rows[ITSELF]
    sentence = judge_finding(found, cause("flush"), "It flushes.")["sentence"]
    assert sentence.startswith(
        "It flushes. With a flush only when 32 KiB have been written (4 KiB per flush on average now), sync = full "
        "would be 2x faster"
    )
    assert "queues" not in sentence  # they gain nothing


@pytest.mark.parametrize("rule", shipped_rules())
def test_an_answer_draws_its_conclusion_once(rule: str) -> None:
    """The rule's words follow "So", at the end of what the runs say."""
    if (named := read_shipped_rule(rule).about.cause) is not None:
        for times in (FLUSH, CPU, READS):
            confirmation = judge_finding(answer(times), named, "It is slow.")["confirmation"] or ""
            assert confirmation.lower().count("so ") <= 1, confirmation


def test_the_reference_may_be_the_slower_setting() -> None:
    found = answer({ITSELF: 50, "merged": 50})
    found.add("spread", [{**row, "throughput_ops": 2 * row["throughput_ops"]} for row in pairs("spread", 50)])
    assert found.gains["merged"].setting == found.gains["spread"].setting == "sync = off"
    assert "With its requests spread over queues, sync = off would be 99 % faster" in found.describe_gains()


def test_a_rule_that_names_no_cause_gets_the_one_that_was_found() -> None:
    judged = judge_finding(answer(FLUSH), None, "The tiers differ.")
    assert judged["confirmed"] == "found"
    assert "with a flush that takes no time: this property is the cause." in judged["confirmation"]
    assert judge_finding(answer(CPU), None, "The tiers differ.")["confirmed"] == "not_tested"
    # Without limits of bandwidth writes would be faster, too: nobody said that it is the reads.
    assert judge_finding(answer(READS), None, "The tiers differ.")["cause"] == "bandwidth"


def test_a_gap_between_tiers_is_explained_against_the_effect_on_the_other_one() -> None:
    """On the disk the value is half as fast; on the SSD an eleventh, and again half without the flush."""
    question = ask("disk", Amount(-math.log(2), 0.02, 6))
    found = answer({ITSELF: 2200, "everything": 300, "flush": 400, "bandwidth": 2200}, question)
    assert found.conclusion == "cause"
    assert found.shares["flush"].estimate == pytest.approx(1.0, abs=0.05)
    assert "than on disk" not in found.describe()
    assert "as on disk" in found.describe()


def test_noise_leaves_it_undecided() -> None:
    assert answer(FLUSH, noise=1.5).conclusion == "undecided"


def test_runs_that_failed_say_why() -> None:
    found = Answer(ask())
    broken = [{**row, "status": "timeout", "reason": "no end after 40 s"} for row in pairs(ITSELF, 2000)]
    found.add(ITSELF, broken)  # type: ignore[arg-type]
    assert found.conclusion == "undecided"
    assert "without a result: no end after 40 s" in found.describe()


def test_every_cause_that_a_rule_names_has_properties() -> None:
    named = [rule for rule in shipped_rules() if read_shipped_rule(rule).about.cause is not None]
    for rule in named:
        assert judge_finding(answer(FLUSH), cause(rule), "x.")["confirmed"] in ("yes", "no")


def test_one_of_the_fastest_is_measured_until_it_is_surely_faster() -> None:
    found = Answer(replace(ask(), swept=None, followed=False, risk="none", findings=()))
    found.add(ITSELF, pairs(ITSELF, 150, noise=1.0, count=3))
    assert not found.is_settled
    found.add(ITSELF, pairs(ITSELF, 20, noise=0.05, count=6))
    assert found.is_settled
    assert not found.is_open  # of what it is faster, nobody asks
    unasked = Answer(replace(ask(), swept=None, followed=False))
    unasked.add(ITSELF, pairs(ITSELF, 150, noise=1.0, count=3))
    assert unasked.is_settled


def test_no_more_than_all_of_an_effect_disappears() -> None:
    """Without the flush the value that was slower is even faster, by noise: the report said 102 %."""
    found = answer({ITSELF: 2200, "flush": REFERENCE_US - 40})
    assert found.shares["flush"].estimate > 1
    assert "Most of it, 100 % (95 % interval" in found.describe().replace("\xa0", " ")
    assert "to 100 %)" in found.describe().replace("\xa0", " ")
