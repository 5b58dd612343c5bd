"""Traces of other tools: ftrace and `perf script` become text of blkparse, biosnoop CSV; others are named.

A line becomes a line, so that messages about the new text name the right one of the old.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from knobscope.commands.trace.columns import open_text
from knobscope.commands.trace.unpacking import open_packed
from knobscope.errors import UserError

#: Event of the kernel -> action of blkparse. Requests, and of devices without requests (device mapper, md, RAM) bios.
_ACTIONS = {
    "block_rq_issue": "D",
    "block_rq_complete": "C",
    "block_rq_requeue": "R",
    "block_bio_queue": "Q",
    "block_bio_complete": "C",
}
_EVENT = re.compile(
    r"^\s*(?P<comm>.{1,64}?)[- ]+(?P<pid>\d+)\s(?:.{0,64}?\s)?(?P<s>\d+)\.(?P<ns>\d{1,9}):\s+(?:\d+\s+)?(?:block:)?"
    r"(?P<event>block_(?:rq|bio)_\w+):\s+(?P<device>\d+,\d+)\s+(?P<rwbs>[A-Z]+)\s+"
    r"(?:\d+\s+)?(?:\([^)]*\)\s+)?(?P<lba>\d+) \+ (?P<sectors>\d+)(?:\s|$)"
)
_IS_EVENT = re.compile(r":\s+(?:block:)?block_(?:rq|bio)_\w+:")
#: In the head of ftrace's text, and where events are missing; the kernel does not always know how many.
_LOST = re.compile(r"^# entries-in-buffer/entries-written: (\d+)/(\d+)|\[(?:LOST )?(\d+)? ?EVENTS(?: DROPPED)?\]")
_EXPECTED = "expected an event like `db-42 [001] ..... 7.000123: block_rq_issue: 8,0 WS 4096 () 2048 + 8 [db]`"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
#: Digits before the point of numbers that can be true.
_MOST_DIGITS = {"TIME(s)": 9, "SECTOR": 15, "BYTES": 12, "LAT(ms)": 12}
_SNOOPED = ("TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)")
#: First lines of what is no trace of requests, or none that has all that is needed -> what it is and what to do.
_UNREADABLE = {
    r"^Linux \d.*CPU\)|^Device\s.*r/s": "the output of iostat, which has sums per interval and no requests; record "
    "requests with `blktrace -d DEVICE -o - | blkparse -i -`, or with `knobscope watch`",
    r"^% time\s+seconds\s+usecs/call": "a summary of strace, which has system calls and no requests; run the program "
    "under `knobscope watch`",
    r"^\d+, *\d+, *[012], *\d+(, *\d+)*$": "a log of fio, which has no addresses or only those that fio asked for; "
    "record requests with `blktrace` while fio runs",
    r"^\s*\d+\.\d+, *\d+, *[^,]+, *[A-Z]+,": "blkparse's text in a format of one's own (-f); print it without -f",
    r"^TIME\(ms\)\s+DISK|^TIME\(ms\)\s+DEVICE": "the output of biosnoop.bt, which has no addresses and sizes; use "
    "biosnoop of bcc (`biosnoop-bpfcc`)",
}


def refuse_unreadable(path: Path, lines: Sequence[str]) -> None:
    """UserError with what to do, for a file that is known to be something other than a trace of requests."""
    with open_packed(path) as file:
        head = file.read(4)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UserError(f"{path} is text in UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {path}")
    if head[1:] == b"tae" or head[:3] == b"eat":
        name = re.sub(r"\.blktrace\.\d+$", "", str(path))
        raise UserError(f"{path} is a binary trace of blktrace; make text of it: blkparse -i {name} > trace.txt")
    for pattern, meaning in _UNREADABLE.items():
        if any(re.search(pattern, line) for line in lines):
            raise UserError(f"{path} is {meaning}")


def is_events(lines: Sequence[str]) -> bool:
    """Whether the first lines are of ftrace or `perf script`, block events among them or not."""
    return any(line.startswith("# tracer:") or _IS_EVENT.search(line) for line in lines)


def find_biosnoop(lines: Sequence[str]) -> int | None:
    """Return which of the first lines, from 0, has the names of biosnoop's columns."""
    return next((index for index, line in enumerate(lines) if set(_SNOOPED) <= set(line.split())), None)


