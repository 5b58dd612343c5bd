"""What makes a server wait for the device, from windows whose truth is known."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from test_conclusion import facts, thread, wait

from knobscope.commands.attach.budget import read_budget
from knobscope.commands.attach.busy_files import BusyFile
from knobscope.commands.attach.causes import Evidence, find_cause
from knobscope.commands.attach.conclusion import Conclusion, conclude
from knobscope.commands.attach.facts import Facts, read_facts
from knobscope.commands.attach.surroundings import Limit, Surroundings, read_surroundings
from knobscope.devices import find_block_device
from knobscope.specs import Dbms
from knobscope.tables import DeviceProfile
from knobscope.watch import Profile

QUIET = Surroundings((), 0, 0, 0)
LIMIT = Limit(Path("/sys/fs/cgroup/db/io.max"), "read", is_bytes=False, per_s=300.0)


def judge(window: Facts, reason: str, profile: dict[str, Any] | None = None, **more: Any) -> Conclusion:
    """The conclusion about a server whose only session waits for one thing."""
    watched = {
        "monitor": "bpf",
        "wait_threads": [thread(1, 1000, 5)],
        "waits": [wait(1, reason, 900)],
        "submitters": [],
        "io_profile": [],
        **(profile or {}),
    }
    evidence = Evidence(window, cast(Profile, watched), 32768, **more)
    return conclude(window, read_budget(watched, has_one=window.has_one), lambda fault: find_cause(fault, evidence))


def test_a_limit_that_is_reached_is_named_with_its_file() -> None:
    for rate, at_fault in ((290, "cap"), (100, "one_read")):
        said = judge(facts(reads=rate), "read", surroundings=(QUIET, Surroundings((LIMIT,), 0, 0, 0)))
        assert said.at_fault == at_fault
        assert ("/sys/fs/cgroup/db/io.max" in said.headline) == (at_fault == "cap")
    assert judge(facts(reads=290), "lock", surroundings=(QUIET, Surroundings((LIMIT,), 0, 0, 0))).at_fault == "lock"


def test_requests_that_a_limit_held_back_are_the_servers() -> None:
    row = {"requests": 10, "bytes": 40960, "device_requests": 100, "device_bytes": 409600}
    rows = [
        {"op": "read", **row, "foreign_requests": 90, "foreign_bytes": 368640},
        *({"op": op} | dict.fromkeys([*row, "foreign_requests", "foreign_bytes"], 0) for op in ("write", "flush")),
    ]
    held = {"submitter": "kworker/kthrotld", "op": "read", "requests": 90, "bytes": 368640}
    profile = cast(
        Profile,
        {"monitor": "bpf", "duration_s": 1.0, "cpu_s": 0.1, "io_profile": rows, "io_latency": [], "submitters": [held]},
    )
    assert read_facts(profile).foreign_share == 0.9
    limited = read_facts(profile, is_limited=True)
    assert (limited.foreign_share, limited.operations["read"].per_s) == (0.0, 100.0)


@pytest.mark.parametrize(
    ("in_swap", "pages", "at_fault"), [(1 << 20, 900, "swap"), (0, 900, "read"), (1 << 20, 5, "read")]
)
def test_swap_is_blamed_for_faults_that_read_from_it(in_swap: int, pages: int, at_fault: str) -> None:
    after = Surroundings((), pages, 1000, in_swap)
    said = judge(facts(reads=90, one_share=0.0), "fault", surroundings=(QUIET, after))
    assert said.at_fault == at_fault
    assert said.headline.startswith("Not the device: memory is short") == (at_fault == "swap")


def test_what_nobody_waits_for_is_no_cause() -> None:
    """Sessions wait for flushes while pages are swapped in, for reads while writes reach a limit."""
    swapping, window = (
        Surroundings((), 900, 1000, 1 << 20),
        facts(flushes=500, reads=500, writes=500, us={"write": 9000.0}),
    )
    assert judge(window, "flush", surroundings=(QUIET, swapping)).at_fault == "flush"
    limit = Limit(Path("/sys/fs/cgroup/db/io.max"), "write", is_bytes=False, per_s=500.0)
    limited = (QUIET, Surroundings((limit,), 0, 0, 0))
    assert judge(window, "read", surroundings=limited).at_fault != "cap"
    assert judge(window, "flush", surroundings=limited).at_fault == "cap"
    files = [BusyFile("pg_wal/1", "log", "write", 100, 900_000), BusyFile("base/1", "data", "write", 900, 8192 * 900)]
    assert judge(window, "read", files=files).at_fault != "checkpoint"
    assert judge(window, "flush", files=files).at_fault == "checkpoint"


def test_neighbours_are_blamed_by_what_they_keep_in_flight_and_by_name() -> None:
    submitters = [
        {"submitter": "fio", "op": "read", "requests": 900, "bytes": 9 << 20},
        {"submitter": "jbd2/sda-8", "op": "write", "requests": 900, "bytes": 99 << 20},
        {"submitter": "server", "op": "read", "requests": 9, "bytes": 1 << 20},
    ]
    profile = {"submitters": submitters, "wait_threads": [{**thread(1, 1000, 5), "name": "server"}]}
    busy = facts(reads=100, busy_share=0.9, foreign_share=0.9, us={"read": 9000.0}, foreign=900)
    said = judge(busy, "read", profile)
    assert said.at_fault == "neighbour"
    assert "is for fio, with" in said.headline
    light = facts(reads=100, busy_share=0.9, foreign_share=0.9, us={"read": 90.0}, foreign=900)
    assert judge(light, "read", profile).at_fault == "one_read"


def test_neighbours_that_read_are_seen_by_a_server_that_only_writes() -> None:
    """It has no reads of its own, by whose times theirs could be known."""
    window = {"flushes": 100, "foreign": 900, "us": {"read": None}, "foreign_share": 0.9, "busy_share": 0.9}
    assert judge(facts(depth=4.0, **window), "flush").at_fault == "neighbour"
    assert judge(facts(depth=0.2, **window), "flush").at_fault == "flush"


def test_the_unit_is_blamed_where_filling_it_takes_most_of_a_flush() -> None:
    for fill_us, at_fault in ((1100.0, "unit"), (100.0, "flush"), (None, "flush")):
        finding = {"verdict": "insufficient", "evidence": json.dumps({"fill_us": fill_us, "flush_us": 1300.0})}
        said = judge(facts(flushes=500), "flush", findings=cast(Any, [finding]))
        assert said.at_fault == at_fault
        assert said.is_device


def test_write_back_is_full_where_the_kernel_stops_writes() -> None:
    for own, written_back, at_fault in ((0, 9000, "writeback"), (9000, 10, "write")):
        row = {"op": "write", "own_bytes": own, "inode_bytes": written_back}
        assert judge(facts(writes=500), "write", {"io_profile": [row]}).at_fault == at_fault


@pytest.mark.parametrize(("place", "at_fault"), [("balance_dirty_pages", "writeback"), ("folio_wait_bit", "write")])
def test_without_bpf_write_back_is_full_where_writers_sleep_in_it(place: str, at_fault: str) -> None:
    stack = {"reason": "write", "syscall": None, "stack": place, "waits": 9, "time_us": 900.0}
    sampled = {"monitor": "procfs", "wait_stacks": [stack]}
    assert judge(facts(writes=500, one_share=None), "write", sampled).at_fault == at_fault


@pytest.mark.parametrize(
    ("title", "written", "calls", "write_us", "at_fault"),
    [
        ("postgres: main: checkpointer", 900, 90, 5000.0, "checkpoint"),
        ("postgres: main: checkpointer", 90, 900, 5000.0, "checkpoint"),  # the log has whole pages after a checkpoint
        ("postgres: main: checkpointer", 900, 900, 500.0, "flush"),
        ("postgres: main: checkpointer", 90, 90, 5000.0, "flush"),
        ("postgres: main: walwriter", 900, 900, 5000.0, "flush"),
    ],
)
def test_without_bpf_threads_that_write_data_are_blamed_where_they_write_most(
    title: str, written: int, calls: int, write_us: float, at_fault: str, postgresql: Dbms
) -> None:
    threads = [
        {**thread(1, 1000, 5), "written_bytes": 500, "write_calls": 500},
        {**thread(2, 1000, 0), "title": title, "written_bytes": written, "write_calls": calls},
    ]
    sampled = {"monitor": "procfs", "wait_threads": threads, "waits": [wait(1, "flush", 900), wait(2, "write", 900)]}
    window = facts(flushes=300, writes=300, us={"write": write_us}, one_share=None)
    assert judge(window, "", sampled, patterns=postgresql.threads).at_fault == at_fault


@pytest.mark.parametrize(
    ("size", "unit_us", "at_fault"), [(8192, 1000.0, "unit"), (8192, 100.0, "flush"), (32768, 1000.0, "flush")]
)
def test_without_bpf_units_are_blamed_by_the_mean_size_of_writes(size: int, unit_us: float, at_fault: str) -> None:
    window = facts(flushes=300, writes=300, us={"flush": 1200.0}, one_share=None)
    operations = {**window.operations, "write": replace(window.operations["write"], mean_bytes=size)}
    device = cast(DeviceProfile, {"write_unit_bytes": 32768, "write_unit_us": unit_us})
    window = replace(window, operations=operations)
    said = judge(window, "flush", {"monitor": "procfs"}, device=device)
    assert said.at_fault == at_fault
    assert ("spends at least" in said.headline) == (at_fault == "unit"), "a flush may fill more than one"


@pytest.mark.parametrize(
    ("data", "us", "at_fault"), [(900, 5000.0, "checkpoint"), (10, 5000.0, "flush"), (900, 50.0, "flush")]
)
def test_writes_of_data_files_are_blamed_where_they_fill_the_device(data: int, us: float, at_fault: str) -> None:
    files = [BusyFile("pg_wal/1", "log", "write", 100, 900_000), BusyFile("base/1", "data", "write", data, 8192 * data)]
    assert judge(facts(flushes=100, writes=200, us={"write": us}), "flush", files=files).at_fault == at_fault


def test_the_device_is_blamed_by_all_waits_for_it() -> None:
    waits = [wait(1, "flush", 300), wait(1, "write", 280), wait(1, "runnable", 400)]
    budget = read_budget({"wait_threads": [thread(1, 1000, 5)], "waits": waits}, has_one=False)
    said = conclude(facts(flushes=300), budget)
    assert said.at_fault == "flush"
    assert "59" in said.headline, "the share of all waits for the device"


def test_limits_of_this_machine_can_be_read() -> None:
    now = read_surroundings(find_block_device(Path("/")), os.getpid(), [os.getpid()])
    assert now.major_faults >= 0
    assert all(limit.per_s > 0 for limit in now.limits)
