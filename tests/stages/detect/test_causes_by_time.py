"""Where waits were watched, time decides: studies in which counts alone would say something else."""

from collections.abc import Callable

import pandas as pd
import pytest
from generated_studies import Truth

Judge = Callable[..., pd.DataFrame]  # as fixture `judge_one`

#: Of the two clients an operation takes 2,000 us together, and 984 us more with a value that is slower by e^0.4.
WAITS = (("flush", 300.0), ("write", 100.0), ("cpu", 400.0), ("runnable", 10.0))
SLOWER = -0.4
#: Rule, truth of a value, verdict, and what the sentence says.
CASES = [
    ("flush", Truth(SLOWER, waits=(("flush", 800.0),)), "mismatch", "although their number does not clearly rise"),
    ("flush", Truth(SLOWER, flushes=1.0, waits=(("flush", 800.0),)), "mismatch", "they are the cause"),
    ("flush", Truth(SLOWER, flushes=1.0, waits=(("cpu", 900.0),)), "none", "too little to be its cause"),
    ("io_size", Truth(SLOWER, writes=0.4, waits=(("write", 800.0),)), "mismatch", "by the time that clients wait"),
    ("io_size", Truth(SLOWER, writes=0.4, waits=(("cpu", 900.0),)), "none", "wait for writes and flushes for at most"),
    ("io_sequentiality", Truth(SLOWER, cpu=0.7, write_run=0.4, waits=(("cpu", 900.0),)), "mismatch", "compute or wait"),
    ("io_sequentiality", Truth(SLOWER, cpu=0.7, write_run=0.4, waits=(("journal", 900.0),)), "none", "for at most"),
]


@pytest.mark.parametrize(("rule", "truth", "verdict", "said"), CASES)
def test_time_decides_against_counts(judge_one: Judge, rule: str, truth: Truth, verdict: str, said: str) -> None:
    cases = [{"truth": {("page", "16"): one}} for _, one, *_ in CASES]
    case = {"truth": {("page", "16"): truth}}
    more = {"noise": 0.006, "share_noise": 0.003, "repeats": 4, "knobs": ("page",)}
    more["unit_us"] = 500.0 if rule == "io_size" else None  # else flushes may be filling them
    findings = judge_one(rule, cases, case, waits=WAITS, **more)
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == verdict, row["sentence"]
    assert said in row["sentence"]
    assert not findings["sentence"].str.contains("watch: [waits]", regex=False).any()


@pytest.mark.parametrize(("sessions", "verdict"), [(1, "mismatch"), (8, "none"), (40, "none")])
def test_what_an_event_loop_waits_for_all_of_its_clients_wait_for(
    judge_one: Judge, sessions: int, verdict: str
) -> None:
    """An operation takes 492 us more; of a thread for each of eight clients that is eight times as much time."""
    case = {"truth": {("page", "16"): Truth(SLOWER, flushes=1.0, waits=(("flush", 450.0),))}}
    more = {"noise": 0.006, "repeats": 4, "knobs": ("page",), "threads": 8, "sessions": sessions}
    findings = judge_one("flush", [case], case, waits=WAITS, **more)
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == verdict, row["sentence"]


@pytest.mark.parametrize("reason", ["timer", "lock"])
def test_counts_decide_where_clients_wait_for_others_that_are_not_followed(judge_one: Judge, reason: str) -> None:
    """One client flushes while the other sleeps until it has: the flush is the cause, also for that one."""
    shared = {"noise": 0.006, "repeats": 4, "knobs": ("page",), "cpu_us": 50.0}
    watched = {"truth": {("page", "16"): Truth(SLOWER, flushes=1.0, waits=(("flush", 400.0), (reason, 550.0)))}}
    computing = {"truth": {("page", "16"): Truth(SLOWER, flushes=1.0, waits=(("flush", 100.0), ("cpu", 850.0)))}}
    rows = [
        judge_one("flush", [case], case, **shared, waits=waits).set_index(["knob", "value"]).loc[("page", "16")]
        for case, waits in ((watched, ()), (watched, (*WAITS, (reason, 10.0))), (computing, (*WAITS, (reason, 10.0))))
    ]
    assert [row["verdict"] for row in rows] == ["mismatch", "mismatch", "none"], [row["sentence"] for row in rows]
    assert "the additional flushes" in rows[1]["sentence"]


def test_counts_decide_where_a_listener_passes_operations_on(judge_one: Judge) -> None:
    """It waits for its workers as for clients; that workers wait for storage shows in the thread of another class."""
    listener = (("cpu", 20.0), ("network", 950.0))
    workers = tuple((reason, 0.0) for reason in ("flush", "write", "read", "fault", "async", "journal"))
    case = {"truth": {("page", "16"): Truth(SLOWER, flushes=1.0, waits=(("network", 480.0),))}}
    rows = [
        judge_one("flush", [case], case, noise=0.006, repeats=4, knobs=("page",), cpu_us=50.0, sessions=1, waits=waits)
        .set_index(["knob", "value"])
        .loc[("page", "16")]
        for waits in ((), (*listener, *workers), listener)
    ]
    assert [row["verdict"] for row in rows] == ["mismatch", "mismatch", "none"], [row["sentence"] for row in rows]
    assert "the additional flushes" in rows[1]["sentence"]


def test_waits_of_threads_that_serve_no_client_are_not_blamed_on_clients(judge_one: Judge) -> None:
    """With all threads in one class, it is this that leaves the cause open, and not what may hide a wait."""
    case = {"truth": {("page", "16"): Truth(SLOWER, flushes=0.4)}}
    more = {
        "noise": 0.006,
        "repeats": 4,
        "knobs": ("page",),
        "cpu_us": 50.0,
        "flushes": 1.0,
        "columns": {"waits_s": 10.0},
    }
    findings = judge_one("flush", [case], case, **more, waits=WAITS, sessions=0).set_index(["knob", "value"])
    assert findings["verdict"]["page", "16"] == "insufficient"
    assert "Waits do not tell, since no thread is known to serve a client" in findings["sentence"]["page", "16"]


def test_an_fsync_that_also_waits_for_writes_is_not_ruled_out(judge_one: Judge) -> None:
    """Of 984 us more, 150 are for flushes and 400 for writes, which flushes may have delayed."""
    waits = (("flush", 150.0), ("write", 400.0), ("cpu", 430.0))
    case = {"truth": {("page", "16"): Truth(SLOWER, flushes=1.0, waits=waits)}, "flush_us": 100}
    findings = judge_one("flush", [case], case, waits=WAITS, noise=0.006, repeats=4, knobs=("page",))
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == "insufficient", row["sentence"]
    assert "Clients wait for flushes for 15 % of the difference, and for 39 % of it for" in row["sentence"]
