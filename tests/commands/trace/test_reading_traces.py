"""Formats of traces, and what is wrong with a file."""

import gzip
import html
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loop_devices import row_of

from knobscope.cli import main
from knobscope.commands.trace import open_trace, profile_trace
from knobscope.errors import UserError
from knobscope.watch import Profile

# As blkparse 1.3.0 prints it; RWBS of requests that flush are those of kernels before and after 4.9.
TEXT = """\
  8,0    0        1     0.000000000  1234  Q   R 100 + 8 [db]
  8,0    0        4     0.000003000  1234  D   R 100 + 8 [db]
  8,0    0        5     0.000004000  1234  C   R 100 + 8 [0]
  8,0    1        9     0.000008000  1234  D  WS 108 + 8 [db worker]
  8,0    1       14     0.000013000  1234  D WFSM 200 + 16 [db]
  8,0    0       15     0.000014000     0  C WFSM 200 + 16 [0]
  8,0    0       19     0.000018000  1234  D FWS 300 + 8 [db]
  8,0    0       20     0.000019500     0  C FWS 300 + 8 [0]
  8,0    0       24     0.000023000  1234  D  FN [db]
  8,0    0       25     0.000024000     0  C  FN 0 [0]
  8,0    0       26     0.000024500  1234  D FWS [db]
  8,0    0       27     0.000024700     0  C FWS 0 [0]
  8,0    0       33     0.000033000  1234  D   D 1000 + 128 [db]
  8,0    0       34     0.000034000     0  C   D 1000 + 128 [0]
  8,0    0       39     0.000038000  1234  D  RA 50 + 8 [db]
  8,0    0       40     0.000039000     0  C  RA 50 + 8 [0]
  8,0    0       41     0.000040000  1234  D   W 400 + 8 [db]
  8,0    0       42     0.000041000  1234  R   W 400 + 8 [0]
  8,0    0       43     0.000042000  1234  D   W 400 + 8 [db]
  8,0    0       44     0.000047000     0  C   W 400 + 8 [0]
  8,0    0       45     0.000048000     0  C   W 900 + 8 [0]
  8,0    0       46     0.000049000  1234  D   R 36 (12 00 00 00 24 00 ..) [smart]
  8,0    0       47     0.000050000     0  m   N cfq schedule dispatch
CPU0 (x):
 Reads Queued:           4,       72KiB\t Writes Queued:           4,       16KiB
 IO unplugs:             0        \t Timer unplugs:           0

Throughput (R/W): 0KiB/s / 0KiB/s
Events (x): 46 entries
Skips: 0 forward (0 -   0.0%)
"""


def test_blkparse_text(describe: Any, write_text: Any) -> None:
    profile = describe(write_text(TEXT))
    assert profile["format"] == "blkparse"
    assert {row["op"]: row["requests"] for row in profile["io_profile"]} == {
        "read": 2,
        "write": 4,
        "discard": 1,
        "flush": 2,
    }
    write = row_of(profile, "write")
    assert (write["bytes"], write["fua"], write["preflush"], write["sync"], write["meta"]) == (20480, 1, 1, 3, 1)
    assert profile["starts_without_completion"] == 1  # WS 108
    assert profile["completions_without_start"] == 1  # W 900
    assert profile["requeues"] == 1
    assert profile["other_requests"] == 1  # a command for the drive itself
    latency = next(row for row in profile["latency"] if row["op"] == "write")
    assert (latency["requests"], latency["min_ns"], latency["max_ns"]) == (3, 1000, 5000)  # of the second issue
    assert (profile["truncated_lines"], profile["out_of_order"]) == (0, 0)


def test_a_cut_off_end_is_counted(describe: Any, write_text: Any, capsys: pytest.CaptureFixture[str]) -> None:
    whole = TEXT[: TEXT.index("CPU0")].splitlines(keepends=True)[:4]
    profile = describe(write_text("".join(whole)[:-12]))
    assert (profile["truncated_lines"], row_of(profile, "read")["requests"]) == (1, 1)
    assert "1 cut off at its end" in capsys.readouterr().out


