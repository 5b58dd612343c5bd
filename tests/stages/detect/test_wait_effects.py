"""Time of sessions per operation as a response: its changes are estimated, and unknown where nobody watched."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from generated_studies import Study, Truth

from knobscope.stages.detect import METRICS
from knobscope.text.budgets import REASONS, WAIT_METRICS

Make = Callable[..., Study]

TRUTH = {
    ("sync", "none"): Truth(throughput=0.9, waits=(("flush", -280.0), ("cpu", 10.0))),
    ("buffer", "32"): Truth(throughput=-0.2, waits=(("preempted", 40.0),)),
}


@pytest.fixture(scope="module")
def study(make_study: Make) -> Study:
    waits = (("flush", 300.0), ("cpu", 50.0), ("runnable", 10.0), ("preempted", 20.0), ("network", 500.0))
    return make_study(knobs=("sync", "buffer"), truth=TRUTH, waits=waits, repeats=4)


def changes(study: Study, knob: str, value: str) -> pd.DataFrame:
    rows = study.query(f"FROM effects WHERE knob = '{knob}' AND value = '{value}'")
    return rows.set_index("metric")


def test_a_change_of_a_wait_is_found_with_its_interval(study: Study) -> None:
    found = changes(study, "sync", "none")
    flush, cpu = found.loc["wait_flush_us_per_op"], found.loc["wait_cpu_us_per_op"]
    assert flush["low"] < -280 < flush["high"] < -250
    assert flush["reference"] == pytest.approx(300, rel=0.05)
    assert cpu["low"] < 10 < cpu["high"]
    assert found.loc["wait_lock_us_per_op", "estimate"] == 0


def test_who_was_displaced_waits_for_a_processor_too(study: Study) -> None:
    runnable = changes(study, "buffer", "32").loc["wait_runnable_us_per_op"]
    assert runnable["reference"] == pytest.approx(30, rel=0.1)
    assert runnable["estimate"] == pytest.approx(40, abs=4)


def test_threads_in_the_background_are_no_part_of_an_operation(study: Study) -> None:
    rows = study.query("SELECT wait_flush_us_per_op AS us FROM run_metrics JOIN runs USING (run_id) WHERE is_sentinel")
    assert rows["us"].between(270, 330).all()


def test_operations_count_while_waits_are_counted(make_study: Make) -> None:
    """A busy machine begins to count late; the time of half a window is that of half of its operations."""
    half = make_study(knobs=("sync",), truth=TRUTH, waits=(("flush", 300.0),), columns={"waits_s": 5.0})
    rows = half.query("SELECT wait_flush_us_per_op AS us FROM run_metrics JOIN runs USING (run_id) WHERE is_sentinel")
    assert rows["us"].between(540, 660).all()


def test_each_reason_is_a_metric() -> None:
    assert set(WAIT_METRICS.values()) <= set(METRICS)
    assert len(REASONS) == 14


def test_where_waits_were_not_watched_nothing_is_known(make_study: Make) -> None:
    study = make_study(knobs=("sync", "buffer"), truth=TRUTH, repeats=4)
    assert not any(name.startswith("wait_") for name in changes(study, "sync", "none").index)
    assert study.query("SELECT count(wait_flush_us_per_op) AS known FROM run_metrics")["known"].item() == 0


def test_who_serves_is_what_the_default_configuration_shows(study: Study, tmp_path: Path) -> None:
    """Where the number of clients is a factor of a screening, most of its runs may have fewer."""
    copied = tmp_path / "study.duckdb"
    shutil.copy(study.database, copied)
    with duckdb.connect(str(copied)) as database:
        database.execute("UPDATE waits SET threads = 1 WHERE run_id IN (SELECT run_id FROM runs WHERE NOT is_sentinel)")
    assert replace(study, database=copied).query("SELECT serving FROM serving_threads()")["serving"].item() == 2


@pytest.mark.parametrize(
    ("latency_us", "sessions", "known"),
    [
        (3000.0, 1, 0),  # of which the thread does 100 us, and 400 us for all four clients
        (600.0, 1, 1),  # an event loop: a client waits for the operations of the others, too
        (3000.0, 4, 1),  # a thread for each client: the rest of its time is the client's
    ],
)
def test_a_thread_that_passes_operations_on_has_no_budget(
    make_study: Make, latency_us: float, sessions: int, known: int
) -> None:
    """It is woken by clients, but what it waits for is not what they wait for: workers have the rest of the time."""
    study = make_study(
        knobs=("sync",),
        truth=TRUTH,
        waits=(("cpu", 100.0), ("network", 900.0)),
        threads=4,
        sessions=sessions,
        columns={"latency_mean_us": latency_us},
    )
    served = study.query("SELECT serving, watched.sessions AS known FROM visibility")
    assert (served["serving"].item(), served["known"].item()) == (4 if not known else sessions, bool(known))
    assert study.query("SELECT count(wait_cpu_us_per_op) > 0 AS known FROM run_metrics")["known"].item() == bool(known)
