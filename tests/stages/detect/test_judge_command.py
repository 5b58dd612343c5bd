"""One profile of a command on a device that was characterised: what is used, and what holds it back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_documents import read_document

from knobscope.cli import main
from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.stages.detect import WatchedProfile, judge_profile
from knobscope.tables import check_document

POINT = {"curve": "queue_depth", "block_bytes": 4096, "queue_depth": 32}
DEVICE: dict[str, Any] = {
    "device": "ssd",
    "flush_p50_us": 1500.0,
    "saturating_depth": 20.0,
    "curves": [
        {**POINT, "pattern": "randread", "iops": 90000.0, "bytes_per_s": 4096 * 90000.0},
        {**POINT, "pattern": "randwrite", "iops": 60000.0, "bytes_per_s": 4096 * 60000.0},
    ],
}


def watched(writes: int, flushes: int, busy: float, depth: int, **more: Any) -> dict[str, Any]:
    """Return a profile of ten seconds."""
    busy_ns = int(busy * 10e9)
    depths = [(0, int(10e9) - busy_ns), (depth, busy_ns)]
    return {
        "command": ["/usr/bin/fio", "job.fio"],
        "scope": "device",
        "monitor": "bpf",
        "lost_events": 0,
        "duration_s": 10.0,
        "cpu_s": 0.5,
        "machine_cpu_share": 0.3,
        "io_profile": [
            {"op": "write", "requests": writes, "bytes": 4096 * writes},
            {"op": "flush", "requests": flushes, "bytes": 0},
        ],
        "queue_depth": [{"queue": -1, "depth": deep, "time_ns": ns} for deep, ns in depths],
        **more,
    }


@pytest.mark.parametrize(
    ("profile", "verdict", "said"),
    [
        (watched(6000, 6000, 0.98, 1), "mismatch", "600 flushes per second of 1.5 ms each take 90 % of the time"),
        (watched(50000, 0, 0.98, 1), "insufficient", "The device needs 20 in flight or more to reach its full rate"),
        (watched(50000, 0, 0.98, 32), "mismatch", "it is the kind of requests"),
        (watched(500000, 0, 0.98, 32), "none", "the device is well used"),
        (watched(500, 10, 0.05, 1), "none", "of the time nothing waits for the device"),
        (watched(50000, 0, 0.98, 1, machine_cpu_share=0.97), "insufficient", "processors are busy for 97 % of the"),
        (watched(6000, 6000, 0.98, 1, monitor="procfs"), "insufficient", "the block layer was not monitored"),
    ],
)
def test_a_profile_tells_what_is_used(profile: dict[str, Any], verdict: str, said: str) -> None:
    (found,) = judge_profile(profile, DEVICE)
    assert found["verdict"] == verdict, found["sentence"]
    assert said in found["sentence"]


def test_flushes_take_what_they_took_while_they_were_watched() -> None:
    """The device's profile says 1.5 ms; those that find nothing to store are faster."""
    latencies = [{"op": "flush", "low_us": 190.0, "high_us": 210.0, "requests": 6000}]
    (found,) = judge_profile(watched(6000, 6000, 0.98, 1, io_latency=latencies), DEVICE)
    assert "The device needs 20 in flight or more" in found["sentence"]
    assert json.loads(found["evidence"])["flush_us"] == pytest.approx(200)


def test_units_are_distinguished_from_flushes_where_their_size_was_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    device = {**DEVICE, "write_unit_bytes": 32768, "write_unit_us": 1000.0}
    profile = watched(6000, 6000, 0.98, 1)
    profile["io_profile"][0]["aligned_requests"] = 0
    write_sealed(tmp_path / "device.json", device)
    both = {32768: "1 ms go into filling units of the device", 4096: "600 flushes per second of 1.5 ms each take 90 %"}
    for unit, said in both.items():
        (tmp_path / "watched.json").write_text(json.dumps({**profile, "unit": unit}))
        assert main(["judge", str(tmp_path / "watched.json"), "--profile", str(tmp_path / "device.json")]) == 0
        told = capsys.readouterr()
        assert said in told.out
        assert ("knobscope watch --unit 32768" in told.err) is (unit == 4096)


def test_command_reads_both_profiles(tmp_path: Path, prints: Callable[..., str], refuses: Callable[..., str]) -> None:
    (tmp_path / "watched.json").write_text(json.dumps(watched(6000, 6000, 0.98, 1)))
    write_sealed(tmp_path / "device.json", DEVICE)
    said = prints("judge", tmp_path / "watched.json", "--profile", tmp_path / "device.json")
    assert said.startswith("default_profile: mismatch: While it was watched, fio on ssd keeps")
    said = prints("judge", tmp_path / "watched.json", "--profile", tmp_path / "device.json", "--json")
    document = read_document("judge", said)
    assert [row["verdict"] for row in document["findings"] if row["rule"] == "default_profile"] == ["mismatch"]
    (tmp_path / "watched.json").write_text("{}")
    said = refuses("judge", tmp_path / "watched.json", "--profile", tmp_path / "device.json")
    assert "watched.json: found no 'command'; expected a profile that" in said


def test_a_profile_that_is_not_there_is_no_spec(tmp_path: Path, refuses: Callable[..., str]) -> None:
    missing = tmp_path / "watched.json"
    assert refuses("judge", missing, "--profile", missing) == (
        f"knobscope: no file {missing}; expected a profile that `knobscope watch --json` wrote\n"
    )


def test_something_else_is_no_profile() -> None:
    with pytest.raises(UserError, match="found no 'queue_depth'"):
        profile = {key: value for key, value in watched(1, 1, 0.5, 1).items() if key != "queue_depth"}
        check_document(WatchedProfile, profile, "a profile")
