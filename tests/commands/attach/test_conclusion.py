"""The conclusion from the numbers of a window, whose truth is known."""

from collections.abc import Mapping
from typing import Any

import pytest
from shipped_specs import shipped_dbms

from knobscope.commands.attach.budget import read_budget
from knobscope.commands.attach.conclusion import conclude, suggest
from knobscope.commands.attach.facts import Facts, Operation
from knobscope.commands.attach.program import Running
from knobscope.commands.attach.settings import list_advice, parse_setting
from knobscope.commands.attach.sums import Sums, complete_facts, complete_light_facts
from knobscope.specs import Dbms


def facts(
    *,
    reads: float = 0,
    writes: float = 0,
    flushes: float = 0,
    us: Mapping[str, float | None] | None = None,
    foreign: float = 0,
    **more: Any,
) -> Facts:
    """A window: requests per second, mean microseconds by operation; `foreign`: reads per second of others."""
    times: dict[str, float | None] = {"read": 100.0, "write": 50.0, "flush": 1000.0, **(us or {})}
    rates = {"read": reads, "write": writes, "flush": flushes}
    others = {"read": foreign}
    operations = {
        op: Operation(rate, rate + others.get(op, 0), 4096, times[op], None, others.get(op, 0))
        for op, rate in rates.items()
    }
    usual = {
        "busy_share": 0.0,
        "depth": 1.0,
        "one_share": 1.0,
        "cores": 0.5,
        "machine_share": 0.3,
        "foreign_share": 0.0,
    }
    return Facts(10.0, operations, **{**usual, **more})


@pytest.mark.parametrize(
    ("window", "at_fault", "words"),
    [
        (facts(flushes=600, writes=600, busy_share=0.7), "flush", "600 flushes/s of 1 ms each; one request in flight"),
        (facts(flushes=480, writes=300, busy_share=0.7), "flush", "480 flushes/s of 1 ms each"),
        (facts(reads=9000, busy_share=0.9), "one_read", "one request in flight"),
        (facts(reads=9000, busy_share=0.9, one_share=0.1, depth=7.0), "read", "7.0 requests in flight"),
        (facts(writes=20000, busy_share=0.95, depth=30.0, one_share=0.0), "write", "20,000 writes/s"),
        (facts(writes=10, busy_share=0.1, machine_share=0.97, cores=1.8), "cpu", "Not the device"),
        (facts(writes=10, busy_share=0.1, cores=0.9), "cpu", "Not the device"),
        (facts(writes=10, busy_share=0.1, cores=0.1), "other", "Not the device"),
        (facts(cores=0.01), "idle", "The server is idle"),
        (facts(cores=0.01, busy_share=0.9, foreign_share=0.9), "neighbour", "Others use the device"),
    ],
)
def test_counts_and_times_name_what_is_at_fault(window: Facts, at_fault: str, words: str) -> None:
    found = conclude(window, None)
    assert found.at_fault == at_fault
    assert words in found.headline.replace("\u00a0", " ")
    assert found.is_device == (at_fault in ("flush", "read", "one_read", "write"))


def test_neighbours_are_named_where_the_device_holds_a_server_back() -> None:
    found = conclude(facts(flushes=900, writes=100, busy_share=0.9, foreign_share=0.8), None)
    assert found.at_fault == "flush"
    assert "others cause 80" in found.headline


def thread(tid: int, wall_us: float, served: int, *, is_followed: bool = True) -> dict[str, Any]:
    return {"tid": tid, "pid": 1, "name": "", "title": "", "wall_us": wall_us, "is_followed": is_followed} | {
        "served": served
    }


def wait(tid: int, reason: str, time_us: float, links: int = 0) -> dict[str, Any]:
    return {"tid": tid, "via": 9 if links else 0, "links": links, "reason": reason, "waits": 1, "time_us": time_us}


def test_time_of_sessions_decides_where_it_is_known() -> None:
    """A background writer that waits all the time is no session, nor is a thread of the kernel."""
    profile = {
        "wait_threads": [
            thread(1, 1000, 500),
            thread(2, 1000, 0),
            thread(3, 1000, 9),
            thread(4, 9, 500, is_followed=False),
        ],
        "waits": [
            wait(1, "network", 500),
            wait(1, "flush", 100),
            wait(1, "flush", 250, links=1),
            wait(1, "cpu", 150),
            wait(2, "write", 1000),
            wait(3, "read", 1000),
        ],
        "wait_files": [{"reason": "flush", "waits": 10, "time_us": 87000}],
    }
    budget = read_budget(profile, has_one=True)
    assert budget is not None
    assert budget.sessions == 1
    assert (budget.idle_us, budget.active_us) == (500, 500)
    assert [(line.reason, line.share, line.through_share) for line in budget.lines] == [
        ("flush", 0.7, 0.5),
        ("cpu", 0.3, 0),
    ]
    found = conclude(facts(flushes=1, machine_share=1.0), budget)
    headline = found.headline.replace("\u00a0", " ")
    assert headline == "70 % of a session's time waits for flushes of 8.7 ms each; one request in flight."


