"""What a profile of the device adds to a diagnosis."""

import os
from pathlib import Path
from typing import Any, cast

import pytest

from knobscope.commands.attach.capability import describe_finding, find_profile, judge_window
from knobscope.commands.attach.data import find_data
from knobscope.commands.attach.program import Running
from knobscope.devices import identify_block
from knobscope.durable_files import write_sealed
from knobscope.tables import DeviceProfile
from knobscope.watch import Profile

POINT = {"curve": "queue_depth", "block_bytes": 4096, "queue_depth": 32}
DEVICE = cast(
    DeviceProfile,
    {
        "device": "ssd",
        "block_device": "sdx",
        "measured_at": "2026-11-20T10:00:00",
        "flush_p50_us": 1500.0,
        "saturating_depth": 20.0,
        "curves": [
            {**POINT, "pattern": "randread", "iops": 90000.0, "bytes_per_s": 4096 * 90000.0},
            {**POINT, "pattern": "randwrite", "iops": 60000.0, "bytes_per_s": 4096 * 60000.0},
        ],
    },
)


def window(writes: int, flushes: int, busy: float, depth: int, **more: Any) -> Profile:
    """Ten seconds of a server that only writes."""
    busy_ns = int(busy * 10e9)
    rows = {
        "io_profile": [
            {"op": "write", "requests": writes, "bytes": 4096 * writes},
            {"op": "flush", "requests": flushes, "bytes": 0},
        ],
        "queue_depth": [
            {"queue": -1, "depth": deep, "time_ns": ns} for deep, ns in ((0, int(10e9) - busy_ns), (depth, busy_ns))
        ],
    }
    return cast(
        Profile,
        {"scope": "device", "monitor": "bpf", "lost_events": 0, "duration_s": 10.0, "cpu_s": 0.5}
        | {"machine_cpu_share": 0.3, **rows, **more},
    )


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (window(6000, 6000, 0.98, 1), "1 % of its capability, by its profile of 2026-11-20; its flushes hold it back"),
        (window(50000, 0, 0.98, 1), "The device needs 20 in flight or more to reach its full rate"),
        (window(50000, 0, 0.98, 32), "the kind of its requests holds it back"),
        (window(500, 10, 0.05, 1), "no mismatch"),
        (window(50000, 0, 0.98, 1, machine_cpu_share=0.97), "Cannot judge how well"),
    ],
)
def test_what_is_used_of_a_device_is_said(profile: Profile, words: str) -> None:
    (finding,) = judge_window(Running("/x/y", None, None), profile, 4096, DEVICE)
    text = describe_finding(finding, DEVICE, tells_waits=True).replace("\u00a0", " ")
    assert words in text
    assert "default configuration" not in text


def test_without_profile_or_bpf_no_rule_is_asked() -> None:
    running = Running("/x/y", None, None)
    assert judge_window(running, window(6000, 6000, 0.98, 1), 4096, None) == []
    assert judge_window(running, window(6000, 6000, 0.98, 1, monitor="procfs"), 4096, DEVICE) == []


def test_the_latest_profile_of_the_same_device_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = find_data(os.getpid(), [], None)
    own, name = identify_block(data.block), data.block.name
    for study, identity, day in (("a", own, 10), ("b", own, 12), ("c", "ffff", 14), ("d", None, 15)):
        profile = {**DEVICE, "device": study, "block_device": name, "block_identity": identity}
        folder = tmp_path / "results" / study / "devices"
        folder.mkdir(parents=True)
        write_sealed(folder / "disk.json", {**profile, "measured_at": f"2026-11-{day}T10:00:00"})
    found = find_profile(None, data)
    assert found is not None
    assert found["device"] == "b", "others had the same name once"
    other = find_profile(tmp_path / "results/c/devices/disk.json", data)
    assert other is not None
    assert other["device"] == "c", "the one that is named counts"
