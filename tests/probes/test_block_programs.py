"""States that real devices seldom show: partial completions, requeues, several hardware queues, missed events."""

import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from block_profile import bound_depth, summarise_depth
from loop_devices import row_of

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
    assert profile["starts_without_completion"] == profile["hidden_completions"] == 1
    assert profile["depth_excess"] == 0  # with one at a time the mean is 1, whenever the first one ended
    assert 0 < profile["busy_error"] < profile["busy_share"]
    assert row_of(profile, "write")["requests"] == 2
    assert depths_of(profile, -1) == {0, 1}


def test_a_missed_issue_is_counted_at_the_end(scenarios: dict[str, Row]) -> None:
    profile = scenarios["missed_issue"]
    write = row_of(profile, "write")
    assert (write["requests"], write["bytes"], write["aligned_requests"]) == (2, 8192, 2)
    assert profile["io_sizes"] == [{"op": "write", "bytes": 4096, "requests": 2}]
    assert [(row["inode"], row["requests"]) for row in profile["files"]] == [(31, 2)]
    assert (profile["completions_without_start"], profile["starts_without_completion"]) == (1, 0)
    assert count_completed(profile) == 1  # when it was issued is not known
    assert profile["unattributed_share"] == 0
    assert profile["busy_error"] > 0
    assert profile["depth_shortfall"] > 0


def test_a_missed_start_is_made_good_at_the_issue(scenarios: dict[str, Row]) -> None:
    profile = scenarios["missed_start"]
    assert [(row["inode"], row["requests"]) for row in profile["files"]] == [(32, 1)]
    assert profile["unattributed_share"] == 0
    assert [(row["op"], row["requests"]) for row in profile["submitters"]] == [("write", 1)]


Flight = tuple[int, int, int]  # issued, ended, seen to end


def describe_flights(flights: list[Flight], *, is_true: bool) -> list[Row]:
    """Return the depth over time of requests in flight, by their true ends or by those that were seen."""
    spans = [(issued, ended if is_true else seen) for issued, ended, seen in flights]
    depths = Counter(sum(begin <= now < end for begin, end in spans) for now in range(100))
    return [{"queue": -1, "depth": depth, "time_ns": time_ns} for depth, time_ns in depths.items()]


@pytest.mark.parametrize("seed", range(200))
def test_hidden_ends_change_depth_and_busy_time_by_no_more_than_is_said(seed: int) -> None:
    """Requests at random, some of which end long before that is noticed: alone, then the mean depth is too low."""
    draw = random.Random(seed)
    issued = [draw.randrange(80) for _ in range(draw.randrange(1, 12))]
    ends = [(begin, begin + draw.randrange(1, 20)) for begin in issued]
    flights = [(begin, end, end + draw.choice([0, 0, draw.randrange(40)])) for begin, end in ends]
    seen, truth = (describe_flights(flights, is_true=is_true) for is_true in (False, True))
    hidden_ns = sum(min(late, 100) - min(end, 100) for _, end, late in flights)
    error, ours, true = bound_depth(seen, hidden_ns, 0), summarise_depth(seen), summarise_depth(truth)
    assert ours["mean_depth"] - error["depth_excess"] <= true["mean_depth"] + 1e-9
    assert true["mean_depth"] <= ours["mean_depth"] + error["depth_shortfall"] + 1e-9
    assert 0 <= ours["busy_share"] - true["busy_share"] <= error["busy_error"] + 1e-9


@pytest.mark.parametrize("seed", range(200))
def test_issues_that_were_missed_change_them_by_no_more_than_is_said(seed: int) -> None:
    draw = random.Random(seed)
    issued = [draw.randrange(80) for _ in range(draw.randrange(2, 12))]
    flights = [(begin, begin + draw.randrange(1, 20), 0) for begin in issued]
    flights[1:] = [(begin, end, draw.choice([end, begin])) for begin, end, _ in flights[1:]]
    flights[0] = (*flights[0][:2], flights[0][1])
    seen, truth = (describe_flights(flights, is_true=is_true) for is_true in (False, True))
    unseen_ns = sum(end - late for _, end, late in flights)
    error, ours, true = bound_depth(seen, 0, unseen_ns), summarise_depth(seen), summarise_depth(truth)
    assert ours["mean_depth"] - error["depth_excess"] <= true["mean_depth"] + 1e-9
    assert true["mean_depth"] <= ours["mean_depth"] + error["depth_shortfall"] + 1e-9
    assert 0 <= true["busy_share"] - ours["busy_share"] <= error["busy_error"] + 1e-9


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
    assert (profile["passthrough_requests"], profile["passthrough_bytes"]) == (1, 4096)
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
    assert before["hidden_completions"] == 0  # the device was still at it when the run ended
    assert depths_of(after, -1) == {0, 1}
    assert (after["starts_without_completion"], after["completions_without_start"]) == (0, 0)


