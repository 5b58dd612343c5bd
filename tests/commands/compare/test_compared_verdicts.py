"""Rankings and mismatches of two studies."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from knobscope.commands.compare import Comparison
from knobscope.commands.compare.words import mismatch_words, no_mismatch_sentence, ranking_sentence, summarise

Make = Callable[..., Path]
Compare = Callable[..., Comparison]
Changed = Callable[..., Path]

KNOBS = ["sync", "page", "buffer", "ahead", "pause", "limit", "seventh"]
CASE = "'simdb', 'nvme', 'ycsb-a'"


def ranking(order: list[str], intervals: bool = True, trustworthy: bool = True, prior: str = "NULL") -> list[str]:
    """Return the statements that give a study a ranking; each rank may be off by one."""
    names = "dbms, device, workload, round, knob, rank, rank_low, rank_high, above_noise"
    rows = [
        f"({CASE}, 0, '{knob}', {rank}, {max(rank - 1, 1) if intervals else 'NULL'}, "
        f"{rank + 1 if intervals else 'NULL'}, {rank < 4})"
        for rank, knob in enumerate(order, 1)
    ]
    return [
        f"INSERT INTO importance ({names}) VALUES {', '.join(rows)}",  # noqa: S608
        "INSERT INTO fits (dbms, device, workload, round, prior, trustworthy, reason_trust) "  # noqa: S608
        f"VALUES ({CASE}, 0, {prior}, {trustworthy}, 'held-out R2 is 0.31')",
    ]


def finding(verdict: str, knob: str = "sync", rule: str = "flush", confirmed: str = "not_tested", **more: str) -> str:
    columns = {"penalty": "2.0" if verdict == "mismatch" else "NULL", "sentence": f"'It is {verdict}.'", **more}
    return (
        f"INSERT INTO findings (rule, dbms, device, workload, knob, value, verdict, confirmed, {', '.join(columns)}) "  # noqa: S608
        f"VALUES ('{rule}', {CASE}, '{knob}', 'none', '{verdict}', '{confirmed}', {', '.join(columns.values())})"
    )


def test_equal_rankings_agree(make_database: Make, compare: Compare, changed: Changed) -> None:
    a, b = (changed(make_database(seed=seed), *ranking(KNOBS)) for seed in (1, 2))
    rankings = compare(a, b).cases[0].rankings
    assert (rankings.overlap, rankings.top, rankings.correlation) == (5, 5, pytest.approx(1.0))
    assert [one.rank_a for one in rankings.knobs] == [1, 2, 3, 4, 5, 6, 7]
    assert rankings.knobs[2].interval_b == (2, 4)
    assert "no rank differs beyond chance" in ranking_sentence(rankings)


def test_a_rank_differs_when_the_intervals_do_not_meet(make_database: Make, compare: Compare, changed: Changed) -> None:
    a = changed(make_database(seed=1), *ranking(KNOBS))
    b = changed(make_database(seed=2), *ranking(["page", "buffer", "ahead", "pause", "limit", "seventh", "sync"]))
    rankings = compare(a, b).cases[0].rankings
    assert [one.knob for one in rankings.knobs if one.drifts] == ["sync"]
    assert (rankings.overlap, rankings.only_a, rankings.only_b) == (4, "sync", "limit")
    assert ranking_sentence(rankings) == (
        "Of the first 5\N{NO-BREAK SPACE}knobs 4 are in both (only in A: sync; only in B: limit); "
        "the rank of sync differs beyond chance."
    )


def test_rankings_of_one_knob_are_one_knob(make_database: Make, compare: Compare, changed: Changed) -> None:
    a, b = (changed(make_database(seed=seed), *ranking(["sync"])) for seed in (1, 2))
    said = ranking_sentence(compare(a, b).cases[0].rankings)
    assert said.startswith("Of the first 1\N{NO-BREAK SPACE}knob 1 is in both; no rank differs beyond chance")


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        ([], "B ranked no knobs"),
        (ranking(KNOBS, trustworthy=False), "the ranking of B cannot be trusted (held-out R2 is 0.31)"),
        (ranking(KNOBS, prior="'earlier'"), "B took its ranking from the prior earlier and measured none"),
    ],
)
def test_rankings_that_cannot_be_trusted_are_not_compared(
    make_database: Make, compare: Compare, changed: Changed, statements: list[str], reason: str
) -> None:
    a = changed(make_database(seed=1), *ranking(KNOBS))
    rankings = compare(a, changed(make_database(seed=2), *statements)).cases[0].rankings
    assert rankings.knobs == []
    assert ranking_sentence(rankings) == f"The rankings are not compared: {reason}."


def test_ranks_without_intervals_cannot_differ_beyond_chance(
    make_database: Make, compare: Compare, changed: Changed
) -> None:
    a = changed(make_database(seed=1), *ranking(KNOBS))
    b = changed(make_database(seed=2), *ranking(KNOBS[::-1], intervals=False))
    rankings = compare(a, b).cases[0].rankings
    assert {one.drifts for one in rankings.knobs} == {None}
    assert "whether a rank differs beyond chance cannot be told" in ranking_sentence(rankings)


@pytest.mark.parametrize(
    ("in_b", "words"),
    [
        (finding("mismatch"), "in both"),
        (finding("none"), "only in A: B judged it and found none"),
        (finding("insufficient"), "only in A: B could not judge it, so that it may still be there"),
        (finding("mismatch", confirmed="no"), "only in A: an experiment refuted it in B"),
        (finding("none", rule="tier"), "only in A: B did not judge it"),
    ],
)
def test_a_mismatch_that_is_not_in_b_says_what_b_says(
    make_database: Make, compare: Compare, changed: Changed, in_b: str, words: str
) -> None:
    a = changed(make_database(seed=1), finding("mismatch"))
    b = changed(make_database(seed=2), in_b)
    (one,) = compare(a, b).cases[0].mismatches
    assert mismatch_words(one) == words
    assert one.sentence_a == "It is mismatch."
    (other,) = compare(b, a).cases[0].mismatches
    assert mismatch_words(other) == words.translate(str.maketrans("AB", "BA"))


def test_a_rule_that_could_judge_no_value_says_why(make_database: Make, compare: Compare, changed: Changed) -> None:
    a = changed(make_database(seed=1), finding("mismatch"))
    b = changed(make_database(seed=2), finding("insufficient"), "UPDATE findings SET knob = NULL, value = NULL")
    (one,) = compare(a, b).cases[0].mismatches
    assert (one.knob, one.b, one.sentence_b) == ("sync", "insufficient", "It is insufficient.")


def test_mismatches_of_both_come_first(make_database: Make, compare: Compare, changed: Changed) -> None:
    a = changed(make_database(seed=1), finding("mismatch", "page", penalty="9.0"), finding("mismatch"))
    b = changed(
        make_database(seed=2), finding("mismatch"), finding("insufficient", "page"), finding("mismatch", "ahead")
    )
    comparison = compare(a, b)
    assert [(one.knob, one.a, one.b) for one in comparison.cases[0].mismatches] == [
        ("sync", "mismatch", "mismatch"),
        ("page", "mismatch", "insufficient"),
        ("ahead", "not_judged", "mismatch"),
    ]
    assert summarise(comparison)[-2] == (
        "Findings of mismatches: 1 in both; 1 in A only (B could not judge it, so that it may still be there); "
        "1 in B only (A did not judge it)."
    )


def test_rules_that_compare_devices_match_the_devices_of_both(
    make_database: Make, compare: Compare, changed: Changed
) -> None:
    lower = {"evidence": '\'{"lower_device": "nvme"}\''}
    a = changed(make_database(seed=1), finding("mismatch", rule="tier", **lower))
    b = changed(make_database(seed=2), finding("mismatch", rule="tier", evidence='\'{"lower_device": "hdd"}\''))
    assert [mismatch_words(one)[:9] for one in compare(a, b).cases[0].mismatches] == ["only in A", "only in B"]


def test_a_study_without_verdicts_is_not_taken_for_one_without_mismatches(
    make_database: Make, compare: Compare, changed: Changed
) -> None:
    comparison = compare(changed(make_database(seed=1), finding("mismatch")), make_database(seed=2))
    assert comparison.cases[0].mismatches == []
    assert no_mismatch_sentence(comparison) == "Mismatches cannot be compared: no rule was asked in B."
    assert summarise(comparison)[-2] == no_mismatch_sentence(comparison)


def test_mismatches_of_two_files_are_not_one(make_database: Make, compare: Compare, changed: Changed) -> None:
    """The order of one file is lost in A, and that of another one in B; each study judged both."""

    def of_file(file: str, verdict: str) -> str:
        evidence = json.dumps({"file": file, "op": "read"})
        return finding(verdict, rule="access_pattern", evidence=f"'{evidence}'", sentence=f"'{file} is {verdict}.'")

    by_case = "UPDATE findings SET knob = NULL, value = NULL"
    a = changed(make_database(seed=1), of_file("orders", "mismatch"), of_file("items", "none"), by_case)
    b = changed(make_database(seed=2), of_file("orders", "none"), of_file("items", "mismatch"), by_case)
    told = [(mismatch_words(one), one.sentence_a, one.sentence_b) for one in compare(a, b).cases[0].mismatches]
    assert told == [
        ("only in A: B judged it and found none", "orders is mismatch.", "orders is none."),
        ("only in B: A judged it and found none", "items is none.", "items is mismatch."),
    ]
