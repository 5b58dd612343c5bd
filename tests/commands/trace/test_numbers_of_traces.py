"""Generated traces whose numbers are known."""

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loop_devices import row_of

from knobscope.commands.trace import depth
from knobscope.commands.trace.depth import measure_depth


def test_operations_sizes_alignment_and_rates(describe: Any, write_csv: Any) -> None:
    requests = [
        {"ts_ns": 10**9, "lba": 0, "len_sectors": 8, "op": "R"},
        {"ts_ns": 10**9 + 1, "lba": 8, "len_sectors": 8, "flush": 1},
        {"ts_ns": 10**9 + 2, "lba": 17, "len_sectors": 8},
        {"ts_ns": 10**9 + 3, "lba": 0, "len_sectors": 0, "flush": 1},
        {"ts_ns": 10**9 + 4, "lba": 0, "len_sectors": 0},
        {"ts_ns": 3 * 10**9, "lba": 64, "len_sectors": 2048, "op": "discard"},
    ]
    profile = describe(write_csv(requests))
    assert {row["op"]: row["requests"] for row in profile["io_profile"]} == {
        "read": 1,
        "write": 2,
        "discard": 1,
        "flush": 1,  # without sectors: no write of size 0
    }
    assert profile["other_requests"] == 1
    assert {row["op"] for row in profile["io_sizes"]} == {"read", "write", "discard"}
    write = row_of(profile, "write")
    assert (write["aligned_share"], write["preflush"], write["fua"], write["bytes"]) == (0.5, 1, None, 8192)
    assert (profile["duration_s"], write["iops"], write["mib_per_s"]) == (2.0, 1.0, 4 / 1024)


def test_a_name_of_two_lines_takes_one_line_of_a_table(write_csv: Any, prints: Callable[..., str]) -> None:
    said = prints("trace", str(write_csv([{"lba": 8 * number, "file": "a\nb"} for number in range(3)])))
    assert any(line.startswith("a\\nb ") for line in said.splitlines())


def test_requests_of_one_moment_have_no_rate(write_csv: Any, prints: Callable[..., str]) -> None:
    flushes = [{"ts_ns": 10**9, "lba": 0, "len_sectors": 0, "flush": 1, "lat_ns": ""}] * 40
    assert "flush: no rate: all at the same moment" in prints("trace", str(write_csv(flushes)))


def test_depth_against_counting_nanosecond_by_nanosecond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "_PART", 50)
    rng = np.random.default_rng(5)
    starts = np.sort(rng.integers(0, 20_000, 500))
    ends = starts + rng.integers(0, 800, 500)
    span = int(ends.max()) + 10
    edges = np.append(np.arange(0, span, 1000), span)
    in_flight = np.zeros(span, int)
    for start, end in zip(starts, ends, strict=True):
        in_flight[start:end] += 1
    measured = measure_depth(starts, ends, (0, span), edges)
    assert measured.times.tolist() == np.bincount(in_flight, minlength=depth.DEPTHS + 1).tolist()
    means = [in_flight[low:high].mean() for low, high in pairwise(edges)]
    assert measured.means == pytest.approx(means)


def test_known_depth(describe: Any, write_csv: Any) -> None:
    """Four requests every 10 us that take 5 us each: depth 4 half of the time."""
    requests = [{"ts_ns": 10_000 * n, "lba": 8 * k, "lat_ns": 5000} for n in range(100) for k in range(4)]
    profile = describe(write_csv(requests))
    assert profile["queue_depth"] == [
        {"queue": -1, "depth": 0, "time_ns": 99 * 5000},
        {"queue": -1, "depth": 4, "time_ns": 100 * 5000},
    ]


def test_latencies_and_their_buckets(describe: Any, write_csv: Any) -> None:
    latencies = [3, 4, 5, 1023, 1024, 1279, 1280, 10**9]
    profile = describe(write_csv([{"lba": 0, "lat_ns": latency} for latency in latencies]))
    (row,) = profile["latency"]
    assert (row["min_ns"], row["mean_ns"], row["max_ns"]) == (3, sum(latencies) / 8, 10**9)
    for latency in latencies:
        (bucket,) = (b for b in profile["io_latency"] if b["low_us"] <= latency / 1e3 < b["high_us"])
        assert bucket["requests"] == sum(
            b["low_us"] <= other / 1e3 < b["high_us"] for b in [bucket] for other in latencies
        )
    assert sum(bucket["requests"] for bucket in profile["io_latency"]) == len(latencies)


def test_no_quantile_is_above_the_maximum(describe: Any, write_csv: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Buckets end at powers of two and quarters between them; single requests are known exactly."""
    describe(write_csv([{"lba": 8 * n, "lat_ns": 6_601_800} for n in range(10)]))
    shown = capsys.readouterr().out
    assert "p50 µs   p99 µs\n" in shown
    (row,) = (line for line in shown.splitlines() if line.startswith("write  "))
    assert row.split()[-2:] == ["6,601.8", "6,601.8"]
    assert "latency 6.6 ms to 6.6 ms" in shown


def test_series_shows_a_stall(describe: Any, write_csv: Any) -> None:
    """One request that takes 350 ms, beside one that is issued after that."""
    requests = [
        {"ts_ns": 0, "lba": 0, "lat_ns": 350_000_000},
        {"ts_ns": 420_000_000, "lba": 8, "lat_ns": 10_000_000, "len_sectors": 16},
    ]
    series = describe(write_csv(requests))["series"]
    assert [(row["t_s"], row["requests"], row["bytes"], round(row["depth"], 6)) for row in series] == [
        (0.1, 1, 4096, 1.0),
        (0.2, 0, 0, 1.0),
        (0.3, 0, 0, 1.0),
        (0.4, 0, 0, 0.5),
        (0.43, 1, 8192, round(10 / 30, 6)),
    ]
    assert [row["latency_mean_us"] for row in series] == [None, None, None, 350_000.0, 10_000.0]


def test_only_some_files(describe: Any, write_csv: Any) -> None:
    path = write_csv([{"lba": 8 * n, "file": name} for n, name in enumerate(["a.log", "b.sst", "", "c.sst"])])
    assert row_of(describe(path, "--file", "*.sst"), "write")["requests"] == 2


def test_a_trace_without_latency_has_no_depth(
    describe: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "short.csv"
    path.write_text("op,ts_ns,len_sectors,lba\nR,5,8,0\nR,7,8,8\n")
    profile = describe(path)
    assert (profile["queue_depth"], profile["latency"], profile["starts_without_completion"]) == ([], [], None)
    assert row_of(profile, "read")["requests"] == 2
    assert "depth" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_terminal_without_every_character_gets_the_rest(write_csv: Any) -> None:
    trace = str(write_csv([{"lba": 8}]))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "knobscope", "trace", trace]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "p50 ?s" in done.stdout
