"""Values of which `select` says what they gain: those that somebody might set, one at a time, on purpose."""

import pytest
from shipped_specs import shipped_dbms

from knobscope.specs import Value
from knobscope.stages.plan import DesignSpace
from knobscope.stages.select.command import _list_unplaced, tunable_values

LEVELS: dict[str, list[Value]] = {
    "journal_mode": ["delete", "persist", "wal", "off"],
    "synchronous": ["off", "normal", "full", "extra"],
    "wal_autocheckpoint": [1, 1000],
    "locking_mode": ["normal", "exclusive"],
}
DEFAULT: dict[str, Value] = {
    "journal_mode": "delete",
    "synchronous": "full",
    "wal_autocheckpoint": 1000,
    "locking_mode": "normal",
}


def tunable(levels: dict[str, list[Value]], threads: int = 1, **changed: Value) -> dict[str, list[Value]]:
    sqlite = shipped_dbms("sqlite")
    default = {name: {**DEFAULT, **changed}[name] for name in levels}
    return tunable_values(DesignSpace(sqlite, levels, default, {"threads": threads, "records": 100}))


def test_neither_the_default_nor_what_risks_data_nor_what_does_not_count_is_tunable() -> None:
    assert tunable(LEVELS) == {
        "journal_mode": ["persist", "wal"],  # a crash may spoil the file without a journal
        "synchronous": ["extra"],
        "locking_mode": ["exclusive"],
    }


def test_what_has_an_effect_with_the_defaults_of_the_study_is_tunable() -> None:
    found = tunable(LEVELS, journal_mode="wal")
    assert found["wal_autocheckpoint"] == [1]
    assert found["journal_mode"] == ["persist"], "to delete the journal is a risk, with synchronous = full"
    assert tunable(LEVELS, journal_mode="wal", synchronous="extra")["journal_mode"] == ["delete", "persist"]


def test_what_the_load_forbids_is_not_tunable() -> None:
    assert "locking_mode" not in tunable(LEVELS, threads=2)


def test_a_knob_of_risky_values_alone_is_left_out() -> None:
    assert tunable({"synchronous": ["off", "full"]}) == {}


@pytest.mark.parametrize(
    ("values", "unplaced"),
    [([0, 2, 1], [0, 2, 1]), ([1, 2, 4], []), ([1000, 10, 1], []), (["off", "on"], []), (["off", 2, 1], [])],
)
def test_numbers_of_an_enum_have_a_place_where_they_are_in_order(values: list[Value], unplaced: list[Value]) -> None:
    """0, 2, 1 of innodb_flush_log_at_trx_commit: by size the effect would turn round in the middle."""
    sqlite = shipped_dbms("sqlite")
    knob = sqlite.knobs["synchronous"].model_copy(update={"values": values, "special": {}})
    assert _list_unplaced(knob) == unplaced