def test_two_devices_are_two_traces(describe: Any, write_text: Any, refuses: Callable[..., str]) -> None:
    path = write_text(TEXT + "  8,16   0        1     0.5  7  D   R 100 + 8 [db]\n".replace("0.5", "0.500000000"))
    assert "several devices (8:0, 8:16)" in refuses("trace", path)
    assert row_of(describe(path, "--device", "8:16"), "read")["requests"] == 1
    assert main(["trace", str(path), "--device", "8:32"]) == 2


def test_csv_out_of_order_is_sorted_and_said(describe: Any, write_csv: Any) -> None:
    times = [0, 3000, 1000, 2000, 4000]
    in_order = {0: 0, 1000: 8, 2000: 16, 3000: 24, 4000: 32}
    profile = describe(write_csv([{"ts_ns": ts, "lba": in_order[ts]} for ts in times]))
    assert profile["out_of_order"] == 1
    assert row_of(profile, "write")["sequential_requests"] == 5
    assert row_of(profile, "write")["sequential_bytes"] == 5 * 4096


def test_csv_may_be_compressed_and_have_other_columns(describe: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write('cpu,ts_ns,lba,len_sectors,op,file\nx,0,0,8,W,"a,b"\n,1,8,8,w,\n')
    profile = describe(path)
    assert {row["file"] for row in profile["files"]} == {"a,b", "unknown"}


def test_csv_with_a_cut_off_line(describe: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("ts_ns,lba,len_sectors,op,lat_ns\n0,0,8,W,5\n1,8,8,W,5\n2,16,")
    profile = describe(path)
    assert (profile["truncated_lines"], row_of(profile, "write")["requests"]) == (1, 2)


HEAD = "ts_ns,lba,len_sectors,op,lat_ns\n0,0,8,W,5\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "1,x,8,W,5\n2,0,8,W,5\n", "line 3: lba is 'x'; expected a whole number"),
        (HEAD + "1,8,8,Q,5\n2,0,8,W,5\n", "line 3: op is 'Q'; expected one of R, W, D, F"),
        (HEAD + "1,8,8,W\n2,0,8,W,5\n", "line 3: 4 values; expected 5"),
        (HEAD + "1,8,8,W,-5\n", "line 3: lat_ns is -5; expected 0 or more"),
        (HEAD + "1,,8,W,5\n2,0,8,W,5\n", "line 3: lba is ''; expected a whole number"),
        ("ts_ns,lba,op\n0,0,W\n", "line 1: no column len_sectors"),
        (HEAD.splitlines()[0] + "\n", "found no request; expected a line for each below the line of names"),
        (HEAD.replace(",", ";"), "line 1: no column ts_ns, lba, len_sectors, op; expected a line of names with"),
        (TEXT.replace("D  WS 108 + 8", "D  WS"), ""),
        (TEXT.replace("  C   R 100", " what?"), "line 3: found"),
        ("hello world\n" * 3, "line 1: found 'hello world'"),
        ("", "no event of blkparse"),
    ],
)
def test_wrong_input_is_located(write_text: Any, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    path = write_text(text)
    code = main(["trace", str(path)])
    error = capsys.readouterr().err
    if message:
        assert code == 2
        assert message in error
        assert str(path) in error
    else:
        assert code == 0  # an issue without an address is a command of the driver's own


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/nonexistent.csv"], "there is no such file"),
        ([".", "--json", "x"], "without events.parquet"),
        (["trace.csv", "--colour", "op"], "--colour: found no --plot"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, refuses: Callable[..., str]) -> None:
    assert message in refuses("trace", *arguments)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([{"lba": 0, "file": "LOG"}, {"lba": 8, "file": "a"}], "expected a pattern of names such as 'LOG', 'a'"),
        ([{"lba": 0}, {"lba": 8}], "expected no --file: the trace names none"),
    ],
)
def test_a_pattern_that_no_file_has_is_told_which_there_are(
    write_csv: Any, refuses: Callable[..., str], requests: list[dict[str, Any]], expected: str
) -> None:
    path = write_csv(requests)
    assert f"{path}: found no request of a file like '*.ibd'; {expected}" in refuses("trace", path, "--file", "*.ibd")


