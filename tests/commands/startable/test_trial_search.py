"""Bisection of what starts, and what a record does to plans."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from knobscope.commands.startable import NothingStartsError, search_range
from knobscope.specs import SpecErrors, load_study
from knobscope.stages.plan.levels import screening_levels

ROOT = Path(__file__).parents[3]

STUDY = """\
name: mine
description: A knob whose values do not all start.
dbms: [mariadb]
devices: [memory]
workloads: {ycsb-a: }
knobs:
  mariadb:
    innodb_purge_batch_size: CHOICE
"""
RECORD = {
    "dbms": "mariadb",
    "version": "10.11.19",
    "tried": "2026-01-01",
    "knobs": {
        "innodb_purge_batch_size": {
            "asked": [1, 5000],
            "startable": [40, 5000],
            "below": {"value": 39, "words": "needs 40"},
        }
    },
}


class Starts:
    """A server that starts between two values, and remembers what it was asked."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.asked: list[float] = []

    def __call__(self, value: float) -> str | None:
        self.asked.append(value)
        return None if self.low <= value <= self.high else f"not {value}"


def test_two_starts_suffice_when_both_ends_start() -> None:
    server = Starts(1, 100)
    found = search_range(1, 100, 50, log=False, refuse=server)
    assert (found.low, found.high, found.below, found.above, server.asked) == (1, 100, None, None, [1, 100])


def test_both_ends_are_found_to_a_percent() -> None:
    server = Starts(6_291_456, 200_000_000)
    found = search_range(2_097_152, 2**40, 134_217_728, log=True, refuse=server)
    assert found.below is not None
    assert found.above is not None
    assert found.below.value < 6_291_456 <= found.low <= found.below.value * 1.01
    assert found.high <= 200_000_000 < found.above.value <= found.high * 1.01
    assert found.below.words == "not 2097152"
    assert isinstance(found.low, int)
    assert len(server.asked) < 40


@pytest.mark.parametrize("log", [True, False])
def test_small_integers_are_found_exactly(log: bool) -> None:
    found = search_range(1, 64, 16, log=log, refuse=Starts(7, 64))
    assert found.below is not None
    assert (found.low, found.below.value) == (7, 6)


def test_reals_and_negative_ends_end_too() -> None:
    found = search_range(-1.0, 1.0, 0.5, log=False, refuse=Starts(0.1, 1.0))
    assert 0.1 <= found.low <= 0.12


def test_without_a_default_the_other_end_is_the_anchor() -> None:
    assert search_range(1, 64, None, log=False, refuse=Starts(10, 64)).low == 10
    with pytest.raises(NothingStartsError, match="not 1"):
        search_range(1, 64, None, log=False, refuse=Starts(10, 20))


def study_with(shelf: Path, choice: str, record: object = RECORD) -> Path:
    (shelf / "startable/mariadb-10.11.json").write_text(json.dumps(record))
    path = shelf / "studies/mine.yaml"
    path.write_text(STUDY.replace("CHOICE", choice))
    return path


def test_a_plan_keeps_to_what_starts(shelf: Path) -> None:
    specs = load_study(study_with(shelf, ""), shelf, runnable=False)
    knob = specs.dbms["mariadb"].knobs["innodb_purge_batch_size"]
    assert min(screening_levels(knob, None, 4, 127)) == 40


@pytest.mark.parametrize(("choice", "key"), [("{values: [20, 127]}", "values.0"), ("{range: [20, 127]}", "range.0")])
def test_a_value_that_does_not_start_is_refused(shelf: Path, choice: str, key: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        load_study(study_with(shelf, choice), shelf, runnable=False)
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (8, f"knobs.mariadb.innodb_purge_batch_size.{key}")
    assert problem.found == "20, with which mariadb 10.11.19 does not start (needs 40)"
    assert problem.expected.startswith("a value in [40, 5000], as ")


def test_an_end_that_a_requires_explains_binds_no_plan(shelf: Path) -> None:
    """Another value of the other knob may allow it, and the plan looks at both."""
    record = json.loads(json.dumps(RECORD))
    record["knobs"]["innodb_purge_batch_size"]["below"]["breaks"] = "innodb_purge_batch_size >= 8 * other"
    assert load_study(study_with(shelf, "{values: [20, 127]}", record), shelf, runnable=False)


def test_a_broken_record_is_explained(shelf: Path) -> None:
    with pytest.raises(SpecErrors, match=r"mariadb-10.11.json:1: version: found nothing"):
        load_study(study_with(shelf, "", {"dbms": "mariadb", "tried": "", "knobs": {}}), shelf, runnable=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mariadb", "--knob", "innodb_bufer_pool_size"], "expected innodb_buffer_pool_size (did you mean"),
        (["mariadb", "--knob", "key_bufer_size"], "expected key_buffer_size (did you mean"),
        (["mariadb", "--knob", "innodb_doublewrite"], "is no number (boolean)"),
        (["sqlite"], "lives in its client"),
        (["oracel"], "no DBMS 'oracel'"),
        (["mariadb", "--trials", "9"], "--trials: found no --study"),
        (["oracel", "--study", "quickstart"], "quickstart has no DBMS 'oracel'"),
        (["mariadb", "--study", "mariadb-al"], "no study 'mariadb-al'; expected a YAML file, or one of"),
    ],
)
def test_bad_input_ends_before_anything_starts(
    arguments: list[str], words: str, refuses: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert words in refuses("startable", *arguments, "--root", ROOT)
