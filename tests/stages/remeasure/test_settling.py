"""Findings that are *insufficient*, and what an experiment on known devices makes of them."""

import json
import math

import numpy as np
import pytest

from knobscope.specs import Case, read_shipped_rule
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.settling import limit_penalty, settle_finding
from knobscope.tables import WhatIfRunRow
from knobscope.tables.detection import FindingRow

#: `full` takes 2,200 us per operation and `off` 200.
LEFT_OPEN: FindingRow = {
    "rule": "flush", "dbms": "toy", "device": "ssd", "workload": "w", "knob": "sync", "value": "full",
    "verdict": "insufficient", "effect": 200 / 2200 - 1, "penalty": None, "sentence": "Nobody can tell.",
}  # fmt: skip


def measure(name: str, slower_us: float, noise: float) -> list[WhatIfRunRow]:
    """Return four pairs of runs on a device; the faster setting takes 200 us on each."""
    rng = np.random.default_rng(7)
    rows: list[WhatIfRunRow] = []
    for pair in range(4):
        for is_reference, micros in ((True, 200.0), (False, slower_us)):
            throughput = 1e6 / micros * math.exp(rng.normal(0, noise))
            row: WhatIfRunRow = {"pair": pair, "is_reference": is_reference, "status": "ok", "reason": None}
            rows.append({**row, "property": name, "throughput_ops": throughput})
    return rows


def answer_with(flush_us: float | None, itself_us: float, noise: float, least: float = 0.0) -> Answer:
    """Return the answer where the slower setting takes so long, and so long on a device whose flush takes no time."""
    blamed = frozenset({"flush"})
    configurations = {"sync": "full"}, {"sync": "off"}
    answer = Answer(
        Question(Case("toy", "ssd", "w"), "sync", "full", *configurations, (0,), blamed=blamed, least=least)
    )
    answer.add(ITSELF, measure(ITSELF, itself_us, noise))
    if flush_us is not None:
        answer.add("flush", measure("flush", flush_us, noise))
    return answer


def settle(
    flush_us: float | None,
    itself_us: float = 2200,
    noise: float = 0.01,
    requires: str | None = None,
    least: float = 0.0,
) -> FindingRow:
    """Return what becomes of it where the slower setting takes so long on a device whose flush takes no time."""
    answer = answer_with(flush_us, itself_us, noise, least)
    cause = read_shipped_rule("flush").about.cause
    assert cause is not None
    cause = cause.model_copy(update={"requires": requires})
    return settle_finding(answer, cause, {**LEFT_OPEN, "evidence": json.dumps({"is_more": True, "is_less": False})})


def test_a_cause_that_the_runs_left_open_is_found_without_it() -> None:
    found = settle(500)
    assert (found["verdict"], found["confirmed"]) == ("mismatch", "yes")
    assert found["penalty"] == pytest.approx(2200 / 500, rel=0.1)
    assert "85 %" in str(found["confirmation"])
    assert "and the slower setting waits for the device's flushes. The runs alone" in found["sentence"]
    assert found["sentence"].endswith("Nobody can tell.")


def test_a_cause_that_the_runs_left_open_is_ruled_out() -> None:
    found = settle(2150)
    assert (found["verdict"], found["confirmed"]) == ("none", "not_tested")
    assert "flushing does not explain it" in found["sentence"]
    assert "penalty" not in found


def test_what_the_experiment_leaves_open_stays_so() -> None:
    """Neither half of the effect nor less than half is sure."""
    found = settle(1250, noise=0.4)
    assert found.keys() == {"confirmed", "confirmation"}
    assert found["confirmed"] == "not_tested"


def test_an_experiment_alone_has_to_be_sure() -> None:
    """Most of the effect disappears, but surely only a fifth of it."""
    found = settle(900, noise=0.35)
    assert found.keys() == {"confirmed", "confirmation"}
    assert "less than a quarter may disappear: no cause is named" in str(found["confirmation"])


def test_an_effect_that_is_too_small_by_now_is_no_mismatch() -> None:
    assert settle(500, least=math.log(11.5))["confirmed"] == "not_tested"
    assert settle(500, least=math.log(10))["verdict"] == "mismatch"


@pytest.mark.parametrize(("requires", "verdict"), [("is_more", "mismatch"), ("is_less", None), ("is_gone", None)])
def test_no_experiment_shows_what_the_runs_have_to(requires: str, verdict: str | None) -> None:
    """A setting that waits for reads need not read more: prefetching reads as much, more at a time."""
    assert settle(500, requires=requires).get("verdict") == verdict
    assert settle(2150, requires=requires)["verdict"] == "none"


def test_an_effect_that_does_not_show_again_says_nothing_of_its_cause() -> None:
    found = settle(None, itself_us=201)
    assert found.keys() == {"confirmed", "confirmation"}


@pytest.mark.parametrize(("penalty", "limited"), [(11.0, 2200 / 500), (2.0, 2.0), (None, None)])
def test_a_penalty_is_no_more_than_what_the_experiment_removed(penalty: float | None, limited: float | None) -> None:
    """The runs alone could not tell how much of the effect the flushes are."""
    cause = read_shipped_rule("flush").about.cause
    assert cause is not None
    finding: FindingRow = {**LEFT_OPEN, "verdict": "mismatch", "penalty": penalty, "confirmation": "Most is gone."}
    found = {**finding, **limit_penalty(answer_with(500, 2200, 0.01), cause, finding)}
    assert found["penalty"] == (limited and pytest.approx(limited, rel=0.1))
    assert ("The penalty is for that part alone." in (found["confirmation"] or "")) == (penalty == 11.0)
