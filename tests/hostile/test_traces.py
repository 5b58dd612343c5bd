"""Traces of strangers: bombs and damage end in a profile or in a sentence that names the limit, in bounded memory."""

import csv
import gzip
import io
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from canaries import Open

HEAD = b"ts_ns,lba,len_sectors,op,lat_ns\n"
LINES = [f"{1000 * n},{8 * n},8,{'RW'[n % 2]},{500 + n}\n".encode() for n in range(200)]
EVENTS = [
    f"  8,0    1 {n:8} {n // 1000:5}.{n % 1000:03}000000   697  {'DC'[n % 2]}  {'WR'[n // 2 % 2]}S {8 * (n // 2)} + 8 "
    f"{'[0]' if n % 2 else '[fio]'}\n".encode()
    for n in range(200)
]


class Sums:
    """Requests and bytes by operation; what has no sectors is no request, unless it is a flush."""

    def __init__(self) -> None:
        self.by_op: dict[str, tuple[int, int]] = {}

    def add(self, op: str, sectors: int) -> None:
        if sectors:
            requests, sum_ = self.by_op.get(op, (0, 0))
            self.by_op[op] = requests + 1, sum_ + 512 * sectors


def test_compressed_zeros_stop_at_the_first_line(open_watched: Open, tmp_path: Path) -> None:
    bomb = tmp_path / "zeros.gz"
    member = gzip.compress(bytes(1 << 24), compresslevel=1)
    bomb.write_bytes(member * 125)  # 2,000 MiB
    (answer,) = open_watched(["trace", bomb])
    assert answer.code == 2
    assert "line 1: more than 65,536 bytes, the longest line of a trace" in answer.text


def test_what_has_no_end_or_is_damaged_is_refused(open_watched: Open, tmp_path: Path) -> None:
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 8 << 30)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(HEAD + b"".join(LINES))[:-20])
    (tmp_path / "quote").write_bytes(b'"' + HEAD + b"".join(LINES) * 100)
    (tmp_path / "digits").write_bytes(HEAD + b"1" * 5000 + b",1,8,R,1\n" + LINES[0])
    sentences = {
        "sparse": "the longest line of a trace",
        "pipe": "no regular file",
        "cut.gz": "the compressed text is damaged",
        "quote": "field larger than field limit",
        "digits": "expected at most",
        "": "directory without events.parquet",
    }
    for name, answer in zip(sentences, open_watched(*(["trace", tmp_path / name] for name in sentences)), strict=True):
        assert answer.code == 2
        assert sentences[name] in answer.text


@pytest.mark.slow
def test_more_requests_than_fit_into_memory_are_refused(open_watched: Open, tmp_path: Path) -> None:
    many, queues = tmp_path / "many.csv.gz", tmp_path / "events.parquet"
    with gzip.open(many, "wb", compresslevel=1) as file:
        file.write(HEAD)
        for _ in range(130):
            file.write(LINES[0] * 100_000)
    row = "SELECT n AS ts_ns, 0 AS lba, 512 AS bytes, 'read' AS op, 1 AS lat_ns, n::INTEGER AS queue"
    duckdb.execute(f"COPY ({row} FROM range(5000) r(n)) TO '{queues}'")
    first, second = open_watched(["trace", many], ["trace", queues])
    assert "more than 12,000,001 lines; expected at most that many" in first.text
    assert "found 5,000 queues; expected at most 1,024" in second.text


EVIL = [b"\x00", b'"', b"\r", b",", b"\n", b"-", b"9" * 400, b"\xff\xfe", b"\x1b[2J", b"x" * 70_000, b"1e9", b"7"]


def damage(content: bytes, random_: random.Random) -> bytes:
    """Return a trace of which some bytes, lines or ends are damaged."""
    damaged = bytearray(content)
    for _ in range(random_.randint(1, 5)):
        at = random_.randrange(len(damaged))
        match random_.randrange(4):
            case 0:
                damaged[at : at + 1] = random_.choice(EVIL)
            case 1:
                del damaged[at:]
                damaged += b"\n" * (len(damaged) < 2)
            case 2:
                del damaged[at : at + random_.randrange(60)]
                damaged += b"\n" * (len(damaged) < 2)
            case _:
                damaged[at:at] = damaged[: random_.randrange(200)]
    return bytes(damaged)


def damaged_csv(file: Path, random_: random.Random) -> Sums | None:
    content = damage(HEAD + b"".join(LINES), random_)
    file.write_bytes(gzip.compress(content) if random_.random() < 0.2 else content)
    return read_simply(content, count_csv)


