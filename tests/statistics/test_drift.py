"""Importance drift between cases: which knobs change rank, and what stays among the leaders."""

from typing import Any

from knobscope.statistics.drift import rank_drift


def fit(order: list[str], trustworthy: bool = True, spread: int = 0, above: int = 3) -> dict[str, Any]:
    return {
        "trustworthy": trustworthy,
        "importance": [
            {"knob": k, "rank": i, "rank_low": i - spread, "rank_high": i + spread, "above_noise": i <= above}
            for i, k in enumerate(order, start=1)
        ],
    }


KNOBS = ["flush", "cache", "log", "page", "threads", "hash", "other"]
MOVED = ["cache", "log", "page", "threads", "hash", "flush", "other"]


def test_a_knob_that_falls_behind_on_another_device_drifts() -> None:
    cases = {("pg", "hdd", "a"): fit(KNOBS), ("pg", "nvme", "a"): fit(MOVED)}
    rows, (pair,) = rank_drift(cases)
    flush = next(row for row in rows if row["knob"] == "flush")
    assert (flush["changed"], flush["same"], flush["from_case"], flush["to_case"]) == ("device", "a", "hdd", "nvme")
    assert (flush["rank_from"], flush["rank_to"], flush["change"], flush["drifts"]) == (1, 6, 5, True)
    assert not next(row for row in rows if row["knob"] == "other")["drifts"]
    assert (pair["overlap"], pair["only_from"], pair["only_to"]) == (4, "flush", "hash")
    assert 0 < pair["rank_correlation"] < 1 and pair["trustworthy"]


def test_wide_intervals_and_untrustworthy_rankings_do_not_drift() -> None:
    for other in (fit(MOVED, spread=3), fit(MOVED, trustworthy=False)):
        rows, (pair,) = rank_drift({("pg", "hdd", "a"): fit(KNOBS, spread=3), ("pg", "nvme", "a"): other})
        assert pair["drifting"] == 0 and not any(row["drifts"] for row in rows)


def test_intervals_that_only_just_fail_to_meet_are_no_drift() -> None:
    """Of many knobs, those of one or another fail to meet by chance."""
    neighbours = [*KNOBS[1:3], KNOBS[0], *KNOBS[3:]]
    cases = {("pg", "hdd", "a"): fit(KNOBS), ("pg", "nvme", "a"): fit(neighbours)}
    rows, (pair,) = rank_drift(cases)
    assert {row["knob"]: row["change"] for row in rows}["flush"] == 2 and pair["drifting"] == 0


def test_knobs_that_nowhere_stand_out_do_not_drift() -> None:
    rows, _ = rank_drift({("pg", "hdd", "a"): fit(KNOBS, above=0), ("pg", "hdd", "b"): fit(MOVED, above=0)})
    assert {row["changed"] for row in rows} == {"workload"} and not any(row["drifts"] for row in rows)


def test_only_cases_that_differ_in_one_thing_are_compared() -> None:
    cases = {
        ("pg", "hdd", "a"): fit(KNOBS),
        ("pg", "nvme", "b"): fit(KNOBS),
        ("mysql", "hdd", "a"): fit(KNOBS),
        ("pg", "nvme", "a"): fit(KNOBS[:2]),
    }
    rows, pairs = rank_drift(cases)
    assert [(p["dbms"], p["changed"], p["from_case"], p["to_case"]) for p in pairs] == [
        ("pg", "device", "hdd", "nvme"),
        ("pg", "workload", "b", "a"),
    ]
    assert len(rows) == 4 and all(pair["rank_correlation"] is None for pair in pairs)  # two knobs in common