def test_threads_that_run_any_work_are_no_sessions_as_in_studies() -> None:
    """As in a program in Go: a thread that has no work sleeps until another one has some for it."""
    threads = [{**thread(tid, 1000, 50), "epoll": 4} for tid in (1, 2)] + [thread(3, 1000, 0)]
    waits = [
        wait(1, "lock", 300),
        wait(1, "network", 500, links=1),
        wait(1, "network", 200),
        wait(2, "lock", 700),
        wait(2, "flush", 200, links=1),
        wait(2, "cpu", 100),
        wait(3, "flush", 300),
        wait(3, "lock", 700),
    ]
    budget = read_budget({"wait_threads": threads, "waits": waits}, has_one=True)
    assert budget is not None
    assert (budget.sessions, budget.idle_us) == (0, 2600)
    assert [(line.reason, line.share, line.through_share) for line in budget.lines] == [
        ("flush", 0.75, 0),
        ("cpu", 0.25, 0),
    ]
    found = conclude(facts(flushes=600, busy_share=0.7, machine_share=1.0), budget)
    assert found.headline.startswith("A flush is under way for 60"), "counts decide, as in studies"
    assert found.sentences[0].startswith("No thread serves a client from request to answer")


@pytest.mark.parametrize(("woken", "others_us", "sessions"), [(90, 300, 0), (1, 300, 1), (90, 50, 1)])
def test_a_thread_that_wakes_others_for_most_of_the_work_is_no_session(
    woken: int, others_us: float, sessions: int
) -> None:
    """As slapd's listener does, and not Redis, which seldom wakes a thread that closes or flushes a file."""
    threads = [thread(1, 1000, 100), thread(2, 1000, 0)]
    given = {**wait(2, "network", 600, links=1), "via": 1, "waits": woken}
    waits = [wait(1, "cpu", 100), wait(1, "network", 900), given, wait(2, "flush", others_us), wait(2, "lock", 100)]
    budget = read_budget({"wait_threads": threads, "waits": waits}, has_one=True)
    assert budget is not None
    assert budget.sessions == sessions
    assert budget.lines[0].reason == ("cpu" if sessions else "flush")


def test_a_thread_that_waits_for_those_that_it_wakes_is_a_session() -> None:
    """A session of MySQL sleeps until the thread that flushes the log has done so."""
    threads = [thread(1, 1000, 100), thread(2, 1000, 0)]
    given = {**wait(2, "cpu", 100, links=1), "via": 1, "waits": 100}
    waits = [wait(1, "cpu", 100), {**wait(1, "flush", 700, links=1), "via": 2}, given, wait(2, "flush", 700)]
    budget = read_budget({"wait_threads": threads, "waits": waits}, has_one=True)
    assert budget is not None
    assert (budget.sessions, budget.at_fault) == (1, "flush")


def test_a_lock_whose_holder_waits_for_its_client_is_a_lock() -> None:
    waits = [wait(1, "network", 700, links=1), wait(1, "network", 200), wait(1, "flush", 100)]
    budget = read_budget({"wait_threads": [thread(1, 1000, 5)], "waits": waits}, has_one=True)
    assert budget is not None
    assert budget.idle_us == 200
    found = conclude(facts(flushes=900, busy_share=0.9), budget)
    assert found.at_fault == "lock"
    assert "holders wait for their own clients" in found.headline


@pytest.mark.parametrize(("reason", "at_fault"), [("lock", "lock"), ("runnable", "cpu"), ("other", "other")])
def test_sessions_that_wait_for_something_else_do_not_blame_the_device(reason: str, at_fault: str) -> None:
    profile = {"wait_threads": [thread(1, 1000, 5)], "waits": [wait(1, reason, 900), wait(1, "flush", 100)]}
    found = conclude(facts(flushes=900, busy_share=0.9), read_budget(profile, has_one=True))
    assert found.at_fault == at_fault
    assert found.headline.startswith("Not the device: 90")


