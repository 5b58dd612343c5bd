"""Sessions of imported runs: which runs of a series may be compared with each other."""

import pytest

from knobscope.commands.importing.sessions import name_sessions


def sessions_of(series: str, starts: list[str | None] | None = None, is_block: bool = False) -> list[int]:
    """Return the lengths of sessions; a letter is a run of a value, `-` one of the default configuration."""
    values = [None if letter == "-" else letter for letter in series]
    names = name_sessions(values, starts or [None] * len(series), is_block)
    assert all(name.startswith("imported") for name in names)
    return [names.count(name) for name in dict.fromkeys(names)]


@pytest.mark.parametrize(
    ("series", "lengths"),
    [
        ("-ab-ba-", [7]),
        ("-abab--cdcd-", [6, 6]),
        ("-abab-cdcd-", [5, 6]),  # the run between may be of either day
        ("-ab-ab-cb-cc-", [13]),  # b was measured throughout
        ("a-a-a-b-b-b", [5, 6]),
        ("-aaabbbccc-", [11]),  # consecutive runs are one measurement
        ("--abab", [2, 4]),  # nothing shows that the machine was the same
        ("abab--", [4, 2]),
        ("-abab-cdcdefef-", [5, 1, 4, 4, 1]),
        ("ab", [2]),
    ],
)
def test_the_order_of_a_series_shows_its_parts(series: str, lengths: list[int]) -> None:
    assert sessions_of(series) == lengths


def test_a_block_is_one_session_without_times() -> None:
    assert sessions_of("-abab--cdcd-", is_block=True) == [12]


@pytest.mark.parametrize("is_block", [True, False])
def test_a_long_pause_ends_a_session(is_block: bool) -> None:
    starts: list[str | None] = [f"2026-11-0{day}T{hour:02}:00:00" for day in (2, 3) for hour in (9, 10, 13)]
    assert sessions_of("-ab-ab", starts, is_block) == [3, 3]
    assert sessions_of("--abab", [f"2026-11-02T{hour:02}:00:00" for hour in range(9, 15)], is_block) == [6]


def test_dates_separate_days() -> None:
    assert sessions_of("-ab-ab", ["2026-11-02"] * 3 + ["2026-11-03"] * 3) == [3, 3]


def test_runs_that_take_hours_are_no_pauses() -> None:
    assert sessions_of("-ab-ab", [f"2026-11-0{day}T09:00:00" for day in range(2, 8)]) == [6]
