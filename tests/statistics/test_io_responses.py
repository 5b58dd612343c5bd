"""Knobs that change the I/O are found, others are not, and noise alone gives nothing: on data with known truth."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f, norm, rankdata

from knobscope.statistics.io_responses import compare_with_marks, find_io_related

KNOBS = [f"k{number}" for number in range(20)]
RESPONSES = ["writes", "flushes", "depth"]


def draw(seed: int, runs: int = 60) -> pd.DataFrame:
    """Twenty knobs of three levels, every level equally often, and three responses that are noise."""
    rng = np.random.default_rng(seed)
    levels = {knob: rng.permutation(np.arange(runs) % 3).astype(str) for knob in KNOBS}
    return pd.DataFrame(levels | {response: np.exp(rng.normal(0, 0.3, runs)) for response in RESPONSES})


def related(found: pd.DataFrame) -> set[tuple[str, str]]:
    rows = found[found["verdict"] == "related"]
    return set(zip(rows["knob"], rows["response"], strict=True))


@pytest.mark.slow
def test_noise_alone_gives_hardly_ever_a_discovery() -> None:
    with_discovery = sum(bool(related(find_io_related(draw(seed), KNOBS, RESPONSES, 0.05))) for seed in range(80))
    assert with_discovery <= 80 * 0.05 + 3 * (80 * 0.05 * 0.95) ** 0.5  # three standard deviations above 5 %


def test_strong_and_weak_knobs_are_found_in_the_response_that_they_change() -> None:
    hits, wrong = 0, 0
    for seed in range(15):
        runs = draw(seed)
        runs["writes"] *= np.exp(4 * (runs["k0"] == "1") + 0.6 * (runs["k1"] == "2"))
        runs["flushes"] = np.where(runs["k2"] == "0", 0.0, runs["flushes"])  # most runs never flush, or always do
        found = related(find_io_related(runs, KNOBS, RESPONSES, 0.05))
        hits += len(found & {("k0", "writes"), ("k1", "writes"), ("k2", "flushes")})
        wrong += len(found - {("k0", "writes"), ("k1", "writes"), ("k2", "flushes")})
    assert hits >= 0.95 * 45
    assert wrong <= 0.1 * 45


def test_a_strong_knob_does_not_hide_a_weak_one() -> None:
    runs = draw(1)
    runs["writes"] *= np.exp(20 * (runs["k0"] == "1") + 0.8 * (runs["k1"] == "2"))
    assert {("k0", "writes"), ("k1", "writes")} <= related(find_io_related(runs, KNOBS, RESPONSES, 0.05))


def test_repeated_configurations_count_once() -> None:
    runs = draw(2)
    many = pd.concat([runs.iloc[[0]]] * 200 + [runs], ignore_index=True)  # a sentinel, measured again and again
    once = find_io_related(runs, KNOBS, RESPONSES, 0.05)
    again = find_io_related(many, KNOBS, RESPONSES, 0.05)
    assert again["runs"].unique().tolist() == [60]
    assert again["p_value"].to_numpy() == pytest.approx(once["p_value"].to_numpy())


def test_too_few_configurations_are_said_to_be_insufficient() -> None:
    found = find_io_related(draw(3, runs=12), KNOBS, RESPONSES, 0.05)
    assert set(found["verdict"]) == {"insufficient"}
    assert found["p_value"].isna().all()


def test_a_response_that_never_changes_is_nobodys_doing() -> None:
    runs = draw(4).assign(depth=1.0)
    found = find_io_related(runs, KNOBS, RESPONSES, 0.05)
    assert set(found.loc[found["response"] == "depth", "verdict"]) == {"none"}


def test_a_response_that_was_rarely_measured_is_not_tested() -> None:
    runs = draw(5)
    runs.loc[5:, "depth"] = np.nan
    found = find_io_related(runs, KNOBS, RESPONSES, 0.05)
    assert set(found.loc[found["response"] == "depth", "verdict"]) == {"insufficient"}
    assert set(found.loc[found["response"] == "writes", "verdict"]) == {"none"}


def test_precision_and_recall_against_marks() -> None:
    verdicts = {"a": True, "b": True, "c": False, "d": False, "unmarked": True}
    compared = compare_with_marks(verdicts, {"a": True, "b": False, "c": True, "d": False})
    assert (compared.precision, compared.recall, compared.knobs) == (0.5, 0.5, 4)
    assert (compared.missed, compared.unexpected) == (["c"], ["b"])
    nothing = compare_with_marks({"a": False}, {"a": False})
    assert (nothing.precision, nothing.recall) == (None, None)


def test_beside_a_knob_that_explains_everything_no_other_is_related() -> None:
    runs = draw(1)
    runs["writes"] = runs["k0"].astype(float)
    assert related(find_io_related(runs, KNOBS, ["writes"], 0.05)) == {("k0", "writes")}


def test_tests_are_those_of_least_squares_in_addition_to_the_selected_knobs() -> None:
    runs = draw(2, 90)
    runs["writes"] *= np.exp(2 * (runs["k0"] == "1") + 2 * (runs["k1"] == "2"))
    found = find_io_related(runs, KNOBS, ["writes"], 0.05).set_index("knob")
    assert related(found.reset_index()) == {("k0", "writes"), ("k1", "writes")}
    scores = norm.ppf((rankdata(runs["writes"]) - 0.375) / (len(runs) + 0.25))

    def left(*knobs: str) -> float:
        dummies = pd.get_dummies(runs[list(knobs)], drop_first=True).to_numpy(float)
        matrix = np.column_stack([np.ones(len(runs)), dummies])
        return float(np.sum((scores - matrix @ np.linalg.lstsq(matrix, scores)[0]) ** 2))

    for knob, beside in (("k0", ["k1"]), ("k7", ["k0", "k1"])):
        full = left(*beside, knob)
        gain = left(*beside) - full
        p = f.sf(gain / 2 / (full / (len(runs) - 1 - 2 * len(beside) - 2)), 2, len(runs) - 1 - 2 * len(beside) - 2)
        assert found.loc[knob, "explained_share"] == pytest.approx(gain / np.sum((scores - scores.mean()) ** 2))
        assert found.loc[knob, "p_value"] == pytest.approx(p)
