"""States that real devices seldom show: partial completions, requeues, several hardware queues, missed events."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

Row = dict[str, Any]


@pytest.fixture(scope="module")
def scenarios(system_python: str) -> dict[str, Row]:
    """Scenario -> profile."""
    if os.geteuid() != 0:
        pytest.skip("BPF needs root")
    program = Path(__file__).with_name("synthetic.py")
    done = subprocess.run([system_python, "-I", str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {profile["scenario"]: profile for profile in map(json.loads, done.stdout.splitlines())}


def row_of(profile: Row, op: str) -> Row:
    return next(row for row in profile["io_profile"] if row["op"] == op)


def depths_of(profile: Row, queue: int) -> set[int]:
    return {row["depth"] for row in profile["queue_depth"] if row["queue"] == queue}


def count_completed(profile: Row) -> int:
    return sum(row["requests"] for row in profile["io_latency"])


@pytest.mark.parametrize(
    ("name", "size", "requeues", "failed"),
    [("partial_completion", 8192, 0, 0), ("requeue", 4096, 1, 0), ("requeue_and_fail", 4096, 1, 1)],
)
def test_a_request_in_parts_is_one_request(
    scenarios: dict[str, Row], name: str, size: int, requeues: int, failed: int
) -> None:
    profile = scenarios[name]
    assert profile["io_sizes"] == [{"op": "write", "bytes": size, "requests": 1}]
    assert (profile["requeues"], profile["failed_requests"]) == (requeues, failed)
    assert count_completed(profile) == 1
    assert depths_of(profile, -1) == {0, 1}
    assert profile["starts_without_completion"] == profile["completions_without_start"] == 0


def test_a_completion_without_start_never_lowers_the_depth(scenarios: dict[str, Row]) -> None:
    profile = scenarios["start_before_attach"]
    assert profile["completions_without_start"] == 1
    assert depths_of(profile, -1) == {0}
    assert row_of(profile, "write")["requests"] == count_completed(profile) == 0


def test_a_missed_completion_is_counted_and_forgotten(scenarios: dict[str, Row]) -> None:
    profile = scenarios["missed_completion"]
    assert profile["starts_without_completion"] == 1
    assert row_of(profile, "write")["requests"] == 2
    assert depths_of(profile, -1) == {0, 1}


def test_each_hardware_queue_has_its_depth(scenarios: dict[str, Row]) -> None:
    profile = scenarios["four_queues"]
    assert [depths_of(profile, queue) for queue in range(4)] == [{0, 1}, {0, 1}, {0, 1}, {0, 1, 2}]
    assert depths_of(profile, -1) == set(range(6))
    duration_ns = profile["duration_s"] * 1e9
    for queue in range(-1, 4):
        spent = sum(row["time_ns"] for row in profile["queue_depth"] if row["queue"] == queue)
        assert spent == pytest.approx(duration_ns, rel=1e-6)


def test_operations_and_sizes(scenarios: dict[str, Row]) -> None:
    profile = scenarios["operations_and_sizes"]
    assert [(row["op"], row["bytes"], row["requests"]) for row in profile["io_sizes"]] == [
        ("read", 1048576, 1),
        ("read", 1049088, 1),
        ("write", 520, 1),
        ("write", 2097152, 1),  # of zeroes
        ("discard", 1 << 30, 1),
    ]
    assert {row["op"]: row["requests"] for row in profile["io_profile"]} == {
        "read": 2,
        "write": 2,
        "discard": 1,
        "flush": 1,  # and the driver's own command is none of these
    }
    assert row_of(profile, "flush")["flush_requests"] == 1
    assert profile["lost_events"] == 1  # a tag beyond all tags that the device said it has


def test_sequential_is_three_in_a_row(scenarios: dict[str, Row]) -> None:
    # a run of five and one of three; neither the pair nor the run that goes backwards
    assert row_of(scenarios["sequential_runs"], "write")["sequential_requests"] == 8


def test_a_request_belongs_to_the_run_that_it_began_in(scenarios: dict[str, Row]) -> None:
    before, after = scenarios["across_begin"], scenarios["across_end"]
    assert (before["starts_without_completion"], before["completions_without_start"]) == (1, 0)
    assert (after["starts_without_completion"], after["completions_without_start"]) == (0, 1)
    assert count_completed(before) == count_completed(after) == 0


def test_a_hidden_completion_does_not_raise_the_depth_of_later_runs(scenarios: dict[str, Row]) -> None:
    before, after = scenarios["hidden_completion"], scenarios["after_hidden_completion"]
    assert before["starts_without_completion"] == 1
    assert depths_of(after, -1) == {0, 1}
    assert (after["starts_without_completion"], after["completions_without_start"]) == (0, 0)


def test_parts_add_up(scenarios: dict[str, Row]) -> None:
    total: Callable[[Row], int] = lambda row: sum(  # noqa: E731
        row[f"{part}_requests"] for part in ("own", "inode", "journal", "flush", "foreign")
    )
    for profile in scenarios.values():
        assert all(total(row) == row["requests"] == row["device_requests"] for row in profile["io_profile"])
