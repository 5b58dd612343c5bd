"""Traces as people have them: of devices without requests, of other tools, packed, and from a pipe."""

import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from knobscope.cli import main

ISSUED = """\
  8,0    0        1     0.000001000  1234  D  WS 100 + 8 [db]
  8,0    0        2     0.000005000     0  C  WS 100 + 8 [0]
"""
#: As ftrace of kernel 6.1 prints it, with bios of the same requests, and an event that is none of the block layer.
EVENTS = """\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
   jbd2/sda-8-394   [003] .....  9904.831143: block_bio_queue: 8,0 WS 2048 + 8 [jbd2/sda-8]
   jbd2/sda-8-394   [003] .....  9904.831159: block_rq_issue: 8,0 WS 4096 () 2048 + 8 [jbd2/sda-8]
           db-41    [001] d.h..  9904.831160: sched_switch: prev_comm=db prev_pid=41
           db-41    [003] d.h..  9904.831178: block_rq_complete: 8,0 WS () 2048 + 8 [0]
           db-41    [003] d.h..  9904.831178: block_bio_complete: 8,0 WS 2048 + 8 [0]
"""
PERF = """\
     app 37801 [003]  9904.831159: block:block_rq_issue: 8,0 WS 4096 () 2048 + 8 [app]
            swapper     0 [003]  9904.831178: block:block_rq_complete: 8,0 WS () 2048 + 8 [0]
"""
BIOSNOOP = """\
TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)
0.001000    my app         342    sda     W 2048       4096      0.00    0.61
0.001500    jbd2/sda-8     394    sda     R 35093536   8192      0.01    0.33
0.002000    db             899    sdb     W 56763776   4096      0.00    0.01
"""


def latency_of(profile: dict[str, Any], op: str) -> tuple[int, int]:
    row = next(row for row in profile["latency"] if row["op"] == op)
    return row["requests"], row["p50_ns"]


def test_without_issues_a_request_lives_from_queueing_to_completion(describe: Any, write_text: Any) -> None:
    profile = describe(write_text(ISSUED.replace(" D ", " Q ")))
    assert latency_of(profile, "write") == (1, 4000)
    assert profile["life"] == "from queueing to completion"


def test_completions_alone_have_sizes_and_no_latency(
    describe: Any, write_text: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = describe(write_text(ISSUED.splitlines()[1]))
    assert [row["requests"] for row in profile["io_sizes"]] == [1]
    assert (profile["latency"], profile["queue_depth"]) == ([], [])
    assert "no issue of a request is in it" in capsys.readouterr().out


def test_issues_count_where_there_are_any(describe: Any, write_text: Any) -> None:
    queued = "  8,0    0        1     0.000000000  1234  Q  WS 100 + 8 [db]\n"
    profile = describe(write_text(queued + ISSUED))
    assert latency_of(profile, "write") == (1, 4000)
    assert profile["life"] == "from issue to completion"


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        (EVENTS, None),
        (EVENTS.replace("# tracer: nop\n", "# tracer: nop\n#\n# entries-in-buffer/entries-written: 5/12   #P:4\n"), 7),
        (EVENTS + "CPU:1 [LOST 4051 EVENTS]\n" + EVENTS.replace("9904.", "9905."), 4051),
        (EVENTS + "CPU:1 [EVENTS DROPPED]\nCPU:2 [30 EVENTS DROPPED]\n", 31),
        (ISSUED, None),
        (ISSUED + "Skips: 5 forward (1,234 -  12.3%)\nSkips: 0 forward (0 -   0.0%)\n", 1234),
    ],
)
def test_events_that_were_lost_are_counted(describe: Any, write_text: Any, text: str, lost: int | None) -> None:
    assert describe(write_text(text))["lost_events"] == lost


def test_write_zeroes_has_no_letter_and_is_a_write(describe: Any, write_text: Any) -> None:
    zeroes = ISSUED.replace(" WS ", "  N ").replace("100 + 8", "500 + 64")
    profile = describe(write_text(ISSUED + zeroes.replace("0.00000", "0.00001")))
    (write,) = (row for row in profile["io_profile"] if row["op"] == "write")
    assert (write["requests"], write["bytes"], profile["other_requests"]) == (2, 72 * 512, 0)


@pytest.mark.parametrize("text", [EVENTS, PERF])
def test_block_events_of_the_kernel(describe: Any, write_text: Any, text: str) -> None:
    profile = describe(write_text(text))
    assert profile["format"] == "ftrace"
    assert latency_of(profile, "write") == (1, 19_000)
    assert (profile["completions_without_start"], profile["starts_without_completion"]) == (0, 0)


def test_an_event_that_makes_no_sense_is_named(write_text: Any, refuses: Callable[..., str]) -> None:
    path = write_text(EVENTS.replace("WS 4096 () 2048 + 8", "WS 4096 () x + 8"))
    assert f"{path}, line 4: found 'jbd2" in refuses("trace", path)


