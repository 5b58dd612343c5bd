"""Guesses of mechanisms learn from the shipped labels, and never overrule them."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knobscope.knob_texts.mechanisms import MechanismModel, guess_mechanisms, read_labelled
from knobscope.machine_code import Code, Reader

SPECS = Path(__file__).parents[2] / "specs/dbms"
Labelled = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def labelled() -> Labelled:
    return read_labelled(SPECS)


@pytest.fixture(scope="module")
def few(labelled: Labelled) -> Labelled:
    """The lists of a few DBMSs: a model of all takes five times as long."""
    return {dbms: labelled[dbms] for dbms in ("cassandra", "mariadb", "redis", "rocksdb", "sqlite")}


@pytest.fixture(scope="module")
def small_model(few: Labelled) -> MechanismModel:
    return MechanismModel(few)


def test_a_dbms_that_the_model_has_not_seen(labelled: Labelled, small_model: MechanismModel) -> None:
    """Better than chance by far; benchmarks/mechanisms.py has the figures of all."""
    knobs = labelled["postgresql"]
    true = {name for name, knob in knobs.items() if knob["mechanism"] != "other"}
    guessed = {name for name, mechanism in small_model.guess(knobs).items() if mechanism != "other"}
    assert len(guessed & true) >= 0.7 * len(true)
    assert len(guessed & true) >= 0.7 * len(guessed)


def test_knobs_of_nobody(small_model: MechanismModel) -> None:
    described = {
        "wal_fsync_interval": "Time between flushes of the write-ahead log to disk.",
        "listen_backlog": "Connections that wait until they are accepted.",
        "page_cache_size": "Memory for pages that were read.",
        "": "",
    }
    assert small_model.guess({name: {"description": text} for name, text in described.items()}) == {
        "wal_fsync_interval": "flush",
        "listen_backlog": "other",
        "page_cache_size": "cache",
        "": "other",
    }


def test_what_is_known_of_a_dbms_is_not_guessed(few: Labelled) -> None:
    knob = {"mechanism": "other", "description": "Connections that wait until they are accepted."}
    knobs = {"innodb_io_capacity": knob, "innodb_flush_log_of_tomorrow": {**knob, "description": None}}
    told = guess_mechanisms("mariadb", knobs, few)
    assert told["innodb_io_capacity"]["mechanism"] == "throttle"
    assert told["innodb_flush_log_of_tomorrow"]["mechanism"] == "flush"
    assert knob["mechanism"] == "other"


def test_what_a_relative_has_by_the_same_name_is_not_guessed(few: Labelled) -> None:
    """A version or a fork shares most names; of a DBMS that shares a few nothing is taken over."""
    strangers = {dbms: knobs for dbms, knobs in few.items() if dbms != "redis"}
    renamed = {name: {**knob, "mechanism": "throttle"} for name, knob in few["redis"].items()}
    told = guess_mechanisms("redis8", few["redis"], {**strangers, "redis": renamed})
    assert {knob["mechanism"] for knob in told.values()} == {"throttle"}
    shared = dict(list(renamed.items())[:20])
    told = guess_mechanisms("redis8", few["redis"], {**strangers, "redis": shared})
    assert {told[name]["mechanism"] for name in shared} != {"throttle"}


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


def test_knobs_that_are_read_side_by_side_count_for_each_other(labelled: Labelled, small_model: MechanismModel) -> None:
    """By at most half a unit of the log odds each time, and not where the code says nothing."""
    knobs = labelled["postgresql"]
    storage = [name for name in knobs if name.startswith(("wal_", "bgwriter_", "checkpoint_"))]
    beside, away = (small_model.odds(knobs, code_of(storage, far, ())) for far in (0, 10**6))
    assert beside["array_nulls"] > away["array_nulls"] + 0.4
    assert small_model.odds(knobs, Code({})) == pytest.approx(small_model.odds(knobs))


def test_a_way_to_storage_counts(labelled: Labelled, small_model: MechanismModel) -> None:
    knobs = labelled["postgresql"]
    leading, ending = (small_model.odds(knobs, code_of((), 0, way)) for way in (("g", "fsync"), ()))
    assert leading["array_nulls"] > ending["array_nulls"] + 1


def test_what_nothing_reads_steers_nothing(labelled: Labelled, small_model: MechanismModel) -> None:
    knobs = labelled["postgresql"]
    code = replace(code_of(["wal_buffers"], 0, ()), unread=frozenset({"commit_delay"}))
    told = small_model.guess(knobs, code)
    assert told["commit_delay"] == "other" != told["wal_buffers"]
    assert small_model.guess(knobs)["commit_delay"] != "other"


def test_a_word_before_a_colon_is_no_sentence(small_model: MechanismModel) -> None:
    """What follows it counts; a second sentence does not."""
    said = ["Flush the log to disk at commit. No more.", "Note: flush the log to disk at commit. No more.", "Note:"]
    odds = [small_model.odds({"wal_at": {"description": text}})["wal_at"] for text in said]
    assert odds[1] > odds[2] + 1 and odds[1] == pytest.approx(odds[0], abs=0.5)


def test_what_does_nothing_steers_nothing(small_model: MechanismModel) -> None:
    """However much its name and the rest of the sentence sound like storage."""
    said = {
        "wal_buffers_too": "Size of the buffers of the write-ahead log.",
        "wal_buffers_once": "Deprecated size of the buffers of the write-ahead log, with no effect.",
        "wal_buffers_then": "Unused, will be removed.",
        "wal_buffers_if": "Size of the buffers of the write-ahead log, which has no effect if wal is off.",
    }
    told = small_model.guess({name: {"description": text} for name, text in said.items()})
    assert [name for name, mechanism in told.items() if mechanism == "other"] == [
        "wal_buffers_once",
        "wal_buffers_then",
    ]
