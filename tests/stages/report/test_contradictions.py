"""A study that contradicts itself is found out, whichever table or sentence it is in; the simulated one does not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from contradictions import find_contradictions, find_in_budgets, find_in_head, read_findings

from knobscope.specs import StudySpecs
from knobscope.stages.report.sections.budgets import BudgetLine, CaseBudget
from knobscope.stages.report.sections.findings import build_findings
from knobscope.study_data.study import StudyData

#: The effect that all planted findings are about.
SWEPT = "metric = 'throughput_ops' AND device = 'fast-flash' AND knob = 'page_size' AND value = '65536'"
SHARES = "Shares of the difference: flushes 80 %, filling units 30 %, not explained 5 %."


def add(table: str, **columns: str) -> str:
    """Return SQL that adds a row about that effect to a table; columns are SQL, too."""
    named = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    return f"INSERT INTO {table} BY NAME SELECT dbms, device, workload, {named} FROM effects WHERE {SWEPT}"  # noqa: S608


def finding(verdict: str, sentence: str = "", evidence: str = "{}", confirmed: str = "not_tested", **more: str) -> str:
    """Return SQL that adds a finding of rule `flush`."""
    columns = {
        "rule": "'flush'", "verdict": f"'{verdict}'", "cause": "'flush'", "confirmed": f"'{confirmed}'",
        "evidence": f"'{evidence}'", "sentence": f"'{sentence}'", "penalty": "3.0", "knob": "knob", "value": "value",
        "effect": "exp(estimate) - 1", "effect_low": "exp(low) - 1", "effect_high": "exp(high) - 1", **more,
    }  # fmt: skip
    return add("findings", **columns)


def change(assignments: str) -> str:
    """Return SQL that changes the effect itself."""
    return f"UPDATE effects SET {assignments} WHERE {SWEPT}"  # noqa: S608


def what_if(name: str, **columns: str) -> str:
    """Return SQL that adds what an experiment showed."""
    return add("what_ifs", knob="knob", value="value", property=f"'{name}'", **columns)


SLOW = add(
    "fastest", risk="'any'", changes="'{}'", configuration="'{}'", again="0.0", again_low="0.0", again_high="0.1"
)
PLANTED = {
    "is outside of": [change("low = estimate + 1")],
    "flushing_share 0.92 is more than": [finding("none", evidence='{"flushing_share": 0.92, "busy_share": 0.9}')],
    "130 % of a whole": [finding("none", "It waits for 130 % of the time.")],
    "more than all disappears": [
        finding("none", confirmation="'Most of it, 102 % (95 % interval 51 % to 153 %), disappears.'")
    ],
    "from 55 to 45": [finding("none", "They account for half (55 % to 45 %).")],
    "two bounds of one gain": [finding("none", "It may be at most 3x as fast. It is worth at most 4x as fast.")],
    "that is not ruled out": [
        finding("none", "That does not rule out an effect that matters.", effect_low="-0.01", effect_high="0.01")
    ],
    "shares that come to 115 %": [finding("none", SHARES)],
    "in table effects": [finding("none"), change("estimate = 2, high = 3")],
    "in figures, and in words": [finding("mismatch", "It is 7x slower.")],
    "bound 12, and 15": [
        finding("mismatch", evidence='{"limit": {"penalty": 12}}'),
        what_if("flush", gain_low="ln(15.1)"),
    ],
    "at most 12, and 15": [
        finding("none", "It is at most 12x as fast.", evidence='{"most_gain": 12}', knob="NULL", value="NULL"),
        what_if("none", again="0.1"),
        what_if("spread", gain_low="ln(15.1)"),
    ],
    "confirmed, and little": [
        finding("mismatch", confirmed="yes"),
        what_if("flush", share="0.2", share_low="0.1", share_high="0.3"),
    ],
    "refuted, and most": [
        finding("mismatch", confirmed="no"),
        what_if("flush", share="0.8", share_low="0.7", share_high="0.9"),
    ],
    "a mismatch whose effect did not reproduce": [finding("mismatch"), what_if("none", is_gone="true")],
    "says nothing of an effect": [finding("none"), what_if("none", is_gone="true")],
    "explained by flushes, which": [
        finding("mismatch", confirmed="no"),
        finding("none", evidence='{"by_flushes": true}', rule="'io_size'"),
    ],
    "shares of causes of which one was refuted": [finding("mismatch", confirmed="no"), finding("none", SHARES)],
    "is at fault in no finding": [
        finding("none", evidence='{"guilty_elsewhere": [{"dbms": "x", "knob": "y"}], "by_rules": ["flush"]}')
    ],
    "and sqlite fast-flash ycsb-a page_size 65536 from 1": [
        SLOW,
        change("swept = 1, low = 1, estimate = 1.1, high = 1.2"),
    ],
}


def test_the_simulated_study_does_not_contradict_itself(study: Path, specs: StudySpecs) -> None:
    assert find_contradictions(study, specs) == []


@pytest.mark.parametrize("said", PLANTED)
def test_a_contradiction_is_found(changed_study: Callable[..., Path], specs: StudySpecs, said: str) -> None:
    found = find_contradictions(changed_study("DELETE FROM findings", *PLANTED[said]), specs)
    assert any(said in text for text in found), found


@pytest.mark.parametrize(
    ("whole", "flush", "latency", "count"), [("10 ms", "6 ms", "20 ms", 0), ("9 ms", "6 ms", "20 ms", 4)]
)
def test_parts_of_a_budget_that_do_not_come_to_the_whole_are_found(
    whole: str, flush: str, latency: str, count: int
) -> None:
    parts = f"{flush} flush (2 ms through the leader of the group), 3.9 ms CPU"
    sentences = [
        f"Default: an operation takes {whole} (50 % of its latency of {latency}), of which {parts}.",
        f"With off an operation takes 1 ms less: 1 ms less flush ({whole}, of which {parts}).",
    ]
    line = BudgetLine("default", "", whole, "50 %", [(flush, ""), ("3.9 ms", "")])
    assert len(list(find_in_budgets([CaseBudget("case", None, sentences, [], [line])]))) == count


def test_a_head_that_counts_otherwise_is_found(study: Path, specs: StudySpecs) -> None:
    with StudyData.open(study, specs) as data:
        section, findings = build_findings(data), read_findings(data)
        assert list(find_in_head(data, section, findings)) == []
        assert list(find_in_head(data, replace(section, cards=section.cards[1:]), findings))
        assert list(find_in_head(data, section, findings[1:]))
