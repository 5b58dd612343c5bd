"""What generators print and write, as they printed it, becomes totals, latencies and intervals."""

import json
from pathlib import Path
from typing import Any

import pytest

from knobscope.generators.output import Output, describe_latencies, even_intervals, percentile
from knobscope.generators.parsers import OUTPUT_READERS
from knobscope.specs import OUTPUT_PARSERS

SYSBENCH = """\
[ 1s ] thds: 2 tps: 402.74 qps: 2454.44 (r/w/o: 0.00/1605.98/848.46) lat (ms,95%): 11.65 err/s: 7.00 reconn/s: 0.00
[ 2s ] thds: 2 tps: 362.07 qps: 2196.42 (r/w/o: 0.00/1443.27/753.14) lat (ms,95%): 11.65 err/s: 6.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.285 |                                         1
       3.956 |************************************     198
       7.985 |**************************************** 217

SQL statements:
    transactions:                        1087   (361.43 per sec.)
    ignored errors:                      22     (7.32 per sec.)

General statistics:
    total time:                          3.0071s

Latency (ms):
         min:                                    0.29
         avg:                                    5.53
         max:                                   19.51
         95th percentile:                       11.45
"""
REDIS = [
    (0.01, "SET: rps=0.0 (overall: 0.0) avg_msec=nan (overall: nan)"),
    (0.51, "SET: rps=60000.0 (overall: 60000.0) avg_msec=0.051 (overall: 0.051)"),
    (1.01, "SET: rps=40000.0 (overall: 50000.0) avg_msec=0.051 (overall: 0.051)"),
    (2.01, "====== SET ======"),
    (2.01, "  100000 requests completed in 2.00 seconds"),
    (2.02, "  latency summary (msec):"),
    (2.02, "          avg       min       p50       p95       p99       max"),
    (2.02, "        0.056     0.008     0.055     0.095     0.135     3.679"),
]
DB_BENCH = """\
readrandomwriterandom :       7.646 micros/op 261491 ops/sec 2.008 seconds 524998 operations; ( reads:1 writes:1 )
Microseconds per read:
Count: 200 Average: 4.0000  StdDev: 54.23
Min: 0  Median: 2.5886  Max: 8104
Percentiles: P50: 2.59 P75: 4.59 P99: 14.58 P99.9: 50.86 P99.99: 3437.50
------------------------------------------------------
[       0,       1 ]    100  50.000%  50.000% ##########
(       1,       3 ]    100  50.000% 100.000% ##########

Microseconds per write:
Count: 100 Average: 10.0000  StdDev: 81.75
Min: 3  Median: 8.1165  Max: 9325
Percentiles: P50: 8.12 P75: 10.32 P99: 21.83 P99.9: 96.56 P99.99: 4264.37
------------------------------------------------------
(       3,       5 ]    100 100.000% 100.000% ##########
"""
WTPERF = """\
Executed 900 read operations (90%) 300 ops/sec
Executed 100 update operations (10%) 33 ops/sec
Run completed: 3 seconds
"""


def output(directory: Path, lines: str | list[tuple[float, str]]) -> Output:
    if isinstance(lines, str):
        lines = [(0.0, line) for line in lines.splitlines()]
    return Output(lines, 3.0, directory, directory)


def ops_of(intervals: list[dict[str, Any]]) -> list[int]:
    return [row["ops"] for row in intervals]


def test_every_parser_that_specs_may_name_exists() -> None:
    assert sorted(OUTPUT_READERS) == sorted(OUTPUT_PARSERS)


@pytest.mark.parametrize("name", OUTPUT_PARSERS)
def test_output_of_something_else_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no|nothing"):
        OUTPUT_READERS[name](output(tmp_path, "command not found\n"), 1.0)


def test_sysbench(tmp_path: Path) -> None:
    result = OUTPUT_READERS["sysbench"](output(tmp_path, SYSBENCH), 1.0)
    assert result.window_s == 3.0071
    totals = result.operations["ALL"]
    assert (totals["ok"], totals["failed"]) == (1087, 22)
    assert (totals["p50_us"], totals["p99_us"], totals["mean_us"]) == (7985, 7985, 5530)
    assert ops_of(result.intervals) == [403, 362, 1087 - 403 - 362]
    assert result.intervals[0]["p95_us"] == 11650


def test_redis_benchmark(tmp_path: Path) -> None:
    result = OUTPUT_READERS["redis_benchmark"](output(tmp_path, REDIS), 1.0)
    assert result.window_s == 2.0
    assert result.operations["SET"] == result.operations["ALL"]
    assert result.operations["ALL"]["p95_us"] == 95
    assert ops_of(result.intervals) == [50000, 50000]


