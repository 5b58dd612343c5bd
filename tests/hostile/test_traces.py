"""Traces of strangers: bombs and damage end in a profile or in a sentence that names the limit, in bounded memory."""

import gzip
import os
import random
from pathlib import Path

import duckdb
import pytest
from canaries import Open

HEAD = b"ts_ns,lba,len_sectors,op,lat_ns\n"
LINES = [f"{1000 * n},{8 * n},8,{'RW'[n % 2]},{500 + n}\n".encode() for n in range(200)]


def test_compressed_zeros_stop_at_the_first_line(open_watched: Open, tmp_path: Path) -> None:
    bomb = tmp_path / "zeros.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(2000):
            file.write(bytes(1 << 20))
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


def damage(random_: random.Random) -> bytes:
    """Return a trace of which some bytes, lines or ends are damaged."""
    content = bytearray(HEAD + b"".join(LINES))
    for _ in range(random_.randint(1, 5)):
        at = random_.randrange(len(content))
        evil = [b"\x00", b'"', b"\r", b",", b"\n", b"-", b"9" * 400, b"\xff\xfe", b"\x1b[2J", b"x" * 70_000, b"1e9"]
        match random_.randrange(4):
            case 0:
                content[at : at + 1] = random_.choice(evil)
            case 1:
                del content[at:]
                content += b"\n" * (len(content) < 2)
            case 2:
                del content[at : at + random_.randrange(60)]
            case _:
                content[at:at] = content[: random_.randrange(200)]
    return gzip.compress(bytes(content)) if random_.random() < 0.2 else bytes(content)


@pytest.mark.parametrize(
    ("first", "count"),
    [
        pytest.param(0, 40, marks=pytest.mark.slow),
        *(pytest.param(n, 200, marks=pytest.mark.long) for n in range(0, 2000, 200)),
    ],
)
def test_damaged_traces_end_in_a_profile_or_a_sentence(
    first: int, count: int, open_watched: Open, tmp_path: Path
) -> None:
    commands = []
    for seed in range(first, first + count):
        file = tmp_path / f"{seed}.csv"
        file.write_bytes(damage(random.Random(seed)))
        commands.append(["trace", file])
    answers = open_watched(*commands)
    assert {answer.code for answer in answers} == {0, 2}
    assert all(answer.text.startswith("knobscope: ") for answer in answers if answer.code)
