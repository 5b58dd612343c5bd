"""Guesses of mechanisms learn from the shipped labels, and never overrule them."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knobscope.introspect.mechanisms import MechanismModel, guess_mechanisms, read_labelled
from knobscope.machine_code import Code, Reader

SPECS = Path(__file__).parents[2] / "specs/dbms"
Labelled = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def labelled() -> Labelled:
    return read_labelled(SPECS)


@pytest.fixture(scope="module")
def without_postgresql(labelled: Labelled) -> MechanismModel:
    return MechanismModel({dbms: knobs for dbms, knobs in labelled.items() if not dbms.startswith("postgresql")})


def test_a_dbms_that_the_model_has_not_seen(labelled: Labelled, without_postgresql: MechanismModel) -> None:
    """Better than chance by far; benchmarks/mechanisms.py has the figures of all."""
    knobs = labelled["postgresql"]
    true = {name for name, knob in knobs.items() if knob["mechanism"] != "other"}
    found = {name for name, mechanism in without_postgresql.guess(knobs).items() if mechanism != "other"}
    assert len(found & true) >= 0.75 * len(true)
    assert len(found & true) >= 0.7 * len(found)


@pytest.mark.parametrize(
    ("name", "description", "mechanism"),
    [
        ("wal_fsync_interval", "Time between flushes of the write-ahead log to disk.", "flush"),
        ("listen_backlog", "Connections that wait until they are accepted.", "other"),
        ("page_cache_size", "Memory for pages that were read.", "cache"),
        ("", "", "other"),
    ],
)
def test_a_knob_of_nobody(without_postgresql: MechanismModel, name: str, description: str, mechanism: str) -> None:
    assert without_postgresql.guess({name: {"description": description}}) == {name: mechanism}


def test_what_is_known_of_a_dbms_is_not_guessed(labelled: Labelled) -> None:
    knob = {"mechanism": "other", "description": "Connections that wait until they are accepted."}
    knobs = {"innodb_io_capacity": knob, "innodb_flush_log_of_tomorrow": {**knob, "description": None}}
    told = guess_mechanisms("mariadb", knobs, labelled)
    assert told["innodb_io_capacity"]["mechanism"] == "throttle"
    assert told["innodb_flush_log_of_tomorrow"]["mechanism"] == "flush"
    assert knob["mechanism"] == "other"


def test_what_a_relative_has_by_the_same_name_is_not_guessed(labelled: Labelled) -> None:
    """A version or a fork shares most names; of a DBMS that shares a few nothing is taken over."""
    strangers = {dbms: knobs for dbms, knobs in labelled.items() if dbms not in ("redis", "valkey")}
    renamed = {name: {**knob, "mechanism": "throttle"} for name, knob in labelled["redis"].items()}
    told = guess_mechanisms("redis8", labelled["redis"], {**strangers, "redis": renamed})
    assert {knob["mechanism"] for knob in told.values()} == {"throttle"}
    few = dict(list(renamed.items())[:20])
    told = guess_mechanisms("redis8", labelled["redis"], {**strangers, "redis": few})
    assert {told[name]["mechanism"] for name in few} != {"throttle"}


def test_without_labels_nothing_is_guessed() -> None:
    knobs = {"fsync": {"mechanism": "other"}}
    assert guess_mechanisms("own", knobs, {}) == knobs


def test_every_list_has_labels(labelled: Labelled) -> None:
    for dbms, knobs in labelled.items():
        assert {"other"} < {knob["mechanism"] for knob in knobs.values()}, dbms


def code_of(knobs: Iterable[str], far: int, way: tuple[str, ...]) -> Code:
    """All knobs are read side by side, but for array_nulls, which is `far` away, with that way to storage."""
    readers = {name: (Reader(100 * number, "f", ("f", "pwrite")),) for number, name in enumerate(knobs)}
    return Code({**readers, "array_nulls": (Reader(far, "g", way),)})


def test_knobs_that_are_read_side_by_side_count_for_each_other(
    labelled: Labelled, without_postgresql: MechanismModel
) -> None:
    """By at most half a unit of the log odds each time, and not where the code says nothing."""
    knobs = labelled["postgresql"]
    storage = [name for name in knobs if name.startswith(("wal_", "bgwriter_", "checkpoint_"))]
    beside, away = (without_postgresql.odds(knobs, code_of(storage, far, ())) for far in (0, 10**6))
    assert beside["array_nulls"] > away["array_nulls"] + 0.4
    assert without_postgresql.odds(knobs, Code({})) == pytest.approx(without_postgresql.odds(knobs))


def test_a_way_to_storage_counts(labelled: Labelled, without_postgresql: MechanismModel) -> None:
    knobs = labelled["postgresql"]
    leading, ending = (without_postgresql.odds(knobs, code_of((), 0, way)) for way in (("g", "fsync"), ()))
    assert leading["array_nulls"] > ending["array_nulls"] + 1


def test_what_nothing_reads_steers_nothing(labelled: Labelled, without_postgresql: MechanismModel) -> None:
    knobs = labelled["postgresql"]
    code = replace(code_of(["wal_buffers"], 0, ()), unread=frozenset({"commit_delay"}))
    told = without_postgresql.guess(knobs, code)
    assert told["commit_delay"] == "other" != told["wal_buffers"]
    assert without_postgresql.guess(knobs)["commit_delay"] != "other"


def test_a_word_before_a_colon_is_no_sentence(without_postgresql: MechanismModel) -> None:
    """What follows it counts; a second sentence does not."""
    said = ["Flush the log to disk at commit. No more.", "Note: flush the log to disk at commit. No more.", "Note:"]
    odds = [without_postgresql.odds({"wal_at": {"description": text}})["wal_at"] for text in said]
    assert odds[1] > odds[2] + 1 and odds[1] == pytest.approx(odds[0], abs=0.5)


def test_what_does_nothing_steers_nothing(without_postgresql: MechanismModel) -> None:
    """However much its name and the rest of the sentence sound like storage."""
    said = {
        "wal_buffers_too": "Size of the buffers of the write-ahead log.",
        "wal_buffers_once": "Deprecated size of the buffers of the write-ahead log, with no effect.",
        "wal_buffers_then": "Unused, will be removed.",
        "wal_buffers_if": "Size of the buffers of the write-ahead log, which has no effect if wal is off.",
    }
    told = without_postgresql.guess({name: {"description": text} for name, text in said.items()})
    assert [name for name, mechanism in told.items() if mechanism == "other"] == [
        "wal_buffers_once",
        "wal_buffers_then",
    ]
