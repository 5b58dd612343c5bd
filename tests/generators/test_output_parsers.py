"""What generators print and write, as they printed it, becomes totals, latencies and intervals."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_damaged_outputs import read, read_whole

from knobscope.generators.output import Output, even_intervals, percentile, summarise_latencies
from knobscope.generators.parsers import OUTPUT_READERS, read_output
from knobscope.specs import OUTPUT_PARSERS


def output(directory: Path, lines: str | list[tuple[float, str]]) -> Output:
    if isinstance(lines, str):
        lines = [(0.0, line) for line in lines.splitlines()]
    return Output(lines, 3.0, directory, directory, threads=2)


def ops_of(intervals: list[dict[str, Any]]) -> list[int]:
    return [row["ops"] for row in intervals]


def test_every_parser_that_specs_may_name_exists() -> None:
    assert sorted(OUTPUT_READERS) == sorted(OUTPUT_PARSERS)


@pytest.mark.parametrize("name", OUTPUT_PARSERS)
def test_output_of_something_else_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no|nothing"):
        OUTPUT_READERS[name](output(tmp_path, "command not found\n"), 1.0)


#: What the outputs state: operations, failures, latencies in microseconds.
STATED = {
    "pgbench": {"ok": 379, "failed": 0},
    "sysbench": {"ok": 1579, "failed": 27, "mean_us": 4330, "p95_us": 841, "max_us": 1001780},
    "redis_benchmark": {"ok": 100000, "mean_us": 46, "p50_us": 47, "p95_us": 71, "p99_us": 87},
    "db_bench": {"ok": 87998},
    "db_bench-overwrite": {"ok": 143998, "mean_us": 41.9182},
    "db_bench-seekrandom": {"ok": 174998, "mean_us": 34.9412},
    "db_bench-updaterandom": {"ok": 75998, "mean_us": 80.8492},
    "fio": {"ok": 4096, "mean_us": None},
    "wtperf": {"ok": 12000},
    "generic": {"ok": 2740, "failed": 7},
}


@pytest.mark.parametrize("name", STATED)
def test_figures_are_those_that_the_generator_states(name: str, tmp_path: Path) -> None:
    totals = read(name, read_whole(name), tmp_path / "out").operations["ALL"]
    assert {figure: totals[figure] for figure in STATED[name]} == pytest.approx(STATED[name])


def test_requests_that_a_pipeline_sends_beyond_the_number_are_counted(tmp_path: Path) -> None:
    """As redis-benchmark -n 100000 -P 16 -c 3 counts them: their latencies it leaves out."""
    whole = read_whole("redis_benchmark")
    text = whole["stdout"].replace(b"100000 requests completed", b"100015 requests completed")
    assert read("redis_benchmark", {**whole, "stdout": text}, tmp_path / "more").operations["ALL"]["ok"] == 100015
    fewer = whole["stdout"].replace(b"100000 requests completed", b"99999 requests completed")
    with pytest.raises(ValueError, match="requests"):
        read("redis_benchmark", {**whole, "stdout": fewer}, tmp_path / "fewer")


@pytest.mark.real
def test_fio_lists_an_option_as_often_as_it_was_given(tmp_path: Path) -> None:
    """Knobs come after the options of the load, and replace some of them."""
    job = ["--name=program", f"--filename={tmp_path}/data", "--filesize=256k", "--rw=write", "--rate=1m"]
    command = ["fio", *job, "--bs=4k", "--bs=16k", "--output-format=json"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert report.count('"bs" : ') == 2
    assert OUTPUT_READERS["fio"](output(tmp_path, report), 1.0).operations["WRITE"]["ok"] == 256
    with pytest.raises(ValueError, match="a key twice"):
        OUTPUT_READERS["fio"](output(tmp_path, report.replace('"iops" :', '"iops" : 1, "iops" :')), 1.0)


def test_a_percentile_of_sysbench_is_not_above_its_longest_latency(tmp_path: Path) -> None:
    files = read_whole("sysbench")
    files["stdout"] = files["stdout"].replace(b" 1001.78\n", b" 990.00\n")
    totals = read("sysbench", files, tmp_path / "out").operations["ALL"]
    assert totals["p999_us"] == totals["max_us"] == 990_000


def test_latencies_of_wtperf_lie_in_the_middle_of_their_bins(tmp_path: Path) -> None:
    """Else operations of few milliseconds would seem to take longer than the whole window."""
    files = read_whole("wtperf")
    kind = next(name for name in files if name.endswith("latency.read"))
    lines = [line for line in files[kind].splitlines() if not line.startswith(b"#")]
    count = int(lines[-1].split(b",")[2])
    files[kind] = b"#usecs,operations,cumulative-operations,total-operations\n1,%d,%d,%d\n" % (count, count, count)
    assert read("wtperf", files, tmp_path / "out").operations["READ"]["mean_us"] == 0.5
    files[kind] = files[kind].replace(b"\n1,", b"\n3000,")
    with pytest.raises(ValueError, match="all latencies together"):
        read("wtperf", files, tmp_path / "other")


def test_sysbench_rounds_the_rank_of_a_percentile(tmp_path: Path) -> None:
    """Of 1,579 transactions the 1,500th is its 95th percentile. Of few ones, the next is often far away."""
    files = read_whole("sysbench")
    bins = re.findall(rb"^ +([0-9.]+) \|(\**) +([0-9]+)$", files["stdout"], re.MULTILINE)
    place = next(number for number, (value, _, _) in enumerate(bins) if value == b"0.841")
    excess = sum(int(count) for _, _, count in bins[: place + 1]) - 1500
    for (value, stars, count), more in ((bins[place], -excess), (bins[place + 1], excess)):
        line = b"%s |%s" % (value, stars)
        found = re.compile(re.escape(line) + rb" +%s$" % count, re.MULTILINE)
        files["stdout"] = found.sub(b"%s %d" % (line, int(count) + more), files["stdout"])
    totals = read("sysbench", files, tmp_path / "out").operations["ALL"]
    assert totals["p95_us"] == float(bins[place + 1][0]) * 1000
    files["stdout"] = re.sub(rb"(95th percentile: +)[0-9.]+", rb"\g<1>0.87", files["stdout"])
    with pytest.raises(ValueError, match="percentile 95"):
        read("sysbench", files, tmp_path / "other")


def test_intervals_are_even_and_a_short_rest_joins_the_last_one() -> None:
    rows = even_intervals([(0.5, 50), (1.5, 150), (2.3, 230)], 1.0, 2.3)
    assert [row["t_s"] for row in rows] == [1.0, 2.3]
    assert ops_of(rows) == [100, 130]
    assert sum(ops_of(even_intervals([(0.2, 7)], 1.0, 0.2))) == 7


def test_percentiles() -> None:
    assert summarise_latencies([])["p50_us"] is None
    assert summarise_latencies([float(number) for number in range(1, 101)])["p95_us"] == 95
    assert percentile([(1.0, 50), (2.0, 50)], 50) == 1.0
    assert percentile([], 50) is None


CSV = """anything that the program says first
second,operations,errors,mean_us,p50_us,p95_us,p99_us,max_us
1.0,800,0,1206.1,1180.0,1450.0,2100.0,9300.5
2.5,900,2,1240.9,1190.0,1480.0,2350.0,8100.0
total,1700,2,1223.2,1185.0,1466.0,2210.0,9300.5
"""


def test_the_form_for_programs_of_ones_own_is_csv(tmp_path: Path) -> None:
    result = OUTPUT_READERS["generic"](output(tmp_path, CSV), 1.0)
    assert result.window_s == 2.5
    assert result.interval_s == 1.25  # two intervals are expected in such a window, not two and a half
    assert {name: result.operations["ALL"][name] for name in ("ok", "failed", "p95_us")} == {
        "ok": 1700, "failed": 2, "p95_us": 1466.0,
    }  # fmt: skip
    assert [(row["t_s"], row["ops"], row["failed"], row["p99_us"]) for row in result.intervals] == [
        (1.0, 800, 0, 2100.0),
        (2.5, 900, 2, 2350.0),
    ]


def test_the_form_for_programs_of_ones_own_is_json_with_histograms(tmp_path: Path) -> None:
    lines = """{"second": 1, "op": "read", "operations": 3, "histogram": {"100": 2, "250": 1}}
{"second": 1, "op": "write", "operations": 1, "histogram": {"2000": 1}}
{"second": "total", "op": "read", "operations": 3}
{"second": "total", "op": "write", "operations": 1}
"""
    result = OUTPUT_READERS["generic"](output(tmp_path, lines), 1.0)
    assert result.operations["ALL"]["ok"] == 4
    assert result.operations["READ"]["p50_us"] == 100
    assert result.operations["ALL"]["max_us"] == 2000
    assert result.operations["ALL"]["mean_us"] == (2 * 100 + 250 + 2000) / 4
    assert [(row["ops"], row["p50_us"]) for row in result.intervals] == [(4, 100)]


def test_keys_of_a_histogram_may_come_in_any_order(tmp_path: Path) -> None:
    """Go sorts them as text, Lua and Rust not at all."""
    lines = """{"second": 1, "operations": 4, "histogram": {"1000": 1, "250": 1, "30": 2}}
{"second": "total", "operations": 4}
"""
    result = OUTPUT_READERS["generic"](output(tmp_path, lines), 1.0)
    assert {name: result.operations["ALL"][name] for name in ("p50_us", "max_us")} == {"p50_us": 30, "max_us": 1000}
    with pytest.raises(ValueError, match="the same latency twice"):
        read_output("generic", output(tmp_path, lines.replace('"250"', '"30.0"')), 1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("total,1700", "total,1600"), "operations (ALL): 1600, but 1700 by its intervals"),
        (("2.5,900,2", "2.5,900,1"), "errors (ALL): 2, but 1 by its intervals"),
        (("total,1700,2,1223.2", "total,1700,2,1.2232"), "mean_us of ALL: 1.2232, but 1165.2129 to"),
        (("total,1700,2", "3.0,1700,2"), "no row with `second` = total"),
        (("1.0,800", "2.5,800"), "`second` of ALL goes from 2.5 to 2.5"),
        (("1.0,800", "1.0,many"), "line 3: no such row as expected"),
        ((",errors,", ",mistakes,"), "unknown column 'mistakes'"),
    ],
)
def test_what_contradicts_itself_in_that_form_is_refused(change: tuple[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read_output("generic", output(tmp_path, CSV.replace(*change)), 1.0)


def test_a_program_that_prints_no_rows_is_told_what_is_missing(tmp_path: Path) -> None:
    for text, words in (("", "it printed nothing: no CSV header"), ("second,ops\n1,5\n", "its 2 lines: no CSV header")):
        with pytest.raises(ValueError, match=words):
            read_output("generic", output(tmp_path, text), 1.0)
    with pytest.raises(ValueError, match="2 CSV headers"):
        read_output("generic", output(tmp_path, CSV + CSV), 1.0)
