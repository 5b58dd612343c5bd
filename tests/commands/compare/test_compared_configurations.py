"""Configurations other than the default: does what it says of two studies hold there?"""

from collections.abc import Callable
from pathlib import Path

from simulated_pairs import TRUTH, Truth

from knobscope.commands.compare import Comparison
from knobscope.commands.compare.configurations import OtherConfigurations
from knobscope.commands.compare.text import format_comparison

Make = Callable[..., Path]
Compare = Callable[..., Comparison]


def others(comparison: Comparison) -> OtherConfigurations:
    return comparison.cases[0].others


def test_a_faster_study_is_faster_in_all(make_database: Make, compare: Compare) -> None:
    comparison = compare(make_database(seed=1), make_database(seed=2, levels={"nvme": 0.7}))
    found = others(comparison)
    assert found.slower == 0 and found.most_against is None
    assert found.faster == 9  # the values of the sweep
    assert "None contradicts the default one." in " ".join(format_comparison(comparison).split())


def test_one_that_contradicts_is_named(make_database: Make, compare: Compare) -> None:
    truth = {**TRUTH, ("sync", "none"): Truth(throughput=-0.5)}
    comparison = compare(make_database(seed=1), make_database(seed=2, truth=truth, levels={"nvme": 0.7}))
    found = others(comparison)
    assert (found.faster, found.slower, found.unclear) == (8, 1, 0)
    assert found.most_against is not None
    name, ratio = found.most_against
    assert abs(ratio - (0.7 - 2.0)) < 0.2
    said = " ".join(format_comparison(comparison).split())
    assert f"does not hold in 1 (11 %); most in configuration {name}, where B is 3." in said


def test_equal_studies_hardly_differ_anywhere(make_database: Make, compare: Compare) -> None:
    clear = 0
    for seed in range(1, 3):
        found = others(compare(make_database(seed=seed), make_database(seed=seed + 1)))
        assert found.faster + found.slower + found.unclear == 9
        clear += found.faster + found.slower
    assert clear <= 2  # of 18; one in a hundred is called clear by chance


def test_what_cannot_be_compared_is_reported(
    make_database: Make, compare: Compare, changed: Callable[..., Path]
) -> None:
    alone = changed(make_database(seed=2), "UPDATE runs SET config_id = config_id || 'b' WHERE NOT is_sentinel")
    found = others(compare(make_database(seed=1), alone))
    assert (found.faster, found.slower, found.unclear) == (0, 0, 0)
    assert found.reason == "no other configuration was measured in both studies"
    one = changed(make_database(seed=2), "DELETE FROM runs WHERE block_id != (SELECT min(block_id) FROM runs)")
    assert "one block only" in others(compare(make_database(seed=1), one)).reason
