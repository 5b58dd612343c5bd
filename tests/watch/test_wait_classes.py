"""What single threads waited for, joined to classes: nothing is lost, nothing is spread, and words say it."""

from typing import Any, cast

import pytest

from knobscope.specs import Dbms
from knobscope.text.budgets import (
    REASONS,
    Part,
    describe_budget,
    describe_budget_change,
    describe_shares,
    sum_parts,
)
from knobscope.thread_classes import class_of_thread
from knobscope.watch import Profile, make_wait_columns, sum_waits
from knobscope.watch.text_calls import format_calls

PATTERNS = {"wal_writer": "^postgres: walwriter", "session": r"^postgres: .*\[local\]"}


def thread(tid: int, wall_us: float, **more: Any) -> dict[str, Any]:
    row = {"tid": tid, "pid": tid, "name": "postgres", "title": "", "wall_us": wall_us, "is_followed": True}
    return {**row, "served": 0, **more}


def waited(tid: int, reason: str, time_us: float, via: int = 0, links: int = 0) -> dict[str, Any]:
    times = {"waits": 10, "time_us": time_us, "longest_us": time_us / 2}
    return {"tid": tid, "via": via, "links": links, "reason": reason, **times}


@pytest.fixture
def group_commit() -> Profile:
    """Two sessions, the second of which leads most groups; the WAL writer; and the journal's thread of the kernel."""
    return cast(
        Profile,
        {
            "wait_threads": [
                thread(1, 1000.0, title="postgres: a a [local] UPDATE", served=5),
                thread(2, 1000.0, title="postgres: b b [local] idle", served=5),
                thread(3, 1000.0, title="postgres: walwriter"),
                thread(4, 1000.0, name="jbd2/vda1-8", is_followed=False, served=9),
            ],
            "waits": [
                waited(1, "network", 100.0),
                waited(1, "flush", 600.0, via=2, links=1),
                waited(1, "journal", 50.0, via=4, links=2),
                waited(1, "cpu", 200.0),
                waited(2, "flush", 700.0),
                waited(2, "runnable", 100.0),
                waited(2, "preempted", 200.0),
                waited(3, "timer", 1000.0),
                waited(4, "other", 1000.0),
            ],
            "lost_waits": {"threads": 0, "times": 3, "missed_events": 4},
        },
    )


def test_the_rows_of_a_class_add_up_to_its_wall_time(group_commit: Profile) -> None:
    rows, chains = sum_waits(group_commit, PATTERNS)
    assert sum(row["time_us"] for row in rows if row["thread_class"] == "session") == 2000
    assert {row["thread_class"] for row in rows} == {"session", "wal_writer", "jbd2/vda1"}
    flush = next(row for row in rows if (row["thread_class"], row["reason"]) == ("session", "flush"))
    assert (flush["threads"], flush["waits"], flush["time_us"], flush["through_us"]) == (2, 20, 1300, 600)
    assert flush["longest_us"] == 350
    assert [(c["via_class"], c["reason"], c["links"], c["time_us"]) for c in chains] == [
        ("session", "flush", 1, 600.0),
        ("jbd2/vda1", "journal", 2, 50.0),
    ]


def test_time_that_no_row_covers_is_unknown_and_is_not_spread_over_others(group_commit: Profile) -> None:
    rows, _ = sum_waits(group_commit, PATTERNS)
    unknown = {row["thread_class"]: row["time_us"] for row in rows if row["reason"] == "unknown"}
    assert unknown == {"session": 50.0}


def test_a_thread_that_was_waited_for_and_is_not_listed_has_no_class(group_commit: Profile) -> None:
    group_commit["waits"].append(cast(Any, waited(2, "lock", 1.0, via=99, links=1)))
    _, chains = sum_waits(group_commit, PATTERNS)
    assert [chain["via_class"] for chain in chains if chain["reason"] == "lock"] == [None]


