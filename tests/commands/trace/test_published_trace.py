"""The figures that the makers of a real trace publish, reproduced to the last digit."""

from typing import Any

import pytest
from json_documents import read_document
from known_tables import measured

from knobscope.cli import main


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("profile") / "profile.json"
    assert main(["trace", str(measured("rocksdb_ycsba_block_trace.csv.gz")), "--json", str(out)]) == 0
    return read_document("trace", out.read_text())


def row_of(rows: list[dict[str, Any]], op: str) -> dict[str, Any]:
    return next(row for row in rows if row["op"] == op)


def test_figures_of_the_rocksdb_trace(profile: dict[str, Any]) -> None:
    write, latency = row_of(profile["io_profile"], "write"), row_of(profile["latency"], "write")
    assert round(profile["duration_s"] * 1e9) == 24_650_525_234
    assert (write["requests"], write["bytes"]) == (64_188, 16_338_524 * 512)
    sizes = [row["bytes"] // 512 for row in profile["io_sizes"] if row["op"] == "write"]
    assert (min(sizes), max(sizes)) == (1, 256)
    assert (latency["min_ns"], int(latency["mean_ns"]), latency["max_ns"]) == (9_942, 15_071_365, 63_161_202)
    assert f"{write['iops']:.2f} {write['mib_per_s']:.2f}" == "2603.92 323.64"
    assert f"{write['last_sector_share']:.3f} {write['file_last_sector_share']:.3f}" == "0.983 0.996"
    assert f"{write['aligned_share']:.3f}" == "0.998"
    by_suffix = {
        suffix: sum(
            row["requests"] for row in profile["files"] if row["op"] == "write" and row["file"].endswith(suffix)
        )
        for suffix in (".sst", ".log")
    }
    assert by_suffix == {".sst": 49_939, ".log": 14_046}


def test_alignment_to_32_kib(describe: Any) -> None:
    profile = describe(measured("rocksdb_ycsba_block_trace.csv.gz"), "--unit", 32768)
    assert f"{row_of(profile['io_profile'], 'write')['aligned_share']:.3f}" == "0.144"


def test_time_at_all_depths_is_the_time_of_the_trace(profile: dict[str, Any]) -> None:
    """Little's law: what is in flight, over time, is the sum of all latencies."""
    times = {row["depth"]: row["time_ns"] for row in profile["queue_depth"]}
    waited = sum(row["requests"] * row["mean_ns"] for row in profile["latency"])
    assert sum(times.values()) == 24_650_543_071  # until the last completion
    area = sum(depth * time for depth, time in times.items())
    assert waited * 0.999 < area <= waited  # depths beyond 1024 count as 1024
    assert profile["starts_without_completion"] == 0