def test_db_bench(tmp_path: Path) -> None:
    (tmp_path / "report.csv").write_text("secs_elapsed,interval_qps\n1,250000\n2,270000\n")
    result = OUTPUT_READERS["db_bench"](output(tmp_path, DB_BENCH), 1.0)
    assert set(result.operations) == {"READ", "WRITE", "ALL"}
    assert result.operations["ALL"]["ok"] == 524998
    assert result.operations["ALL"]["mean_us"] == pytest.approx((200 * 4 + 100 * 10) / 300)
    assert result.operations["READ"]["p50_us"] == pytest.approx(1.0)
    assert result.operations["ALL"]["p50_us"] == pytest.approx(2.0)
    assert sum(ops_of(result.intervals)) == 524998
    assert ops_of(result.intervals)[0] == 250000


def test_wtperf(tmp_path: Path) -> None:
    for kind, count in (("read", 900), ("update", 100)):
        (tmp_path / f"latency.{kind}").write_text(f"#usecs,operations,cumulative-operations\n5,{count},{count}\n")
    entry = '"localTime":"x","wtperf":{{"read":{{"ops per sec":{0}}},"update":{{"ops per sec":1}}}}'
    (tmp_path / "monitor.json").write_text("".join(f"{{{entry.format(ops)}}}\n" for ops in (299, 349)))
    (tmp_path / "test.stat").write_text(WTPERF)
    result = OUTPUT_READERS["wtperf"](output(tmp_path, ""), 1.0)
    assert result.operations["ALL"]["ok"] == 1000
    assert result.operations["READ"]["p99_us"] == 5
    assert ops_of(result.intervals) == [300, 350, 350]


def test_fio_counts_kibibytes_of_all_jobs(tmp_path: Path) -> None:
    def job(read_kib: int, write_kib: int) -> dict[str, Any]:
        return {"job_runtime": 1500, "read": {"io_bytes": read_kib << 10}, "write": {"io_bytes": write_kib << 10}}

    (tmp_path / "fio_bw.1.log").write_text(
        "500, 400, 1, 4096, 0, 0\n500, 100, 0, 4096, 0, 0\n1000, 200, 1, 4096, 0, 0\n"
    )
    (tmp_path / "fio_bw.2.log").write_text("500, 100, 1, 4096, 0, 0\n")
    report = json.dumps({"fio version": "fio-3.33", "jobs": [job(100, 500), job(0, 50)]}, indent=1)
    result = OUTPUT_READERS["fio"](output(tmp_path, f"note: a line before\n{report}\n"), 0.5)
    assert result.window_s == 1.5
    assert {name: one["ok"] for name, one in result.operations.items()} == {"READ": 100, "WRITE": 550, "ALL": 650}
    assert result.operations["ALL"]["p95_us"] is None  # fio knows latencies of requests, not of a KiB
    assert ops_of(result.intervals) == [300, 100, 250]


def test_pgbench_latencies_come_from_its_log(tmp_path: Path) -> None:
    rows = [(1_000_000 + 10_000 * number, 1000 + number) for number in range(1, 201)]
    text = "".join(f"0 1 {latency} 0 {at // 1_000_000} {at % 1_000_000}\n" for at, latency in rows)
    (tmp_path / "log.17").write_text(text + "0 2 failed 0 3 0\n")
    words = "duration: 2 s\nnumber of failed transactions: 1 (0.5%)\n"
    result = OUTPUT_READERS["pgbench"](output(tmp_path, words), 1.0)
    assert (
        result.operations["ALL"] | {"ok": 200, "failed": 1, "p50_us": 1100, "max_us": 1200} == result.operations["ALL"]
    )
    assert ops_of(result.intervals) == [100, 100]
    assert result.intervals[0]["p95_us"] < result.intervals[1]["p95_us"]
    assert not list(tmp_path.glob("log.*"))


def test_intervals_are_even_and_a_short_rest_joins_the_last_one() -> None:
    rows = even_intervals([(0.5, 50), (1.5, 150), (2.3, 230)], 1.0, 2.3)
    assert [row["t_s"] for row in rows] == [1.0, 2.3]
    assert ops_of(rows) == [100, 130]
    assert sum(ops_of(even_intervals([(0.2, 7)], 1.0, 0.2))) == 7


def test_percentiles() -> None:
    assert describe_latencies([])["p50_us"] is None
    assert describe_latencies([float(number) for number in range(1, 101)])["p95_us"] == 95
    assert percentile([(1.0, 50), (2.0, 50)], 50) == 1.0
    assert percentile([], 50) is None