@pytest.mark.parametrize(
    ("name", "title", "serves", "found"),
    [
        ("postgres", "postgres: walwriter   ", True, "wal_writer"),
        ("postgres", "postgres: a b [local] COMMIT", False, "session"),
        ("mariadbd", "mariadbd --datadir=x", True, "session"),
        ("mariadbd", "mariadbd --datadir=x", False, "mariadbd"),
        ("ib_io_rd-12", "", False, "ib_io_rd"),
        ("1234", "", False, "(no name)"),
        ("C2 CompilerThre", "", False, "C2 CompilerThre"),
        ("\x1b[2Jrogue", "", False, "Jrogue"),
    ],
)
def test_the_first_pattern_counts_then_clients_then_the_name(name: str, title: str, serves: bool, found: str) -> None:
    assert class_of_thread(PATTERNS, name, title, serves=serves) == found


def test_threads_that_take_turns_in_one_epoll_descriptor_serve_no_client_by_themselves() -> None:
    """As in a program in Go; a descriptor of the same number in another process is another one."""
    threads = [
        *(thread(tid, 1000.0, pid=1, name="etcd", served=9, epoll=4) for tid in (1, 2)),
        thread(3, 1000.0, pid=7, name="redis-server", served=9, epoll=4),
        thread(4, 1000.0, pid=7, name="bio", epoll=4),
        thread(5, 1000.0, pid=7, name="postgres", title="postgres: a b [local] idle", served=9, epoll=4),
    ]
    waits = [waited(row["tid"], "flush", 1000.0) for row in threads]
    rows, _ = sum_waits(cast(Profile, {"wait_threads": threads[:4], "waits": waits[:4]}), PATTERNS)
    assert {row["thread_class"]: row["threads"] for row in rows} == {"etcd": 2, "session": 1, "bio": 1}
    rows, _ = sum_waits(cast(Profile, {"wait_threads": threads, "waits": waits}), PATTERNS)
    assert {row["thread_class"]: row["threads"] for row in rows} == {  # a pattern decides whatever was seen
        "etcd": 2,
        "redis-server": 1,
        "bio": 1,
        "session": 1,
    }


#: Titles and names as the servers that were started had them.
@pytest.mark.parametrize(
    ("name", "title", "found"),
    [
        ("postgres", "postgres: checkpointer                    ", "checkpointer"),
        ("postgres", "postgres: background writer ", "background_writer"),
        ("postgres", "postgres: walwriter ", "wal_writer"),
        ("postgres", "postgres: main: walwriter ", "wal_writer"),  # with cluster_name
        ("postgres", "postgres: autovacuum launcher ", "autovacuum"),
        ("postgres", "postgres: io worker 2", "io_worker"),
        ("postgres", "postgres: postgres postgres [local] idle in transaction", "session"),
        ("postgres", "postgres: postgres postgres 127.0.0.1(40724) SELECT", "session"),
        ("postgres", "postgres: postgres postgres ::1(40724) UPDATE waiting", "session"),
        ("postgres", "postgres: logical replication launcher ", "postgres"),
        ("postgres", "/usr/lib/postgresql/15/bin/postgres -D /data -k /tmp", "postgres"),
    ],
)
def test_postgresql_says_in_titles_what_its_processes_are(postgresql: Dbms, name: str, title: str, found: str) -> None:
    assert class_of_thread(postgresql.threads, name, title, serves=False) == found


def test_a_budget_names_parts_by_size_and_leaves_the_client_out(group_commit: Profile) -> None:
    parts = sum_parts(*sum_waits(group_commit, PATTERNS), operations=10)
    assert [part.reason for part in parts] == list(REASONS)
    assert describe_budget(parts).replace("\xa0", " ") == (
        "190 µs, of which 130 µs flush (60 µs through the leader of the group), 30 µs runnable, 20 µs CPU, "
        "5 µs file-system journal (5 µs through jbd2/vda1), 5 µs unknown"
    )
    assert describe_shares(parts).startswith("68\xa0% flush (32\xa0% through the leader of the group)")
    assert sum_parts(*sum_waits(group_commit, PATTERNS), "compaction") == []


