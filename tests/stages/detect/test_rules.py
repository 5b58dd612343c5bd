"""Rules as folders: thresholds reach them, and a rule that does not keep to the interface is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from generated_studies import Study, Truth

from knobscope.errors import UserError
from knobscope.specs import VERDICTS, StudySpecs, read_rule
from knobscope.specs.models.study import Thresholds
from knobscope.stages.detect import create_schema, run_rules

QUERY = """-- mine: a claim.
-- Source: none.
-- Needs: nothing.
-- Insufficient: never.
SELECT 'd' AS dbms, 'v' AS device, 'w' AS workload, 'none' AS verdict, getvariable('gap') AS effect,
    {found: 7} AS evidence
"""
ABOUT = """name: mine
title: Mine
question: Is it?
needs: [cases]
thresholds:
  gap: {default: 0.25, unit: ratio, meaning: a gap, source: a choice}
"""
SENTENCE = """{% macro if_mismatch() %}Yes.{% endmacro %}
{% macro if_none() %}No: {{ evidence.found }}
  and {{ effect | share }}.{% endmacro %}
{% macro if_insufficient() %}Perhaps.{% endmacro %}
"""

Make = Callable[..., Study]


def run_mine(
    specs: StudySpecs, folder: Path, query: str = QUERY, about: str = ABOUT, sentence: str = SENTENCE
) -> list[dict[str, object]]:
    mine = folder / "mine"
    mine.mkdir()
    for name, text in (("rule.sql", query), ("rule.yaml", about), ("sentence.j2", sentence)):
        (mine / name).write_text(text)
    rule = read_rule(mine)
    study = specs.study.model_copy(update={"thresholds": Thresholds()})
    with duckdb.connect() as connection:
        create_schema(connection)
        return run_rules(connection, replace(specs, study=study, rules={"mine": rule}))


def test_a_rule_is_one_folder_and_sees_its_thresholds(make_study: Make, tmp_path: Path) -> None:
    (row,) = run_mine(make_study().specs, tmp_path)
    assert (row["rule"], row["knob"], row["penalty"], row["effect"]) == ("mine", None, None, 0.25)
    assert row["sentence"] == "No: 7 and 25 %."
    assert json.loads(str(row["evidence"])) == {"found": 7}
    assert row["confirmed"] == "not_tested"


@pytest.mark.parametrize(("verdict", "said"), [("mismatch", "6 % slower ("), ("none", "no clear effect (")])
def test_a_mismatch_is_clear_whatever_an_interval_of_95_percent_holds(
    make_study: Make, tmp_path: Path, verdict: str, said: str
) -> None:
    """With a threshold `fdr` of 0.2 an effect is significant whose interval holds none."""
    effect = f"'{verdict}' AS verdict, -0.06 AS effect, -0.12 AS effect_low, 0.01 AS effect_high,"
    query = QUERY.replace("'none' AS verdict, getvariable('gap') AS effect,", effect)
    sentence = "".join(f"{{% macro if_{name}() %}}{{{{ effect_words }}}}{{% endmacro %}}" for name in VERDICTS)
    (row,) = run_mine(make_study().specs, tmp_path, query=query, sentence=sentence)
    assert str(row["sentence"]).startswith(said)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("query", "'w' AS workload,", "", "rule.sql:1: file: found no column 'workload'; expected at least dbms"),
        ("query", "AS effect", "AS afect", "found a column 'afect'; expected some of dbms"),
        ("query", "'none' AS", "'maybe' AS", "verdict 'maybe'; expected one of mismatch, none, insufficient"),
        ("query", "AS effect", "AS effect, 0 AS penalty", "rule.sql returns penalty 0; expected a factor"),
        ("query", "getvariable('gap')", "no_such()", "rule.sql:5: .*no_such does not exist"),
        (
            "query",
            "getvariable('gap')",
            "(SELECT count(*) FROM read_text('/etc/passwd'))",
            "Permission Error: .*disabled",
        ),
        ("query", "SELECT", "SELEKT", "mine/rule.sql:5: .*syntax error"),
        ("query", "SELECT", "DELETE FROM runs; SELECT", "2 statements; expected one SELECT"),
        ("query", "-- Source", "-- Sauce", "no 'source'; expected a line `-- Source: ...`"),
        ("about", "[cases]", "[caises]", "rule.yaml:4: needs.0: found 'caises'; expected one of .*cases"),
        ("about", "title: Mine", "titel: Mine", r"rule.yaml:2: titel: found an unknown key; expected title"),
        ("about", "0.25", "-1", r"rule.yaml:6: thresholds.gap.default: found -1; expected a number from 0 up"),
        ("about", "name: mine", "name: yours", "found 'yours'; expected the folder's name, 'mine'"),
        ("sentence", "if_insufficient", "if_unsure", "sentence.j2:1: .*no macro `if_insufficient`"),
        ("sentence", "evidence.found", "evidence.fond", r"sentence.j2:2: none: found .*'fond'"),
        ("sentence", "evidence.found", "''.__class__.__mro__", r"sentence.j2:2: none: found .*unsafe"),
        ("sentence", "| share }}", "| share }", r"sentence.j2:3: .*expected a Jinja template"),
    ],
)
def test_a_rule_that_breaks_the_interface_is_refused(
    make_study: Make, tmp_path: Path, file: str, old: str, new: str, said: str
) -> None:
    texts = {"query": QUERY, "about": ABOUT, "sentence": SENTENCE}
    assert old in texts[file]
    with pytest.raises(UserError, match=said):
        run_mine(make_study().specs, tmp_path, **{**texts, file: texts[file].replace(old, new)})


def test_thresholds_decide(make_study: Make) -> None:
    study = make_study(truth={("buffer", "32"): Truth(throughput=-0.2)})
    found = {}
    for min_effect in (0.05, 0.5):
        thresholds = Thresholds(min_effect=min_effect)
        specs = replace(study.specs, study=study.specs.study.model_copy(update={"thresholds": thresholds}))
        findings = replace(study, specs=specs).judge("intuition")
        found[min_effect] = (findings["verdict"] == "mismatch").sum()
    assert found == {0.05: 1, 0.5: 0}


COSTLY = """-- mine: the default costs much.
-- Source: none.
-- Needs: nothing.
-- Insufficient: never.
SELECT dbms, device, workload, 'mismatch' AS verdict, 100 AS penalty, {found: 7} AS evidence FROM cases
"""


def judge_mine(study: Study, folder: Path, about: str = ABOUT, evidence: str = "{found: 7}") -> dict[str, Any]:
    """Judge the only case of a study by a rule that says that it costs a hundredfold."""
    query = COSTLY.replace("{found: 7}", evidence)
    for name, text in (("rule.sql", query), ("rule.yaml", about), ("sentence.j2", SENTENCE)):
        (folder / "mine").mkdir(exist_ok=True)
        (folder / "mine" / name).write_text(text)
    specs = study.specs
    specs = replace(
        specs,
        study=specs.study.model_copy(update={"thresholds": Thresholds()}),
        rules={"mine": read_rule(folder / "mine")},
    )
    with duckdb.connect(str(study.database), read_only=True) as connection:
        (row,) = run_rules(connection, specs)
    return row


def test_no_penalty_exceeds_what_the_busy_time_of_the_device_allows(make_study: Make, tmp_path: Path) -> None:
    """A device that is idle for a fifth of the time is not waited for in that fifth: 1 / .2."""
    row = judge_mine(make_study(busy=0.8), tmp_path)
    assert row["penalty"] == pytest.approx(5)
    assert row["sentence"].endswith("Without that, throughput would be 5x as high, which limits the penalty.")
    limit = json.loads(row["evidence"])["limit"]
    assert (limit["busy_share"], limit["without"]) == (pytest.approx(0.8), 100)


def test_a_limit_near_one_is_told_as_the_penalty_is(make_study: Make, tmp_path: Path) -> None:
    row = judge_mine(make_study(busy=0.03), tmp_path)
    assert row["penalty"] == pytest.approx(1 / 0.97)
    assert "busy for 3 % of the time. Without that, throughput would be 1.03x as high" in row["sentence"]


def test_what_clients_were_seen_waiting_for_is_not_limited_by_the_device(make_study: Make, tmp_path: Path) -> None:
    """A flush takes more time than that of the device: the kernel wakes its threads and hands the request over."""
    shares = [*(f"{{sure: 1, high: 1, by_time: {is_timed}}}" for is_timed in ("true", "false")), "0.5"]
    penalties = [
        judge_mine(make_study(busy=0.8), tmp_path, evidence=f"{{found: 7, share: {share}}}")["penalty"]
        for share in shares
    ]
    assert penalties == [100, pytest.approx(5), pytest.approx(5)]


def test_a_device_that_is_busy_all_the_time_limits_nothing(make_study: Make, tmp_path: Path) -> None:
    row = judge_mine(make_study(busy=1.0), tmp_path)
    assert (row["penalty"], row["sentence"]) == (100, "Yes.")


def test_a_measured_ratio_is_no_promise_of_better_io(make_study: Make, tmp_path: Path) -> None:
    row = judge_mine(make_study(busy=0.8), tmp_path, ABOUT + "penalty: measured\n")
    assert (row["penalty"], row["sentence"]) == (100, "Yes.")


def test_without_a_busy_time_there_is_no_penalty(make_study: Make, tmp_path: Path) -> None:
    row = judge_mine(make_study(columns={"monitor": "procfs", "lost_events": None}), tmp_path)
    assert row["penalty"] is None
    assert row["sentence"].endswith("cannot be bounded: no run recorded how long the device was busy.")