def damaged_blkparse(file: Path, random_: random.Random) -> Sums | None:
    content = damage(b"".join(EVENTS), random_)
    file.write_bytes(gzip.compress(content) if random_.random() < 0.2 else content)
    return read_simply(content, count_blkparse)


def read_simply(content: bytes, count: Callable[[str], Sums]) -> Sums | None:
    """Return the sums of a text as a few lines of Python see them; None: it makes no sense to them."""
    try:
        return count(content.decode())
    except (ValueError, IndexError, KeyError, csv.Error):
        return None


def count_csv(text: str) -> Sums:
    names, *rows = filter(None, csv.reader(io.StringIO(text, newline="")))
    if rows and len(rows[-1]) != len(names):
        del rows[-1]  # the last line may be cut
    sums = Sums()
    for row in rows:
        cells = dict(zip((name.strip() for name in names), (cell.strip() for cell in row), strict=True))
        sums.add({"R": "read", "W": "write", "D": "discard", "F": "flush"}[cells["op"][0]], int(cells["len_sectors"]))
    return sums


def count_blkparse(text: str) -> Sums:
    sums = Sums()
    for line in text.split("\n"):
        cells = line.split()
        if len(cells) > 6 and cells[5] == "D" and cells[-1].endswith("]"):
            sums.add("write" if "W" in cells[6] else "read", int(cells[9]))
    return sums


#: Column -> values of it that cannot be true.
IMPOSSIBLE = {
    "ts_ns": ["NULL", "1::BIGINT << 62", "-(1::BIGINT << 62)"],
    "lba": ["NULL", "-1", "1::BIGINT << 60"],
    "bytes": ["NULL", "-4096", "1::BIGINT << 62"],
    "op": ["NULL", "''", "'x\x1b[2J'", "'WRITE'", "repeat('x', 100000)"],
    "lat_ns": ["-1", "1::BIGINT << 62"],
    "queue": ["-1", "2147483647"],
}


def damaged_parquet(file: Path, random_: random.Random) -> Sums | None:
    """Write a recorded trace with a value that cannot be true in it, or with a type that is another one, or cut."""
    columns = {
        "ts_ns": "1000 * n",
        "lba": "8 * n",
        "bytes": "4096 * (1 + n % 3)",
        "op": "if(n % 2 = 0, 'read', 'write')",
        "lat_ns": "500 + n",
        "queue": "(n % 4)::INTEGER",
    }
    way, rows = random_.randrange(4), random_.randint(1, 300)
    name = random_.choice(list(columns))
    if way == 0:
        value = random_.choice(IMPOSSIBLE[name])
        columns[name] = f"if(n = {random_.randrange(rows)}, {value}, {columns[name]})"
    if way == 1:
        columns[name] = random_.choice(["[1]", "'a'::BLOB", "1.5", "'nan'::DOUBLE", "{'a': 1}", "DATE '2026-01-01'"])
    row = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    duckdb.execute(f"COPY (SELECT {row} FROM range({rows}) r(n)) TO '{file}' (FORMAT parquet)")
    if way == 2:
        content = file.read_bytes()
        file.write_bytes(content[: random_.randrange(len(content))])
    if way < 3:
        return None
    sums = Sums()
    for number in range(rows):
        sums.add("write" if number % 2 else "read", 8 * (1 + number % 3))
    return sums


WRITERS = {"csv": damaged_csv, "blkparse": damaged_blkparse, "parquet": damaged_parquet}


@pytest.mark.parametrize(
    ("form", "first", "count"),
    [
        *(pytest.param(form, 0, 20, marks=pytest.mark.slow) for form in WRITERS),
        *(pytest.param(form, n, 134, marks=pytest.mark.long) for form in WRITERS for n in range(0, 670, 134)),
    ],
)
def test_a_damaged_trace_has_the_sums_that_it_states_or_a_sentence(
    form: str, first: int, count: int, open_watched: Open, tmp_path: Path, run_folder: Path
) -> None:
    commands, truths = [], []
    for seed in range(first, first + count):
        file = tmp_path / f"{seed}.{form}"
        truths.append(WRITERS[form](file, random.Random(seed)))
        commands.append(["trace", file, "--json", run_folder / f"{seed}.json"])
    answers = open_watched(*commands)
    assert {answer.code for answer in answers} == {0, 2}
    for command, answer, truth in zip(commands, answers, truths, strict=True):
        if answer.code:
            assert answer.text.startswith("knobscope: ")
            continue
        profile = json.loads(Path(str(command[-1])).read_text())
        assert truth is not None, command
        rows = [row for row in profile["io_profile"] if row["requests"]]
        assert {row["op"]: (row["requests"], row["bytes"]) for row in rows} == truth.by_op, command