@pytest.mark.parametrize(("most", "least"), [("W", "R"), ("R", "W")])
def test_operations_have_their_colours_however_many_there_are(
    write_csv: Any, tmp_path: Path, most: str, least: str
) -> None:
    path = write_csv([{"lba": 8 * number, "op": least if number == 3 else most} for number in range(9)])
    assert main(["trace", str(path), "--plot", str(tmp_path / "plot.svg"), "--colour", "op"]) == 0
    drawn = re.findall(r'class="bar (line-.)"[^>]*/><text[^>]*>(\w+)<', (tmp_path / "plot.svg").read_text())
    assert set(drawn) == {("line-a", "read"), ("line-b", "write")}


def test_plot_is_an_svg_with_every_group(write_csv: Any, tmp_path: Path) -> None:
    names = ["a1.sst", "a2.sst", "b.log", "c.log", "d.log", ""]
    path = write_csv([{"lba": 80 * n, "file": names[n % 6]} for n in range(600)])
    out = tmp_path / "plot.svg"
    assert main(["trace", str(path), "--plot", str(out)]) == 0
    picture = out.read_text()
    assert picture.startswith("<?xml")
    assert all(f">{name}</text>" in picture for name in ("a#.sst", "others"))
    assert main(["trace", str(path), "--plot", str(tmp_path / "plot.gif")]) == 2


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (f"5,{2**63},8,W,1", "lba"),
        ("1.5,8,8,W,1", "ts_ns is '1.5'; expected a whole number"),
        (f"5,8,8,W,{10**19}", "lat_ns"),
        ("5,8,0x8,W,1", "len_sectors"),
    ],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_no_number_vanishes(tmp_path: Path, line: str, problem: str, is_last: bool) -> None:
    lines = ["0,8,8,W,1", line] + ([] if is_last else ["9,8,8,W,1"])
    path = tmp_path / "trace.csv"
    path.write_text("ts_ns,lba,len_sectors,op,lat_ns\n" + "\n".join(lines) + "\n")
    with pytest.raises(UserError, match=problem) as error, open_trace(path):
        pass
    assert "line 3" in str(error.value)


def test_a_quote_that_is_never_closed_swallows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    lines = ["0,8,8,W,1", '1,8,8,"W,1', *(f"{number},8,8,W,1" for number in range(2, 50))]
    path.write_text("ts_ns,lba,len_sectors,op,lat_ns\n" + "\n".join(lines) + "\n")
    with pytest.raises(UserError, match="line 3: a quote that is never closed"), open_trace(path):
        pass


def test_lines_may_end_in_two_ways_in_one_file(describe: Any, tmp_path: Path) -> None:
    """Traces are joined from pieces that different machines wrote; the shape that DuckDB once refused."""
    ends = ["\r\n" if number % 3 else "\n" for number in range(3000)]
    listed = tmp_path / "trace.csv"
    lines = (f"{number * 1000},{number * 8},8,{'RW'[number % 2]}{end}" for number, end in enumerate(ends))
    listed.write_bytes(("ts_ns,lba,len_sectors,op\r\n" + "".join(lines)).encode())
    printed = tmp_path / "trace.txt"
    lines = (f"8,0 1 {number} {number}.000000001 697 D WS {number * 8} + 8 [a]{end}" for number, end in enumerate(ends))
    printed.write_bytes("".join(lines).encode())
    assert [row_of(describe(listed), op)["requests"] for op in ("read", "write")] == [1500, 1500]
    profile = describe(printed)
    assert (row_of(profile, "write")["requests"], profile["truncated_lines"]) == (3000, 0)


