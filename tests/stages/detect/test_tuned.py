"""Winners of tuners are judged by the runs that confirm them, not by those that chose them."""

import math

import duckdb
import numpy as np
import pytest

from knobscope.stages.detect.tuning import add_tuned
from knobscope.tables import TABLES
from knobscope.tables.views import VIEWS

CASE = ("db", "disk", "load")
ADD_TRIAL = (
    "INSERT INTO trials (dbms, device, workload, space, knobs, seed, trial, run_id, config_id, is_winner, cuts)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    """A study's database in memory, in which two tuners found a configuration that is 1.5 times as fast."""
    connection = duckdb.connect()
    for table in ("runs", "trials", "tuned"):
        columns = ", ".join(f'"{name}" {kind}' for name, kind in TABLES[table].items())
        connection.execute(f"CREATE TABLE {table} ({columns})")
    for view in ("ok_runs", "tuning"):
        connection.execute(f"CREATE VIEW {view} AS {VIEWS[view]}")
    rng = np.random.default_rng(1)
    number = 0

    def add_run(block: str, round_: int, config: str, ops: float, status: str = "ok", session: str = "first") -> str:
        nonlocal number
        number += 1
        noisy = ops * math.exp(rng.normal(0, 0.01)) if status == "ok" else None
        connection.execute(
            "INSERT INTO runs (run_id, block_id, phase, round, dbms, device, workload, config_id, is_sentinel, status,"
            " throughput_ops, session) VALUES (?, ?, 'tune', ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [f"r{number}", block, round_, *CASE, config, config == "default", status, noisy, session],
        )
        return f"r{number}"

    for block, level in (("s0", 100.0), ("s1", 200.0)):  # the machine doubled its speed
        add_run(block, 0, "default", level)
        for space in ("top5", "all"):
            lucky = 1.9 if (block, space) == ("s0", "all") else 1.2
            run = add_run(block, 0, f"{space}-{block}", lucky * level)
            trial = 1 if block == "s0" else 2
            winner = (space, trial) in (("top5", 2), ("all", 1))
            values = [*CASE, space, 5, 1, trial, run, f"{space}-{block}", winner]
            connection.execute(ADD_TRIAL, [*values, 5 if winner else None])
        add_run(block, 0, "default", level)
    failed = add_run("s1", 0, "broken", 0.0, "failed_start")
    connection.execute(ADD_TRIAL, [*CASE, "top5", 5, 1, 3, failed, "broken", False, None])
    unlucky = add_run("s1", 0, "slow", 150.0)
    connection.execute(ADD_TRIAL, [*CASE, "all", 9, 2, 1, unlucky, "slow", False, None])
    for block, level in (("c0", 100.0), ("c1", 300.0), ("c2", 50.0)):
        for config, factor in (("default", 1.0), ("top5-s1", 1.2), ("all-s0", 1.5), ("default", 1.0)):
            add_run(block, 1, config, level * factor)
    add_run("c2", 1, "all-s0", 1000.0, session="a week later")  # with no default configuration beside it
    return connection


def test_curves_are_against_the_default_of_the_same_block(connection: duckdb.DuckDBPyConnection) -> None:
    rows = connection.execute(
        "SELECT space, seed, list(best_ratio ORDER BY trial) FROM tuning GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    curves = {(space, seed): curve for space, seed, curve in rows}
    assert curves["top5", 1] == pytest.approx([1.2, 1.2, 1.2], rel=0.05)  # the failure leaves the best as it was
    assert curves["all", 1] == pytest.approx([1.9, 1.9], rel=0.05)
    assert curves["all", 2] == [1.0]  # below the default: the default stays


def test_a_block_that_was_resumed_has_a_default_of_each_session(connection: duckdb.DuckDBPyConnection) -> None:
    for run, is_default, ops in (("late", False, 150.0), ("late-default", True, 100.0)):
        connection.execute(
            "INSERT INTO runs BY NAME SELECT ? AS run_id, 's1' AS block_id, 'tune' AS phase, ? AS is_sentinel, "
            "'ok' AS status, ? AS throughput_ops, 'a week later' AS session",
            [run, is_default, ops],
        )
    connection.execute(ADD_TRIAL, [*CASE, "all", 9, 3, 1, "late", "late", False, None])
    assert connection.execute("SELECT ratio FROM tuning WHERE seed = 3").fetchall() == [(pytest.approx(1.5),)]


def test_the_confirmed_effect_is_that_of_the_last_blocks(connection: duckdb.DuckDBPyConnection) -> None:
    add_tuned(connection)
    rows = connection.execute("SELECT space, seed, trial, estimate, low, high, runs FROM tuned ORDER BY ALL").fetchall()
    (all_one, all_two, top) = rows
    assert (all_one[:3], all_one[6]) == (("all", 1, 1), 3)
    assert all_one[3] == pytest.approx(math.log(1.5), abs=0.03)  # not 1.9, which was luck
    assert all_one[4] < math.log(1.5) < all_one[5]
    assert all_two == ("all", 2, None, 0.0, 0.0, 0.0, 0)
    assert top[3] == pytest.approx(math.log(1.2), abs=0.03)
    cuts = connection.execute("SELECT trial IS NOT NULL, cuts FROM tuned ORDER BY ALL").fetchall()
    assert cuts == [(False, None), (True, 5), (True, 5)]