def test_one_session_that_waits_is_something_however_many_are_idle() -> None:
    threads, idle = [thread(tid, 1000, 5) for tid in range(100)], [wait(tid, "network", 1000) for tid in range(1, 100)]
    budget = read_budget({"wait_threads": threads, "waits": [wait(0, "flush", 1000), *idle]}, has_one=True)
    assert budget is not None
    assert conclude(facts(flushes=900, busy_share=0.9), budget).at_fault == "flush"
    few = read_budget({"wait_threads": threads, "waits": [wait(0, "flush", 10), *idle]}, has_one=True)
    assert few is not None
    assert conclude(facts(flushes=900, busy_share=0.9), few).at_fault == "idle"


def test_few_sessions_that_wait_for_a_lock_all_the_time_are_something() -> None:
    """A row that an idle transaction holds: the server computes and reads next to nothing."""
    threads = [thread(tid, 1000, 5) for tid in range(40)]
    waits = [wait(tid, "lock" if tid < 5 else "network", 1000) for tid in range(40)]
    budget = read_budget({"wait_threads": threads, "waits": waits}, has_one=False)
    assert budget is not None
    assert conclude(facts(cores=0.0), budget).at_fault == "lock"
    woken = [wait(tid, reason, us) for tid in range(40) for reason, us in (("runnable", 100), ("network", 900))]
    by_timers = read_budget({"wait_threads": threads, "waits": woken}, has_one=False)
    assert by_timers is not None
    assert conclude(facts(cores=0.0), by_timers).at_fault == "idle"


def test_waiting_for_asynchronous_requests_is_not_said_to_be_anything_else() -> None:
    profile = {"wait_threads": [thread(1, 1000, 5)], "waits": [wait(1, "async", 900), wait(1, "cpu", 100)]}
    found = conclude(facts(reads=900), read_budget(profile, has_one=True))
    assert (found.at_fault, found.is_device) == ("async", False)
    assert found.headline.startswith("90")


def test_the_spec_says_which_threads_are_sessions(postgresql: Dbms) -> None:
    threads = [
        {**thread(1, 1000, 900), "title": "postgres: walwriter "},
        {**thread(2, 1000, 1), "title": "postgres: me shop [local] COMMIT"},
    ]
    profile = {"wait_threads": threads, "waits": [wait(1, "flush", 1000), wait(2, "lock", 1000)]}
    budget = read_budget(profile, postgresql.threads, has_one=True)
    assert budget is not None
    assert (budget.sessions, budget.at_fault) == (1, "lock")


def test_waits_that_were_not_watched_are_no_budget() -> None:
    assert read_budget({}, has_one=True) is None
    assert read_budget({"wait_threads": [], "waits": []}, has_one=True) is None


def test_advice_has_value_and_risk(postgresql: Dbms) -> None:
    running = Running("/usr/lib/postgresql/15/bin/postgres", postgresql, "15.14")
    advice = list_advice(running, ("flush",), {"synchronous_commit": "on"})
    assert advice[0].words == "synchronous_commit (now on; risk: off can lose committed data)"
    assert advice[0].source.startswith("https://www.postgresql.org/docs/")
    text = suggest(conclude(facts(flushes=900, busy_share=0.9), None), advice)
    assert text is not None
    assert "power-loss protection" in text


def test_a_value_has_its_unit(postgresql: Dbms) -> None:
    running = Running("/usr/lib/postgresql/15/bin/postgres", postgresql, "15.14")
    in_force = {"synchronous_commit": "off", "commit_delay": "1000", "commit_siblings": "5", "wal_writer_delay": "200"}
    words = [item.words for item in list_advice(running, ("flush",), in_force)]
    assert {"commit_delay (now 1000 us)", "commit_siblings (now 5 transactions)"} <= set(words)
    at_once = list_advice(running, ("flush",), {**in_force, "commit_delay": "0"})
    assert "commit_delay (now 0, off)" in [item.words for item in at_once]
    assert "wal_writer_delay (now 200 ms)" in [item.words for item in at_once]


def test_the_rhythm_of_the_log_writer_is_no_advice_where_commits_flush_themselves(postgresql: Dbms) -> None:
    running = Running("/usr/lib/postgresql/15/bin/postgres", postgresql, "15.14")
    in_force = {"synchronous_commit": "on", "commit_delay": "0", "wal_level": "replica", "wal_writer_delay": "200"}
    named = [item.knob for item in list_advice(running, ("flush",), in_force)]
    assert named == ["synchronous_commit", "fsync", "wal_sync_method", "commit_delay", "checkpoint_flush_after"]