def test_a_week_is_read_as_fast_as_a_minute(tmp_path: Path) -> None:
    """As many requests take as long, whatever lies between them: the time went with the length of the trace once."""
    took = {}
    for seconds in (60, 7 * 24 * 3600):
        profile, took[seconds] = time_trace(tmp_path / f"{seconds}.csv", seconds)
        assert [row_of(profile, op)["requests"] for op in ("read", "write")] == [50_000, 50_000]
        assert sum(row["requests"] for row in profile["series"]) == 100_000
    assert took[7 * 24 * 3600] < 10 * took[60]


def time_trace(path: Path, seconds: int) -> tuple[Profile, float]:
    """Return the profile of 100,000 requests within some time, and the processor time that reading them takes."""
    step = seconds * 10**9 // 100_000
    lines = (
        f"{number * step},{number * 7919 % 100_000 * 8},8,{'RW'[number % 2]},{10_000 + number}"
        for number in range(100_000)
    )
    path.write_text("ts_ns,lba,len_sectors,op,lat_ns\n" + "\n".join(lines))
    began = time.process_time()
    with open_trace(path) as trace:
        return profile_trace(trace, 4096), time.process_time() - began


def test_a_byte_order_mark_and_long_times(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    lines = ["ts_ns,lba,len_sectors,op,lat_ns", "0,8,8,W,100", f"1600000000000000000,16,8,W,{10**17}"]
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode())
    with open_trace(path) as trace:
        profile = profile_trace(trace, 4096)
    assert row_of(profile, "write")["requests"] == 2
    assert len(profile["series"]) < 40_000
    assert sum(row["requests"] for row in profile["series"]) == 2


SAMPLES = {
    "MSR Cambridge": ("128166372003061629,usr,0,Write,7014609920,24576,41286", 24576),
    "Alibaba": ("419,W,8792731648,16384,1577808144360767", 16384),
    "FIU": ("89966921967446 4892 syslogd 904265560 8 W 6 0 531e779d", 4096),
    "Tencent": ("1538323200,12910952,128,1,1063", 65536),
    "Twitter": ("0,q:q:1:8WTfjZU14ee,17,495,4,set,0", 512),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_recipes_of_published_traces(tmp_path: Path, name: str) -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/trace.md").read_text()
    recipe = next(line for line in page.splitlines() if line.startswith(f"| {name} |")).split("`")[1]
    line, size = SAMPLES[name]
    made = subprocess.run(["sh", "-c", recipe], input=line + "\n", capture_output=True, text=True, check=True).stdout
    path = tmp_path / "made.csv"
    path.write_text(made)
    with open_trace(path) as trace:
        write = row_of(profile_trace(trace, 4096), "write")
    assert (write["requests"], write["bytes"]) == (1, size)


def test_blanks_after_commas_are_no_part_of_a_value(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ts_ns, lba, len_sectors, op\n0, 0, 8, R\n1000, 8, 8, w\n")
    with open_trace(tmp_path / "t.csv") as trace:
        rows = profile_trace(trace, 4096)["io_profile"]
    assert {row["op"]: row["requests"] for row in rows if row["requests"]} == {"read": 1, "write": 1}


def test_a_line_of_other_blanks_than_those_of_ascii_is_named(tmp_path: Path) -> None:
    lines = TEXT.splitlines(keepends=True)
    (tmp_path / "t.txt").write_text("".join([*lines[:3], "\N{NO-BREAK SPACE}\n", *lines[3:]]), encoding="utf-8")
    with pytest.raises(UserError, match=r"t\.txt, line 4: found"), open_trace(tmp_path / "t.txt"):
        pass


def test_a_plot_takes_names_of_files_as_they_are(write_csv: Any, tmp_path: Path) -> None:
    names = ["it's.db", "a\"'b"]
    path = write_csv([{"lba": 8 * n, "file": names[n % 2]} for n in range(10)])
    assert main(["trace", str(path), "--plot", str(tmp_path / "plot.svg")]) == 0
    drawn = html.unescape((tmp_path / "plot.svg").read_text())
    assert all(f">{name}</text>" in drawn for name in names)
