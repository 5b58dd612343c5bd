"""Which pairs of knobs a sweep measures together, and with which values."""

import pytest
from shipped_specs import shipped_dbms

from knobscope.specs import KnobChoice
from knobscope.stages.plan.pairs import count_combinations, interacting_pairs, pair_configurations
from knobscope.stages.plan.sampling import DesignSpace


def fit(**shares: float) -> dict[str, object]:
    terms = [{"factors": name.split("_"), "explained_share": share} for name, share in shares.items()]
    return {"terms": terms}


@pytest.fixture
def space() -> DesignSpace:
    sqlite = shipped_dbms("sqlite")
    levels = {
        "journal_mode": ["delete", "wal"],
        "synchronous": ["off", "normal", "full"],
        "wal_autocheckpoint": [1, 1000],
    }
    default = {"journal_mode": "delete", "synchronous": "full", "wal_autocheckpoint": 1000}
    return DesignSpace(sqlite, levels, default, {"threads": 1, "records": 100})


def test_the_strongest_terms_of_two_knobs_are_taken() -> None:
    fits = [fit(a=0.5, a_b=0.1, b_c=0.02, c_d=0.004), fit(b_a=0.01, d_c=0.03, a_b_c=0.3)]
    assert interacting_pairs(fits, 9) == [("a", "b"), ("c", "d"), ("b", "c")]
    assert interacting_pairs(fits, 1) == [("a", "b")]
    assert interacting_pairs(fits, 0) == interacting_pairs([], 9) == []


def test_values_of_one_are_combined_with_values_of_the_other(space: DesignSpace) -> None:
    choices = {"journal_mode": None, "synchronous": KnobChoice(values=["off", "normal"]), "wal_autocheckpoint": None}
    found = pair_configurations(space, choices, [("journal_mode", "synchronous")])
    modes = {one["journal_mode"] for one in found}
    assert {one["synchronous"] for one in found} == {"off", "normal"}
    assert "delete" not in modes and len(found) == 2 * len(modes)
    assert all(one["wal_autocheckpoint"] == 1000 for one in found)


def test_what_needs_a_change_is_in_no_pair(space: DesignSpace) -> None:
    """Checkpoints of a log that the default configuration does not have: alone there is nothing to compare with."""
    choices = dict.fromkeys(space.levels)
    assert pair_configurations(space, choices, [("synchronous", "wal_autocheckpoint")]) == []


def test_of_many_values_the_outermost_are_taken() -> None:
    assert [count_combinations(one, other) for one, other in ((3, 3), (2, 4), (3, 4), (9, 1), (10, 1), (0, 5))] == [
        *(9, 8, 4, 9, 2, 0)
    ]
