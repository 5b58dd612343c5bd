"""The fastest configurations are picked by runs against the default of their block, and reduced to what matters."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from shipped_specs import shipped_study

from knobscope.specs import StudySpecs, Value
from knobscope.stages.detect.fastest import Changes, _list_changed, pick_fastest
from knobscope.stages.detect.winners import name_fastest
from knobscope.tables import TABLES, insert_rows

CASE = ("sqlite", "local-disk", "ycsb-a")
DEFAULT: Mapping[str, Value] = {
    "journal_mode": "delete", "synchronous": "full", "page_size": 4096, "cache_size": -2000,
    "wal_autocheckpoint": 1000, "temp_store": "default",
}  # fmt: skip
FULL_WAL, NORMAL_WAL = {"journal_mode": "wal"}, {"journal_mode": "wal", "synchronous": "normal"}


class Measured:
    """Tables of a study in memory, to which runs are added."""

    def __init__(self, specs: StudySpecs) -> None:
        self.specs, self.connection, self.runs = specs, duckdb.connect(), 0
        for table in ("runs", "plan", "importance", "effects", "set_aside_runs"):
            columns = ", ".join(f'"{name}" {kind}' for name, kind in TABLES[table].items())
            self.connection.execute(f"CREATE TABLE {table} ({columns})")
        for knob in ("journal_mode", "synchronous"):
            self.connection.execute(
                "INSERT INTO importance (dbms, device, workload, knob, above_noise) VALUES (?, ?, ?, ?, true)",
                [*CASE, knob],
            )
        self._rng = np.random.default_rng(1)

    def add(
        self,
        block: str,
        times: float,
        changes: Mapping[str, Value] | None = None,
        level: float = 100.0,
        session: str | None = None,
    ) -> str:
        """Add a run that is so many times as fast as the default, in a block of this level; return its name."""
        self.runs += 1
        configuration = json.dumps({**DEFAULT, **(changes or {})}, sort_keys=True)
        run, ops = f"r{self.runs}", level * times * math.exp(self._rng.normal(0, 0.02))
        self.connection.execute(
            "INSERT INTO plan (block_id, config_id, configuration, is_sentinel) VALUES (?, ?, ?, ?)",
            [block, configuration, configuration, not changes],
        )
        self.connection.execute(
            "INSERT INTO runs (run_id, block_id, session, dbms, device, workload, config_id, is_sentinel, status,"
            " throughput_ops) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'ok', ?)",
            [run, block, session, *CASE, configuration, not changes, ops],
        )
        return run

    def pick(self) -> dict[str, dict[str, Value]]:
        """Return risk -> changes of what is picked."""
        return {row["risk"]: json.loads(row["changes"]) for row in pick_fastest(self.connection, self.specs)}

    def changes(self) -> Iterable[Changes]:
        """Return to which changes the runs were reduced."""
        names = dict(zip(("dbms", "device", "workload"), CASE, strict=True))
        return _list_changed(self.connection, self.specs, self.specs.cases[0], names)


@pytest.fixture
def measured() -> Measured:
    found = Measured(shipped_study("quickstart"))
    for block, level in (("b0", 100.0), ("b1", 300.0)):  # the machine became faster
        for _ in range(3):
            found.add(block, 1.0, level=level)
    return found


def test_the_safe_one_and_the_risky_one_are_reduced_to_knobs_that_stand_out(measured: Measured) -> None:
    measured.add("b0", 3.0, {**FULL_WAL, "temp_store": "memory"})
    measured.add("b0", 12.0, {**NORMAL_WAL, "cache_size": -500})
    measured.add("b1", 1.2, {"synchronous": "normal"}, level=300.0)  # slower than wal, though it did more per second
    assert measured.pick() == {"none": FULL_WAL, "any": NORMAL_WAL}


def test_a_knob_that_acts_only_with_one_that_stands_out_is_kept(measured: Measured) -> None:
    """The log's checkpoint counts in WAL mode only; alone its change is none, and a cache's is noise."""
    late: dict[str, Value] = {**FULL_WAL, "wal_autocheckpoint": 10000}
    for cache in (-500, -32000):
        measured.add("b0", 3.0, {**late, "cache_size": cache})
        measured.add("b0", 2.0, {**FULL_WAL, "cache_size": cache})
        measured.add("b0", 1.5, {"synchronous": "extra", "wal_autocheckpoint": 10000, "cache_size": cache})
    assert measured.pick() == {"none": late}
    assert {"synchronous": "extra"} in [dict(changes) for changes in measured.changes()]


def test_a_safe_one_that_is_the_fastest_is_named_once(measured: Measured) -> None:
    measured.add("b0", 3.0, FULL_WAL)
    measured.add("b0", 1.5, {"synchronous": "off"})
    assert measured.pick() == {"none": FULL_WAL}


def test_one_lucky_run_is_worth_less_than_many(measured: Measured) -> None:
    for cache in (-500, -2000, -32000):
        for page in (1024, 4096, 16384):
            measured.add("b0", 3.0, {**FULL_WAL, "cache_size": cache, "page_size": page})
            measured.add("b0", 0.5 + cache % 3, {"synchronous": "normal", "cache_size": cache, "page_size": page})
    measured.add("b0", 3.05, {**FULL_WAL, "synchronous": "extra"})
    assert measured.pick()["none"] == FULL_WAL


def test_of_equally_fast_ones_the_least_change_wins(measured: Measured) -> None:
    for times in (2.99, 3.0, 3.0, 3.01):
        measured.add("b0", times, {"synchronous": "normal"})
        measured.add("b0", 1.004 * times, {"synchronous": "off"})
        measured.add("b0", 1.004 * times, NORMAL_WAL)
    assert measured.pick() == {"any": {"synchronous": "normal"}}


def test_a_risk_that_gains_nothing_is_not_named(measured: Measured) -> None:
    for times in (2.99, 3.0, 3.0, 3.01):
        measured.add("b0", 1.004 * times, {**FULL_WAL, "synchronous": "extra"})
        measured.add("b0", times, {"synchronous": "off"})
    assert measured.pick() == {"none": {**FULL_WAL, "synchronous": "extra"}}


def test_runs_of_a_resumed_block_are_compared_within_their_session(measured: Measured) -> None:
    for session, level in (("before", 100.0), ("after", 300.0)):
        measured.add("b2", 1.0, level=level, session=session)
    measured.add("b2", 1.2, FULL_WAL, level=100.0, session="before")
    measured.add("b2", 1.0, {"synchronous": "extra"}, level=300.0, session="after")
    assert measured.pick() == {"none": FULL_WAL}


def test_a_run_that_was_set_aside_wins_nothing(measured: Measured) -> None:
    run = measured.add("b0", 50.0, FULL_WAL)
    assert measured.pick() == {"none": FULL_WAL}
    measured.connection.execute("INSERT INTO set_aside_runs (run_id, guard) VALUES (?, 'stalled')", [run])
    assert measured.pick() == {}


def test_where_nothing_is_faster_than_the_default_nothing_is_picked(measured: Measured) -> None:
    measured.add("b0", 0.8, FULL_WAL)
    measured.add("b0", 0.9, {"temp_store": "memory"})
    assert measured.pick() == {}


@pytest.mark.parametrize(("findings", "named"), [(0, NORMAL_WAL), (8, FULL_WAL)])
def test_a_tuners_winner_is_named_at_once_where_nothing_is_measured_again(
    measured: Measured, findings: int, named: dict[str, Value]
) -> None:
    """With `findings: 0` no later stage compares it with what was picked, and it has new runs and power cuts."""
    measured.add("b0", 2.0, FULL_WAL)
    measured.add("b1", 2.0, FULL_WAL, level=300.0)
    configuration = json.dumps({**DEFAULT, **NORMAL_WAL})
    connection = measured.connection
    connection.execute(f"CREATE TABLE tuned ({', '.join(f'{name} {kind}' for name, kind in TABLES['tuned'].items())})")
    insert_rows(
        connection, "plan", [{"block_id": "t", "phase": "tune", "config_id": "c", "configuration": configuration}]
    )
    case = dict(zip(("dbms", "device", "workload"), CASE, strict=True))
    winner = {"space": "all", "config_id": "c", "runs": 3, "estimate": 0.7, "low": 0.5, "high": 0.9, "cuts": 5}
    insert_rows(connection, "tuned", [{**case, **winner}])
    remeasure = measured.specs.study.remeasure.model_copy(update={"findings": findings})
    specs = replace(measured.specs, study=measured.specs.study.model_copy(update={"remeasure": remeasure}))
    fastest = name_fastest(connection, specs)
    assert named in [json.loads(row["changes"]) for row in fastest]
    assert [row.get("tuner") for row in fastest if row["changes"] == json.dumps(NORMAL_WAL)] == ["all"] * (not findings)
