"""Effects of two studies whose truth is known: no difference where there is none, the right one where there is one."""

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from simulated_pairs import TRUTH, Truth

from knobscope.commands.compare import Comparison
from knobscope.commands.compare.effects import EffectPair

Make = Callable[..., Path]
Compare = Callable[..., Comparison]


def by_value(comparison: Comparison, metric: str = "throughput_ops") -> dict[tuple[str, str], EffectPair]:
    return {(one.knob, one.value): one for one in comparison.effects if one.metric == metric}


@pytest.fixture(scope="module")
def same_truth(make_database: Make) -> list[Path]:
    return [make_database(seed=seed, calls=False) for seed in range(11)]


@pytest.mark.long
def test_studies_of_the_same_truth_hardly_ever_differ(same_truth: list[Path], compare: Compare) -> None:
    """Ten pairs: at a false discovery rate of 5 % one with any alarm is more than is expected."""
    alarms, inside, level_inside = [], [], []
    for a, b in pairwise(same_truth):
        comparison = compare(a, b)
        found = by_value(comparison)
        assert len(found) == 9
        alarms.append(any(one.verdict == "differs" for one in found.values()))
        inside += [one.low <= 0 <= one.high for one in found.values() if one.low is not None and one.high is not None]
        level = comparison.cases[0].levels[0]
        assert level.low is not None and level.high is not None
        level_inside.append(level.low <= 0 <= level.high)
    assert sum(alarms) <= 2  # P = 0.01 for more, were each alarm as probable as it may be
    assert len(inside) == 90
    assert np.mean(inside) == pytest.approx(0.95, abs=0.05)
    assert sum(level_inside) >= 8  # blocks differ by 10 %, and no study's level may be blamed for that


def test_a_difference_is_found_with_its_size_inside_the_interval(make_database: Make, compare: Compare) -> None:
    other = {**TRUTH, ("buffer", "32"): Truth(throughput=0.1), ("page", "1"): Truth(throughput=-0.3)}
    found = by_value(compare(make_database(seed=1), make_database(seed=2, truth=other, levels={"nvme": 0.7})))
    differing = {key for key, one in found.items() if one.verdict == "differs"}
    assert differing == {("buffer", "32")}
    one = found["buffer", "32"]
    assert one.low is not None and one.high is not None and one.q_value is not None
    assert one.low < 0.1 - 0.4 < one.high
    assert one.high - one.low < 0.2
    assert one.q_value < 0.001
    assert next(iter(found)) == ("buffer", "32")  # clear differences come first


def test_what_can_be_excluded_is_reported_and_orders_the_rest(make_database: Make, compare: Compare) -> None:
    comparison = compare(make_database(seed=1), make_database(seed=2))
    alike = [one for one in by_value(comparison).values() if one.verdict == "no_difference"]
    bounds = [one.bound for one in alike]
    assert bounds == sorted(bounds)
    for one in alike:
        assert one.bound == max(abs(one.low or 0), abs(one.high or 0)) > 0


def test_one_block_cannot_tell(make_database: Make, compare: Compare, changed: Callable[..., Path]) -> None:
    one_block = changed(
        make_database(seed=2),
        "UPDATE effects SET blocks = 1, standard_error = NULL, low = NULL, high = NULL WHERE knob = 'ahead'",
    )
    found = by_value(compare(make_database(seed=1), one_block))
    one = found["ahead", "true"]
    assert (one.verdict, one.reason) == ("unknown", "in B it was measured in one block only")
    assert one.estimate is None
    assert list(found)[-1] == ("ahead", "true")  # what cannot be told comes last
    assert found["sync", "none"].verdict == "no_difference"  # and hinders nothing else


def test_an_effect_that_did_not_show_again_is_compared_with_nothing(
    make_database: Make, compare: Compare, changed: Callable[..., Path]
) -> None:
    refuted = changed(
        make_database(seed=2),
        "INSERT INTO what_ifs BY NAME SELECT dbms, device, workload, knob, value, 'none' AS property, "
        "true AS is_gone FROM effects WHERE metric = 'throughput_ops' AND knob = 'buffer'",
    )
    comparison = compare(make_database(seed=1), refuted)
    one = by_value(comparison)["buffer", "32"]
    assert (one.verdict, one.reason) == ("unknown", "in B it did not reproduce in new runs")
    assert by_value(comparison)["page", "1"].verdict == "no_difference"
    assert by_value(comparison, "latency_p95_us")["buffer", "32"].verdict == "no_difference"  # not measured again