def test_a_thread_of_another_class_waits_for_a_session_and_for_no_leader_of_a_group() -> None:
    waits = [{"thread_class": "gc", "reason": "flush", "time_us": 10.0, "through_us": 10.0}]
    chains = [{"thread_class": "gc", "reason": "flush", "via_class": "session", "time_us": 10.0}]
    assert (
        describe_shares(sum_parts(waits, chains, "gc")).replace("\xa0", " ") == "100 % flush (100 % through a session)"
    )


def test_little_that_passed_through_another_thread_is_not_mentioned() -> None:
    parts = [Part("flush", 100.0, 90.0, "jbd2"), Part("runnable", 100.0, 9.0, "jbd2")]
    assert describe_shares(parts).replace("\xa0", " ") == "50 % flush (45 % through jbd2), 50 % runnable"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"flush": 300, "cpu": 45}, {"cpu": 50}, "takes 295 µs less: 300 µs less flush"),
        ({"cpu": 45}, {"cpu": 45, "network": 900}, "takes as long"),
        (
            {"cpu": 45, "network": 900},
            {"cpu": 20, "network": 100},
            "takes 25 µs less: 25 µs less CPU, and 800 µs less of waiting for clients, or for threads that serve them",
        ),
        ({"cpu": 45, "network": 9}, {"cpu": 20, "network": 900}, "takes 25 µs less: 25 µs less CPU"),
        ({"cpu": 40}, {"cpu": 80, "runnable": 10}, "takes 50 µs more: 40 µs more CPU and 10 µs more runnable"),
    ],
)
def test_a_change_is_told_by_its_largest_parts(before: dict[str, float], after: dict[str, float], words: str) -> None:
    sides = ([Part(reason, micros) for reason, micros in side.items()] for side in (before, after))
    assert describe_budget_change(*sides).replace("\xa0", " ") == words


@pytest.mark.parametrize(
    ("sessions_us", "waits_s"),
    [
        ((5e6, 5e6), 5.0),  # clients that are threads of the DBMS's process, and end before it
        ((2e4, 3e4), 5.0),  # clients that connect anew for each operation
        ((7e6, 2e4), 7.0),
        ((), 8.0),
    ],
)
def test_waits_are_counted_as_long_as_the_load_runs(sessions_us: tuple[float, ...], waits_s: float) -> None:
    sessions = [thread(number, wall, title="postgres: a a [local]") for number, wall in enumerate(sessions_us, 1)]
    profile = cast(Profile, {"wait_threads": [*sessions, thread(9, 8e6, title="postgres: walwriter")]})
    assert make_wait_columns(profile, PATTERNS, 5.0)["waits_s"] == waits_s


def test_what_the_probe_lost_is_counted_and_said(group_commit: Profile) -> None:
    assert make_wait_columns(group_commit, PATTERNS, 1e-3) == {"waits_s": 1e-3, "lost_waits": 7}
    assert make_wait_columns(cast(Profile, {}), PATTERNS, 1.0) == {"waits_s": None, "lost_waits": None}
    text = "\n".join(format_calls(group_commit))
    assert "not counted in full: 3 times, 4 missed_events" in text
    assert "session (2\xa0threads, 2\xa0ms, of that 100\xa0µs waiting for a client): 68\xa0% flush" in text
    assert (
        "postgres (1\xa0thread, 1\xa0ms): 100\xa0% sleep" in text
    )  # without a spec the WAL writer has its own name only


def test_no_pattern_takes_for_ever() -> None:
    """Where a search tries one way after another, this title would take longer than the universe is old."""
    assert class_of_thread({"slow": "^(a|aa)+$"}, "worker 7", 4000 * "a" + "!", serves=False) == "worker"
    assert class_of_thread({"none": "x", "slow": "^(a|aa)+$"}, "worker", 4000 * "a", serves=False) == "slow"
    assert class_of_thread({"a": "^A", "b": "^B", "c": "B"}, "none", "Bb \udcff\n", serves=True) == "b"
