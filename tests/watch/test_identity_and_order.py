"""Numbers that were wrong once: whose inode it is, what is an append, who submitted it, and what is said of losses."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_devices import Loop, open_loop, row_of

from knobscope.watch.text import format_profile

pytestmark = pytest.mark.real

#: Writes 4 KiB with direct I/O: `threads` under names of their own, or 120 streams of one file, shuffled.
WRITERS = """
import ctypes, mmap, os, random, sys, threading
page = mmap.mmap(-1, 4096)
file = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT | os.O_DIRECT)
def named(number):
    ctypes.CDLL(None).prctl(15, f"writer-{number}".encode(), 0, 0, 0)
    for i in range(4):
        os.pwritev(file, [page], 4096 * (4 * number + i))
if sys.argv[1] == "names":
    for number in range(256):
        thread = threading.Thread(target=named, args=[number])
        thread.start()
        thread.join()
else:
    order = [stream for stream in range(120) for _ in range(50)]
    random.Random(1).shuffle(order)
    at = [0] * 120
    for stream in order:
        os.pwritev(file, [page], (stream * 64 + at[stream]) * 4096)
        at[stream] += 1
"""
#: Moves itself into a cgroup that it makes below its own, and writes there.
NESTED = """
import mmap, os, subprocess, sys
own = next(line[3:].strip() for line in open("/proc/self/cgroup") if line.startswith("0::"))
mount = next(line.split()[4] for line in open("/proc/self/mountinfo") if " - cgroup2 " in line)
inner = mount + own + "/inner"
os.mkdir(inner)
open(inner + "/cgroup.procs", "w").write(str(os.getpid()))
subprocess.run(["dd", "if=/dev/zero", "of=" + sys.argv[1], "bs=1M", "count=24", "oflag=direct"], check=True)
with open(sys.argv[1] + ".buffered", "wb") as file:
    file.write(bytes(4 << 20))
    os.fsync(file.fileno())
with open(sys.argv[1] + ".mapped", "w+b") as file:
    file.truncate(1 << 20)
    mapped = mmap.mmap(file.fileno(), 1 << 20)
    for page in range(256):
        mapped[page * 4096] = 1