def test_another_default_is_compared_on_a_value_that_both_measured(
    make_database: Make, compare: Compare, changed: Callable[..., Path]
) -> None:
    """B's default of `buffer` becomes 32; what it did against 8 is the truth against 32."""
    other = make_database(seed=2, truth={**TRUTH, ("buffer", "32"): Truth(-0.4), ("buffer", "2"): Truth(-0.4)})
    b = changed(
        other,
        "UPDATE effects SET value = '8' WHERE knob = 'buffer' AND value = '32'",  # 8 is 0.4 slower than the default
        "UPDATE effects SET baseline = '32' WHERE knob = 'buffer'",
    )
    comparison = compare(make_database(seed=1), b)
    (told,) = comparison.cases[0].other_defaults
    assert (told.knob, told.a, told.b, told.reference) == ("buffer", "8", "32", "8")
    found = by_value(comparison)
    larger, smaller = found["buffer", "32"], found["buffer", "2"]
    assert larger.reference == smaller.reference == "8"
    assert larger.a.estimate == pytest.approx(0.4, abs=0.06)
    assert larger.b.estimate == pytest.approx(0.4, abs=0.06)
    assert larger.verdict == smaller.verdict == "no_difference"
    assert smaller.b.estimate == pytest.approx(0.0, abs=0.06)
    assert smaller.b.error is not None and larger.b.error is not None
    assert smaller.b.error > larger.b.error  # that of a difference of two effects


def test_another_default_without_a_common_value_cannot_be_compared(
    make_database: Make, compare: Compare, changed: Callable[..., Path]
) -> None:
    b = changed(make_database(seed=2), "UPDATE effects SET baseline = '64' WHERE knob = 'ahead'",
                "UPDATE effects SET baseline = '3' WHERE knob = 'buffer'",
                "DELETE FROM effects WHERE knob = 'buffer' AND value = '2'")  # fmt: skip
    comparison = compare(make_database(seed=1), b)
    assert {one.knob: one.reference for one in comparison.cases[0].other_defaults} == {"ahead": None, "buffer": None}
    one = by_value(comparison)["buffer", "32"]
    assert one.verdict == "unknown"
    assert "the default differs" in one.reason


def test_values_of_one_study_are_listed(make_database: Make, compare: Compare, changed: Callable[..., Path]) -> None:
    a = changed(make_database(seed=1), "DELETE FROM effects WHERE knob = 'page' AND value = '16'")
    b = changed(make_database(seed=2), "DELETE FROM effects WHERE knob = 'pause'")
    comparison = compare(a, b)
    alone = {(one.letter, one.knob, one.value) for one in comparison.cases[0].one_sided}
    assert alone == {("B", "page", "16"), ("A", "pause", "0"), ("A", "pause", "100")}
    assert ("pause", "0") not in by_value(comparison)


def test_numbers_are_the_same_however_they_are_written(
    make_database: Make, compare: Compare, changed: Callable[..., Path]
) -> None:
    b = changed(make_database(seed=2), "UPDATE effects SET value = '32.0', baseline = '8.0' WHERE value = '32'")
    comparison = compare(make_database(seed=1), b)
    assert comparison.cases[0].other_defaults == []
    assert comparison.cases[0].one_sided == []
    assert by_value(comparison)["buffer", "32"].verdict == "no_difference"


def test_another_unit_is_another_value(make_database: Make, compare: Compare, changed: Callable[..., Path]) -> None:
    b = changed(make_database(seed=2), "UPDATE effects SET unit = 'MB' WHERE knob = 'page'")
    found = by_value(compare(make_database(seed=1), b))
    assert not {key for key in found if key[0] == "page" and found[key].verdict != "unknown"}


def test_latency_has_a_family_of_its_own(make_database: Make, compare: Compare) -> None:
    other = {**TRUTH, ("buffer", "32"): Truth(throughput=0.1)}
    one = by_value(compare(make_database(seed=1), make_database(seed=2, truth=other)), "latency_p95_us")["buffer", "32"]
    assert one.low is not None and one.high is not None
    assert one.low < 0.3 < one.high
    assert one.verdict == "differs"


def test_a_difference_too_small_to_count_is_not_called_clear(
    make_database: Make, compare: Compare, changed: Callable[..., Path]
) -> None:
    small = changed(make_database(seed=2), "UPDATE effects SET estimate = 0.03, standard_error = 0.001, degrees = 50")
    zero = changed(make_database(seed=1), "UPDATE effects SET estimate = 0.0, standard_error = 0.001, degrees = 50")
    found = by_value(compare(zero, small))
    assert all(one.verdict == "no_difference" and (one.q_value or 1) < 1e-6 for one in found.values())
    lower = "UPDATE setup SET value = '0.01' WHERE property = 'thresholds.min_effect'"
    found = by_value(compare(changed(zero, lower), changed(small, lower)))
    assert all(one.verdict == "differs" for one in found.values())
    assert math.isclose(next(iter(found.values())).estimate or 0, 0.03)


def test_values_are_compared_with_the_same_change_only(
    make_database: Make, compare: Compare, changed: Callable[..., Path]
) -> None:
    """In B the values of `buffer` count beside `ahead` only: other effects than those of A, whatever their sizes."""
    b = changed(make_database(seed=2), """UPDATE effects SET beside = '{"ahead":"true"}' WHERE knob = 'buffer'""")
    comparison = compare(make_database(seed=1), b)
    assert not [one for one in comparison.effects if one.knob.startswith("buffer")]
    found = {(one.letter, one.knob, one.value) for one in comparison.cases[0].one_sided}
    assert ("B", "buffer with ahead = true", "32") in found
    assert ("A", "buffer", "32") in found
    again = by_value(compare(b, b))
    assert again["buffer with ahead = true", "32"].verdict == "no_difference"