def convert_events(path: Path, out: Path) -> int | None:
    """Write the block events of ftrace or `perf script` as text of blkparse. UserError: one makes no sense.

    Returns how many events were lost; None where the text does not tell.
    """
    lost, events = None, 0
    with open_text(path) as text:
        has_requests = any("block_rq_complete" in line for line in text)  # whose bios complete, too
    with open_text(path) as text, out.open("w", encoding="utf-8") as file:
        before = ""
        for number, line in enumerate(text, 1):
            if before:
                raise UserError(f"{path}, line {number - 1}: found {before.strip()[:100]!r}; {_EXPECTED}")
            event = _EVENT.match(line)
            if event is None and (losing := _LOST.search(line)):
                kept, written, number_lost = losing.groups()
                lost = (lost or 0) + (int(written) - int(kept) if written else int(number_lost or 1))
            if event is None and _IS_EVENT.search(line):
                before = line.rstrip()  # unless it is the last one, which may be cut off
            action = event and _ACTIONS.get(event["event"])
            if event and has_requests and event["event"] == "block_bio_complete":
                action = None
            file.write(f"{_format_event(event, number, action)}\n" if event and action else "\n")
            events += bool(event and action)
        file.write(before)
    if not events:
        raise UserError(f"{path}: found no event of a request; {_EXPECTED}")
    return lost


def _format_event(event: re.Match[str], number: int, action: str) -> str:
    fields = (event["device"], 0, number, f"{event['s']}.{event['ns']:0<9}", event["pid"], action, event["rwbs"])
    extent = "" if event["sectors"] == "0" else f"{event['lba']} + {event['sectors']} "
    return f"{' '.join(map(str, fields))} {extent}[{event['comm'].strip()}]"


def convert_biosnoop(path: Path, out: Path, disk: str | None) -> None:
    """Write the lines of biosnoop as CSV; of several disks, `disk` names one. UserError: a line makes no sense."""
    with open_text(path) as text:
        disks = sorted({row["DISK"] for row in _read_biosnoop(path, text) if row})
    if disk is None and len(disks) > 1:
        raise UserError(f"{path} has several devices ({', '.join(disks)}); expected one of them as --device")
    if disk is not None and disks and disk not in disks:
        raise UserError(f"--device: {path} has no requests of {disk}; expected one of {', '.join(disks)}")
    with open_text(path) as text, out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["ts_ns", "lba", "len_sectors", "op", "flush", "lat_ns"])
        for row in _read_biosnoop(path, text):
            if not row:
                writer.writerow(["cut off"])  # the one line of CSV that lacks values
            elif row["DISK"] == (disk or disks[0]):
                writer.writerow(_convert_row(row))


def _read_biosnoop(path: Path, text: IO[str]) -> Iterator[dict[str, str]]:
    """Yield the lines by column, nothing for a last one that is cut off; a name of a program may have blanks."""
    names: list[str] = []
    wrong = None
    for number, line in enumerate(text, 1):
        if not names:
            names = line.split() if set(_SNOOPED) <= set(line.split()) else []
            continue
        if not line.strip():
            continue
        if wrong is not None:
            raise wrong
        comm = names.index("COMM")
        left = line.split(None, comm)
        cells = [*left[:comm], *left[-1].strip().rsplit(None, len(names) - comm - 1)]
        row = dict(zip(names, cells, strict=False))
        is_right = len(cells) == len(names) and all(
            _NUMBER.fullmatch(row[name]) and len(row[name].partition(".")[0]) <= digits
            for name, digits in _MOST_DIGITS.items()
        )
        if is_right:
            yield row
        else:
            wrong = UserError(f"{path}, line {number}: found {line.strip()[:100]!r}; expected {' '.join(names)}")
    if wrong is not None:
        yield {}


def _convert_row(row: dict[str, str]) -> tuple[int, int, int, str, int, int]:
    """Return the values of a request. The time of biosnoop is when a request ended."""
    latency, end = round(float(row["LAT(ms)"]) * 1e6), round(float(row["TIME(s)"]) * 1e9)
    kind, sectors = row["T"], int(row["BYTES"]) // 512
    is_flush = kind.startswith("F")
    op = kind.lstrip("F")[:1] or "F"
    if op not in "RWDF":  # a command of the driver
        op, sectors = "R", 0
    return end - latency, max(int(row["SECTOR"]), 0), sectors, op, int(is_flush), latency