"""


@pytest.fixture(scope="module", params=["ext4", pytest.param("xfs", marks=pytest.mark.long)])
def disk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with open_loop(tmp_path_factory.mktemp("identity") / "image", 512, request.param) as opened:
        yield opened


def watch(disk: Loop, output: Path, *command: str, options: tuple[str, ...] = ()) -> Any:
    """The profile of a command, as `knobscope watch` writes it."""
    watched = [sys.executable, "-m", "knobscope", "watch", "--device", str(disk.mount), "--json", str(output), *options]
    subprocess.run([*watched, "--", *command], check=True, capture_output=True)
    return json.loads(output.read_text())


def test_a_file_with_the_inode_of_a_deleted_one(disk: Loop, tmp_path: Path) -> None:
    log, table = (f"{disk.mount}/{name}" for name in ("wal.log", "table.sst"))
    script = (
        f"dd if=/dev/zero of={log} bs=1M count=20 oflag=direct && rm {log} && "
        f"dd if=/dev/zero of={table} bs=1M count=5 oflag=direct"
    )
    profile = watch(disk, tmp_path / "json", "sh", "-c", script, options=("--trace", str(tmp_path / "trace")))
    written = {row["file"]: row["bytes"] for row in profile["files"] if row["op"] == "write"}
    assert (written["wal.log"], written["table.sst"]) == (20 << 20, 5 << 20)
    import duckdb

    events = str(tmp_path / "trace/events.parquet")
    traced = duckdb.sql(f"SELECT file, sum(bytes) FROM '{events}' WHERE op = 'write' GROUP BY file").fetchall()  # noqa: S608
    assert dict(traced)["wal.log"] == 20 << 20


@pytest.mark.long
def test_appends_of_part_of_a_block(disk: Loop, tmp_path: Path) -> None:
    """Each write goes to the last block once more, or to the next."""
    append = f"dd if=/dev/zero of={disk.mount}/app bs=700 count=1 oflag=append,dsync conv=notrunc"
    profile = watch(disk, tmp_path / "json", "sh", "-c", f"for i in $(seq 200); do {append}; done")
    (row,) = (row for row in profile["files"] if (row["file"], row["op"]) == ("app", "write"))
    assert row["requests"] >= 200
    assert row["append_share"] >= 0.95
    assert row["pattern"] == "append"
    assert row_of(profile, "write")["append_requests"] >= 190


@pytest.mark.long
def test_many_streams_of_one_file(disk: Loop, tmp_path: Path) -> None:
    (disk.mount / "streams").write_bytes(bytes(120 * 64 * 4096))  # type: ignore[operator]
    os.sync()
    profile = watch(disk, tmp_path / "json", sys.executable, "-c", WRITERS, "streams", f"{disk.mount}/streams")
    (row,) = (row for row in profile["files"] if (row["file"], row["op"]) == ("streams", "write"))
    assert row["requests"] == 6000
    assert row["sequential_share"] >= 0.99


@pytest.mark.long
def test_256_names_of_threads(disk: Loop, tmp_path: Path) -> None:
    (disk.mount / "names").write_bytes(bytes(4 << 20))  # type: ignore[operator]
    os.sync()
    profile = watch(disk, tmp_path / "json", sys.executable, "-c", WRITERS, "names", f"{disk.mount}/names")
    writes = {row["submitter"]: row["requests"] for row in profile["submitters"] if row["op"] == "write"}
    assert {name: writes.get(f"writer-{name}") for name in range(256)} == dict.fromkeys(range(256), 4)
    assert "other" not in writes
    assert profile["unnamed_submitters"] == 0


def test_what_is_below_the_followed_cgroup_is_followed(disk: Loop, tmp_path: Path) -> None:
    profile = watch(
        disk,
        tmp_path / "json",
        sys.executable,
        "-c",
        NESTED,
        f"{disk.mount}/nested",
        options=("--with", "syscalls", "--with", "faults", "--scope", "process"),
    )
    write = row_of(profile, "write")
    assert write["own_bytes"] + write["inode_bytes"] >= 29 << 20
    assert write["foreign_requests"] == 0
    calls = {row["name"]: row["bytes"] for row in profile["file_access"] if row["op"] == "write"}
    assert (calls["nested"], calls["nested.buffered"]) == (24 << 20, 4 << 20)
    dirtied = {row["name"]: row["pages_dirtied"] for row in profile["faults"]}
    assert dirtied["nested.mapped"] == 256


@pytest.mark.long
def test_the_journal_is_the_part_journal_too(disk: Loop, tmp_path: Path) -> None:
    command = f"for i in $(seq 20); do dd if=/dev/zero of={disk.mount}/j$i bs=4k count=1 conv=fsync; done"
    profile = watch(disk, tmp_path / "json", "sh", "-c", command)
    (journal,) = (row for row in profile["files"] if (row["file"], row["op"]) == ("journal", "write"))
    assert journal["requests"] >= 20
    assert row_of(profile, "write")["journal_requests"] >= journal["requests"]


@pytest.mark.long
def test_data_that_stays_in_the_page_cache_is_said(disk: Loop, tmp_path: Path) -> None:
    """How much it is cannot be more than what all of the page cache has left by then."""
    command = ("dd", "if=/dev/zero", f"of={disk.mount}/dirty", "bs=1M", "count=8")
    os.sync()
    profile = watch(disk, tmp_path / "json", *command, options=("--no-sync",))
    written = sum(row["bytes"] for row in profile["files"] if row["file"] == "dirty")
    assert profile["unwritten_bytes"] <= 9 << 20
    assert profile["unwritten_bytes"] + written >= 7 << 20
    text = format_profile(profile | {"unwritten_bytes": 8 << 20}).replace("\xa0", " ")
    assert "8 MiB written to files had not reached the device" in text


@pytest.mark.long
def test_every_loss_is_said(disk: Loop, tmp_path: Path) -> None:
    profile = watch(disk, tmp_path / "json", "true")
    keys = ("lost_events", "missed_events", "hidden_completions", "starts_without_completion", "files_overflow")
    keys += ("completions_without_start", "addresses_overflow", "unnamed_submitters", "failed_requests", "requeues")
    counts = {key: 1000 + number for number, key in enumerate(keys)}
    text = format_profile(profile | counts | {"depth_excess": 0.22, "limits": ["io_uring is not seen"]})
    for count in counts.values():
        assert f"  {count:,} " in text
    assert "too high by at most 0.22" in text
    assert "  io_uring is not seen" in text
    assert "not counted" not in format_profile(profile | dict.fromkeys(keys, 0) | {"unwritten_bytes": 0, "limits": []})