def test_advice_leaves_out_what_does_not_count_and_defaults_of_other_versions() -> None:
    mysql = shipped_dbms("mysql")
    in_force = {"innodb_flush_log_at_trx_commit": "1", "a setting that is no knob": "1"}
    named = [item.knob for item in list_advice(Running("mysqld", mysql, "9.7.0"), ("flush",), in_force)]
    assert "sync_binlog" in named, "whether it counts is not known"
    assert "innodb_flush_log_at_timeout" not in named
    (first, *_) = list_advice(Running("mysqld", mysql, "8.0.44"), ("flush",), {})
    assert first.default == ""
    assert "default" not in first.words


def test_a_default_is_that_of_the_dbms_and_not_what_the_spec_chooses() -> None:
    redis = shipped_dbms("redis")
    advice = {item.knob: item for item in list_advice(Running("redis-server", redis, "7.0.15"), ("flush",), {})}
    assert advice["appendonly"].words == "appendonly (default no; risk: no can lose committed data)"


def test_a_value_that_the_settings_in_force_make_safe_is_no_risk() -> None:
    mariadb = shipped_dbms("mariadb")
    for sync_binlog, risk in (("0", "; risk: on can lose committed data"), ("1", "")):
        in_force = {"log_bin": "ON", "sync_binlog": sync_binlog}
        advice = {item.knob: item for item in list_advice(Running("mariadbd", mariadb, "10.11"), ("flush",), in_force)}
        assert advice["log_bin"].words == f"log_bin (now ON{risk})"


@pytest.mark.parametrize(
    ("knob", "text", "value"),
    [
        ("shared_buffers", "2048", 2048),
        ("synchronous_commit", "on", "on"),
        ("full_page_writes", "off", False),
        ("full_page_writes", "on", True),
        ("shared_buffers", "plenty", None),
        ("wal_compression", "no such thing", None),
    ],
)
def test_answers_become_values_of_studies(postgresql: Dbms, knob: str, text: str, value: Any) -> None:
    assert parse_setting(postgresql, knob, text) == value


def test_light_mode_tells_the_depth_while_the_device_is_busy() -> None:
    """Of one request in flight over the whole time, two while the device is busy."""
    before, after = sums(busy_ms=0, weighted_ms=0), sums(busy_ms=500, weighted_ms=1000, at=1.0)
    light = complete_light_facts(facts(depth=1.0, one_share=None), before, after)
    assert (light.busy_share, light.depth, light.has_one) == (0.5, 2.0, False)


def test_a_device_is_not_busy_for_longer_than_its_requests_take() -> None:
    """Before 6.10 the kernel took each of 300 requests of 80 us for a tick: busy all the time, by that."""
    before, after = sums(busy_ms=0, weighted_ms=(1 << 32) - 4), sums(busy_ms=1000, weighted_ms=20, at=1.0)
    found = complete_facts(facts(reads=300, depth=None, one_share=None), before, after)
    assert (found.busy_share, found.depth, found.has_one) == (0.024, None, False)  # the sum has wrapped around


def test_one_request_at_a_time_is_seen_though_ticks_round() -> None:
    before, after = sums(busy_ms=0, weighted_ms=0), sums(busy_ms=940, weighted_ms=900, at=1.0)
    found = complete_facts(facts(reads=5000, depth=None, one_share=None), before, after)
    assert (found.depth, found.has_one) == (1.0, True)


def sums(*, busy_ms: int, weighted_ms: int, at: float = 0.0) -> Sums:
    """The kernel's sums of a device that did nothing else."""
    return Sums(at, [0] * 9 + [busy_ms, weighted_ms] + [0] * 6, None, None, None, "")


@pytest.mark.parametrize(("flushes", "foreign"), [(400, 0.0), (0, 0.75)])
def test_what_a_journal_writes_at_flushes_is_nobody_elses(flushes: int, foreign: float) -> None:
    """The kernel's sums tell whose the bytes are by process and cgroup only, and the journal is in none of them."""
    counted = [0] * 17
    counted[6], counted[15] = 400 * 4 * 8, flushes  # four blocks of 4 KiB for one that the server wrote
    before, after = (
        Sums(at, device, written, None, None, "")
        for at, device, written in ((0.0, [0] * 17, 0), (1.0, counted, 400 * 4096))
    )
    assert complete_light_facts(facts(writes=1600), before, after).foreign_share == foreign
