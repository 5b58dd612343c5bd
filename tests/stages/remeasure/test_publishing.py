"""What new pairs of runs measured is published; the sweep's figures stay as evidence."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from knobscope.specs import Case, load_study
from knobscope.stages.detect import create_schema, replace_effects
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.command import _judge
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.publishing import find_same_effect, list_new_effects, qualify_gap, restate_finding
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import NOTHING, Amount
from knobscope.text.formats import loosen_units
from knobscope.text.sentences import Sentences

ROOT = Path(__file__).parents[3]
SPECS = load_study(ROOT / "specs/studies/paper-sqlite.yaml", ROOT)
CASE = Case("sqlite", "nvme-consumer", "ycsb-a")
QUESTION = Question(CASE, "synchronous", "off", {"a": 1}, {}, (0,), swept=Amount(0.7, 0.1, 8), least=0.05)


def pairs_with(ratio: float, ops: float = 100.0) -> Any:
    """Eight pairs of runs that differ by a few per cent."""
    return [
        {"pair": pair, "is_reference": is_reference, "status": "ok",
         "throughput_ops": ops * (1 if is_reference else ratio) * (1 + 0.01 * (pair % 3))}
        for pair in range(8) for is_reference in (True, False)
    ]  # fmt: skip


def answer_with(ratio: float, question: Question = QUESTION) -> Answer:
    """An answer of such pairs."""
    answer = Answer(question)
    answer.add(ITSELF, pairs_with(ratio))
    return answer


def finding(rule: str, effect: float, **evidence: Any) -> dict[str, Any]:
    row = {
        "rule": rule, "dbms": "sqlite", "device": "nvme-consumer", "workload": "ycsb-a", "knob": "synchronous",
        "value": "off", "verdict": "mismatch", "effect": effect,
        "effect_low": effect - 0.1, "effect_high": effect + 0.1,
        "penalty": 1 + effect, "evidence": {"baseline": "full", "step": -1, **evidence},
    }  # fmt: skip
    sentence = Sentences(SPECS.dbms).say(SPECS.rules[rule], row)
    return {**row, "evidence": json.dumps(row["evidence"]), "sentence": f"{sentence} It paused once."}


def test_a_finding_says_what_new_pairs_measured() -> None:
    swept = finding("intuition", 1.0, expect="faster", throughput_ratio=2.0)
    assert "2x faster" in swept["sentence"]
    row = restate_finding(answer_with(1.5), SPECS.rules["intuition"], swept, Sentences(SPECS.dbms))  # type: ignore[arg-type]
    assert (row["effect"], row["penalty"]) == (pytest.approx(0.5), pytest.approx(1.5))
    assert row["effect_low"] <= 0.5 <= row["effect_high"]
    assert "50 % faster" in row["sentence"]
    assert "2x faster" not in row["sentence"]
    assert row["sentence"].endswith("It paused once.")
    evidence = json.loads(row["evidence"])
    assert evidence["throughput_ratio"] == pytest.approx(1.5)
    assert (evidence["sweep"]["effect"], evidence["pairs"]) == (1.0, 8)


def test_an_effect_that_only_both_together_show_is_published_by_both() -> None:
    """By the new pairs alone it would read "no clear effect", as a mismatch."""
    answer = Answer(replace(QUESTION, swept=Amount(0.12, 0.02, 8)))
    scatter = (0.09, -0.09, 0.07, -0.07, 0.08, -0.08, 0.06, -0.06)
    runs = [
        {"pair": pair, "is_reference": is_reference, "status": "ok",
         "throughput_ops": 100.0 * (1 if is_reference else math.exp(0.05 + noise))}
        for pair, noise in enumerate(scatter) for is_reference in (True, False)
    ]  # fmt: skip
    answer.add(ITSELF, runs)  # type: ignore[arg-type]
    assert not answer.is_reproduced
    assert not answer.is_gone
    (effect,) = list_new_effects([answer])
    assert 0.05 < effect["estimate"] < 0.12
    assert effect["low"] > 0
    swept = finding("intuition", math.expm1(0.12), expect="faster")
    row = restate_finding(answer, SPECS.rules["intuition"], swept, Sentences(SPECS.dbms))  # type: ignore[arg-type]
    assert "no clear effect" not in row["sentence"]
    assert "with the runs of the sweep it is" in answer.describe()
    assert answer.undecided == "not_tested"


def test_a_rule_that_found_nothing_in_the_effect_states_the_same_figures() -> None:
    """The report said 2.5x in one sentence and 2.3x, the published figure, in another."""
    swept = finding("intuition", math.expm1(0.7), expect="faster") | {"verdict": "none"}
    rows = [
        swept | {"verdict": "mismatch"},
        swept,
        swept | {"value": "normal"},
        swept | {"device": "hdd-7200"},
        swept | {"effect": 0.3},  # of another quantity, such as latency
    ]
    assert find_same_effect(answer_with(1.5), rows) == [1]  # type: ignore[arg-type]
    assert find_same_effect(answer_with(1.5, replace(QUESTION, swept=None)), rows) == []  # type: ignore[arg-type]


def test_a_rule_that_found_nothing_says_when_the_effect_did_not_reproduce() -> None:
    """The report listed it as a clear effect, next to the refuted one of another rule."""
    sound = finding("intuition", math.expm1(0.7), expect="faster") | {"verdict": "none"}
    rows = [sound | {"verdict": "mismatch", "cause": None}, sound]
    judged = _judge(SPECS, [answer_with(1.0)], rows)  # type: ignore[arg-type]
    assert judged[0]["confirmed"] == "no"
    assert judged[1] == {"sentence": f"{sound['sentence']} The effect did not reproduce in new runs."}


def test_what_a_layer_would_gain_is_said_of_a_configuration_once() -> None:
    """All values of all knobs are compared with the default, so the report said four times what merging gains it."""
    rows = [{**finding("intuition", math.expm1(0.7), expect="faster"), "cause": None} for _ in range(3)]
    questions = QUESTION, replace(QUESTION, value="normal", findings=(1, 2))
    answers = [answer_with(2.0, question) for question in questions]
    for answer in answers:
        answer.add("merged", pairs_with(2.0, 300.0), {"merge": "32KiB"})
    judged = _judge(SPECS, answers, rows)  # type: ignore[arg-type]
    assert ["would be 3x faster" in loosen_units(row["sentence"]) for row in judged.values()] == [True, False, False]


def test_an_effect_of_new_pairs_alone_is_not_called_chance() -> None:
    evidence = {"baseline": "full", "step": -1, "obstacle": "noise", "smallest": 0.2}
    row = finding("intuition", 1.0, expect="faster") | {"verdict": "insufficient"}
    for sweep, said in (({}, "may be chance"), ({"sweep": {}}, "the runs of the sweep could not tell from noise")):
        sentence = Sentences(SPECS.dbms).say(SPECS.rules["intuition"], {**row, "evidence": evidence | sweep})
        assert said in sentence


def test_a_gap_between_tiers_gets_the_new_effect_on_its_side() -> None:
    sides = {"lower": {"effect": 0.1, "low": 0.05, "high": 0.15}, "higher": {"effect": 1.2, "low": 1.1, "high": 1.3}}
    tiers = {"lower_device": "hdd-7200", "higher_device": "nvme-consumer", "opposite": False, "ratio_of_ratios": 2.0}
    swept = finding("tier", 1.0, **sides, **tiers)
    remainder = Amount(math.log(1.1), 0.01, 8)
    answer = answer_with(1.65, replace(QUESTION, other_device="hdd-7200", remainder=remainder))
    row = restate_finding(answer, SPECS.rules["tier"], swept, Sentences(SPECS.dbms))  # type: ignore[arg-type]
    evidence = json.loads(row["evidence"])
    assert row["effect"] == pytest.approx(0.5)
    assert evidence["higher"]["effect"] == pytest.approx(0.65)
    assert evidence["lower"] == sides["lower"]
    assert "65 % faster" in row["sentence"]
    assert list_new_effects([answer]) == []


def test_an_effect_that_is_no_longer_reversed_on_the_higher_tier_is_not_said_to_be() -> None:
    sides = {
        "lower": {"effect": -0.08, "low": -0.1, "high": -0.06},
        "higher": {"effect": 0.09, "low": 0.07, "high": 0.11},
    }
    tiers = {"lower_device": "hdd-7200", "higher_device": "nvme-consumer", "opposite": True, "ratio_of_ratios": 1.185}
    swept = finding("tier", 0.185, **sides, **tiers, tier_gap=0.2, smallest=0.2)
    remainder = Amount(math.log(0.92), 0.001, 8)
    answer = answer_with(0.999, replace(QUESTION, other_device="hdd-7200", remainder=remainder, swept=None))
    row = restate_finding(answer, SPECS.rules["tier"], swept, Sentences(SPECS.dbms))  # type: ignore[arg-type]
    assert (row["verdict"], row["penalty"]) == ("insufficient", None)
    assert "reversed" not in row["sentence"]


@pytest.mark.parametrize(
    ("opposite", "gone", "other", "verdict", "is_told"),
    [
        (True, "hdd-7200", None, "insufficient", True),
        (False, "hdd-7200", None, "mismatch", True),
        (True, "slow-unit", None, "mismatch", False),
        (True, "nvme-consumer", "hdd-7200", "mismatch", False),  # of the gap, whose own words say it
    ],
)
def test_a_gap_says_when_the_effect_on_one_side_did_not_reproduce(
    opposite: bool, gone: str, other: str | None, verdict: str, is_told: bool
) -> None:
    sides = {"lower": {"effect": 0.2, "low": 0.1, "high": 0.3}, "higher": {"effect": -0.1, "low": -0.2, "high": -0.05}}
    gap = finding("tier", -0.25, **sides, lower_device="hdd-7200", higher_device="nvme-consumer", opposite=opposite)
    what_if = {**{name: gap[name] for name in ("dbms", "workload", "knob", "value")}, "device": gone}
    row = qualify_gap(gap, [{**what_if, "other_device": other, "is_gone": True}])  # type: ignore[arg-type,typeddict-item]
    assert row["verdict"] == verdict
    assert row["sentence"].endswith("On hdd-7200 the effect did not reproduce in new runs.") == is_told


def test_an_effect_that_did_not_reproduce_keeps_its_figures() -> None:
    swept = finding("intuition", 1.0, expect="faster", throughput_ratio=2.0)
    answer = answer_with(1.0)
    assert answer.is_gone
    assert restate_finding(answer, SPECS.rules["intuition"], swept, Sentences(SPECS.dbms)) == {}  # type: ignore[arg-type]
    assert list_new_effects([answer]) == []


def test_the_effect_of_new_pairs_replaces_that_of_the_sweep(tmp_path: Path) -> None:
    path = tmp_path / "study.duckdb"
    with duckdb.connect(str(path)) as connection:
        create_schema(connection)
        connection.execute(
            "INSERT INTO effects BY NAME SELECT 'sqlite' AS dbms, 'nvme-consumer' AS device, 'ycsb-a' AS workload, "
            "'synchronous' AS knob, unnest(['off', 'normal']) AS value, 'throughput_ops' AS metric, 0.7 AS estimate"
        )
    question = replace(QUESTION, remainder=NOTHING)
    replace_effects(path, list_new_effects([answer_with(1.5, question)]))
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute("SELECT value, estimate, swept, low < estimate FROM effects ORDER BY 1").fetchall()
    assert rows == [("normal", 0.7, None, None), ("off", pytest.approx(math.log(1.5)), 0.7, True)]