def test_what_no_file_is_known_for_has_an_address(scenarios: dict[str, Row]) -> None:
    profile = scenarios["addresses"]
    rows = profile["addresses"]
    assert len(rows) + profile["addresses_overflow"] == 40
    assert 0 < profile["addresses_overflow"] <= 8
    assert rows[0] == {"op": "write", "sector": 0, "requests": 2, "bytes": 8192}
    assert {row["requests"] for row in rows[1:]} == {1}
    assert profile["files"] == []


def test_files_without_room_are_counted_by_address(scenarios: dict[str, Row]) -> None:
    profile = scenarios["files"]
    assert [(row["inode"], row["requests"], row["bytes"]) for row in profile["files"]] == [
        (inode, 2, 8192) for inode in range(100, 112)
    ]
    assert [row["sector"] for row in profile["addresses"]] == [112000, 112008, 113000, 113008]
    assert (profile["files_overflow"], profile["addresses_overflow"]) == (4, 0)


def test_a_reused_inode_number_is_another_file(scenarios: dict[str, Row]) -> None:
    assert [(row["inode"], row["requests"]) for row in scenarios["reused_inode"]["files"]] == [(7, 1), (7, 2)]


def test_a_file_is_judged_by_its_own_requests(scenarios: dict[str, Row]) -> None:
    profile = scenarios["files_in_turns"]
    assert row_of(profile, "write")["sequential_requests"] == 24
    for row in profile["files"]:
        assert (row["requests"], row["sequential_requests"], row["pattern"]) == (12, 0, "strided")
        assert row["strided_share"] == pytest.approx(11 / 12)  # all but the first
        assert (row["first_sector"], row["end_sector"]) in {(0, 184), (8, 192)}


def test_what_turns_out_to_be_sequential_is_not_strided_too(scenarios: dict[str, Row]) -> None:
    (row,) = scenarios["streams_in_turns"]["files"]
    assert (row["sequential_requests"], row["strided_share"], row["pattern"]) == (36, 0, "sequential")


def test_one_queue_outweighs_the_others(scenarios: dict[str, Row]) -> None:
    """Queues 0 to 3 hold one, one, one and two requests for 1, 2, 3 and 4 ns of 10 ns; idle 10 ns."""
    rows = [{"queue": queue, "depth": 1, "time_ns": queue + 1} for queue in range(3)]
    rows += [{"queue": 3, "depth": 2, "time_ns": 4}]
    rows += [{"queue": -1, "depth": depth, "time_ns": time_ns} for depth, time_ns in ((0, 10), (1, 6), (2, 4))]
    assert summarise_depth(rows) == {
        "busy_share": 0.5,
        "mean_depth": pytest.approx(1.4),
        "depth_one_share": 0.6,
        "busiest_queue_share": pytest.approx(8 / 14),
    }
    idle = summarise_depth([{"queue": -1, "depth": 0, "time_ns": 5}])
    assert idle == {"busy_share": 0, "mean_depth": None, "depth_one_share": None, "busiest_queue_share": None}
    assert scenarios["missed_completion"]["busiest_queue_share"] == 1
    assert 0.25 < scenarios["four_queues"]["busiest_queue_share"] < 1


def test_light_mode_counts_a_request_in_parts_once(scenarios: dict[str, Row]) -> None:
    profile = scenarios["light_parts"]
    assert profile["io_sizes"] == [
        {"op": "write", "bytes": 4096, "requests": 3},
        {"op": "write", "bytes": 12288, "requests": 1},
    ]
    assert (row_of(profile, "write")["requests"], row_of(profile, "write")["bytes"]) == (4, 3 * 4096 + 12288)
    assert count_completed(profile) == 4
    assert profile["mean_depth"] > 0
    assert profile["limits"] == ["latency and depth of 4 requests count from when they were made, not issued"]


def test_light_mode_counts_operations_apart(scenarios: dict[str, Row]) -> None:
    profile = scenarios["light_operations"]
    assert {row["op"]: row["requests"] for row in profile["io_profile"]} == {
        "read": 1,
        "write": 2,  # of data; and the driver's own command is none
        "discard": 1,
        "flush": 1,
    }
    assert [(row["op"], row["bytes"], row["requests"]) for row in profile["io_sizes"]] == [
        ("read", 520, 1),
        ("write", 4096, 2),
        ("discard", 1 << 30, 1),
    ]
    assert (profile["failed_requests"], profile["hidden_completions"]) == (1, 1)
    assert (profile["io_latency"], profile["mean_depth"]) == ([], 0)
    assert profile["limits"] == ["5 requests have no latency, nor a part in the depth: queue/iostats is off"]


def test_parts_add_up(scenarios: dict[str, Row]) -> None:
    total: Callable[[Row], int] = lambda row: sum(  # noqa: E731
        row[f"{part}_requests"] for part in ("own", "inode", "journal", "flush", "foreign")
    )
    for profile in (profile for profile in scenarios.values() if profile["monitor"] == "bpf"):
        assert all(total(row) == row["requests"] == row["device_requests"] for row in profile["io_profile"])