def test_biosnoop_has_completions_and_latencies_by_disk(
    describe: Any, write_text: Any, refuses: Callable[..., str]
) -> None:
    path = write_text(BIOSNOOP)
    assert "several devices (sda, sdb)" in refuses("trace", path)
    profile = describe(path, "--device", "sda")
    assert (latency_of(profile, "write"), latency_of(profile, "read")) == ((1, 610_000), (1, 330_000))
    assert {row["op"]: row["bytes"] for row in profile["io_sizes"]} == {"read": 8192, "write": 4096}
    assert profile["out_of_order"] == 0


def test_a_line_of_biosnoop_that_makes_no_sense_is_named(write_text: Any, refuses: Callable[..., str]) -> None:
    path = write_text(BIOSNOOP.replace("35093536", "many"))
    assert f"{path}, line 3: found" in refuses("trace", path)


def test_a_last_line_of_biosnoop_that_is_cut_off_is_counted(describe: Any, write_text: Any) -> None:
    profile = describe(write_text(BIOSNOOP[:-15].replace("sdb", "sda")))
    assert (profile["truncated_lines"], sum(row["requests"] for row in profile["io_sizes"])) == (1, 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BIOSNOOP.splitlines()[0], "found no request; expected a line for each below the line of names"),
        (EVENTS[: EVENTS.index("   jbd2")], "found no event of a request; expected an event like `db-42"),
    ],
)
def test_a_recording_of_nothing_says_what_was_expected(
    write_text: Any, refuses: Callable[..., str], text: str, expected: str
) -> None:
    assert expected in refuses("trace", str(write_text(text)))


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("trace.xz", lzma.compress),
        ("trace.zst", zstandard.compress),
        ("trace.log", gzip.compress),
    ],
)
def test_packed_traces_are_read_whatever_their_names(describe: Any, tmp_path: Path, name: str, pack: Any) -> None:
    path = tmp_path / name
    path.write_bytes(pack(ISSUED.encode()))
    assert latency_of(describe(path), "write") == (1, 4000)


@pytest.mark.parametrize("pack", [lzma.compress, zstandard.compress])
def test_a_packed_trace_that_is_cut_off_is_damaged(tmp_path: Path, refuses: Callable[..., str], pack: Any) -> None:
    path = tmp_path / "trace"
    path.write_bytes(pack(ISSUED.encode() * 1000)[:-8])
    assert str(path) in refuses("trace", path)


def test_standard_input_and_a_pipe_of_the_shell(
    monkeypatch: pytest.MonkeyPatch, describe: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lzma.compress(ISSUED.encode()))))
    profile = describe(Path("-"))
    assert (profile["trace"], latency_of(profile, "write")) == ("-", (1, 4000))
    reading, writing = os.pipe()
    os.write(writing, f"{ISSUED}nonsense\n\n".encode())
    os.close(writing)
    assert main(["trace", f"/dev/fd/{reading}"]) == 2
    os.close(reading)
    assert f"/dev/fd/{reading}, line 3: found 'nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"\x07tae" + bytes(40), "blkparse -i"),
        (ISSUED.encode("utf-16"), "iconv -f UTF-16"),
        (b"Linux 6.1.0 (host)  01/02/24  _x86_64_ (4 CPU)\n\nDevice  r/s\n", "iostat"),
        (b"% time     seconds  usecs/call     calls    errors syscall\n", "strace"),
        (b"12, 4096, 0, 4096, 0\n13, 4096, 1, 4096, 0\n", "a log of fio"),
        (b"    0.000991321, 10587, fio, D, 4403200, 256, 131072\n", "print it without -f"),
        (b"TIME(ms)     DISK  COMM           PID    LAT(ms)\n", "biosnoop.bt"),
        (
            b"PAR1" + bytes(100) + b"PAR1",
            "expected a trace in one of the formats blkparse, csv, parquet, ftrace, biosnoop",
        ),
    ],
)
def test_what_is_no_trace_is_named_with_what_to_do(
    tmp_path: Path, refuses: Callable[..., str], content: bytes, advice: str
) -> None:
    path = tmp_path / "sda.blktrace.0"
    path.write_bytes(content)
    assert advice in refuses("trace", path)


def test_few_requests_have_no_rate_and_many_a_conclusion(
    write_csv: Any, describe: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    describe(write_csv([{"lba": 8 * number} for number in range(29)]))
    few = capsys.readouterr().out
    assert few.startswith("Only 29 requests: too few for shares and rates.\n")
    assert "requests/s" not in few
    assert "write sizes: 4 KiB 29\n" in few
    describe(write_csv([{"lba": 8 * number, "op": "R" if number % 4 == 0 else "W"} for number in range(40)]))
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("75 % of 40 requests are writes, all of 4 KiB, ")
    assert "requests of the trace are under way for 100 % of the time, with 1.0 in flight" in first
    assert any("requests/s" in line for line in others)
