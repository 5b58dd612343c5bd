"""`knobscope trace` on millions of events: time and peak memory per format, beside blkparse and btt.

Run `python benchmarks/trace.py [EVENTS]`; 10 million by default, which takes 2 GiB on disk for a while. The events are
made up: one request in four at a random address, the others in three streams, reads and writes, 50 files. CSV and
parquet have a request per event. For blkparse and btt (package blktrace) requests are written as the kernel writes
them, binary, with five events each (Q, G, I, D, C); what blkparse prints of them is our text.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

GAP_NS = 2000
#: struct blk_io_trace of include/uapi/linux/blktrace_api.h
LAYOUT = [
    *((name, "u4") for name in ("magic", "sequence")),
    *((name, "u8") for name in ("time", "sector")),
    *((name, "u4") for name in ("bytes", "action", "pid", "device", "cpu")),
    *((name, "u2") for name in ("error", "pdu_len")),
]
MAGIC, DEVICE = 0x65617407, 8 << 20
READ, WRITE, FS = 1 << 0, 1 << 1, 1 << 8
#: Q, G, I, D, C: number of the action, its category, and when it happens after the request was queued, ns.
ACTIONS = [(1, 1 << 4, 0), (4, 0, 10), (12, 0, 20), (7, 1 << 6, 30), (8, 1 << 7, 60_000)]


def make_requests(count: int) -> pd.DataFrame:
    """Return made-up requests in order of issue."""
    rng = np.random.default_rng(1)
    number = np.arange(count)
    stream = number % 4
    addresses = np.where(stream == 0, rng.integers(0, 10**8, count), stream * 10**8 + number // 4)
    return pd.DataFrame(
        {
            "ts_ns": number * GAP_NS + rng.integers(0, GAP_NS // 2, count),
            "lba": addresses * 8,
            "is_write": stream < 2,
            "lat_ns": rng.integers(20_000, 1_020_000, count),
            "file": number % 50,
        }
    )


def write_tables(count: int, directory: Path) -> None:
    """Write requests as events.csv and events.parquet."""
    size_and_op = {
        "csv": "8 AS len_sectors, CASE WHEN is_write THEN 'W' ELSE 'R' END AS op, 0 AS flush",
        "parquet": "4096 AS bytes, CASE WHEN is_write THEN 'write' ELSE 'read' END AS op",
    }
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.register("r", make_requests(count))
        for suffix, columns in size_and_op.items():
            connection.execute(
                f"COPY (SELECT ts_ns, lba, {columns}, printf('%06d.sst', file) AS file, lat_ns FROM r) "  # noqa: S608
                f"TO '{directory}/events.{suffix}'"
            )


def write_binary(count: int, directory: Path) -> None:
    """Write requests as blktrace does, x.blktrace.0 of one processor, in order of time."""
    requests = make_requests(count)
    events = np.zeros(len(requests) * len(ACTIONS), np.dtype(LAYOUT))
    direction = np.where(requests["is_write"], WRITE, READ)
    for index, (action, category, after_ns) in enumerate(ACTIONS):
        part = events[index :: len(ACTIONS)]
        part["time"] = requests["ts_ns"] + after_ns
        part["sector"], part["bytes"] = requests["lba"], 4096
        part["action"] = action | (direction | category | FS) << 16
    events["magic"], events["device"], events["pid"] = MAGIC, DEVICE, 1234
    events = events[np.argsort(events["time"], kind="stable")]
    events["sequence"] = np.arange(1, len(events) + 1)
    events.tofile(directory / "x.blktrace.0")


def measure(name: str, command: list[str], output: Path) -> None:
    """Run a command and print its duration, CPU time and peak memory."""
    start = time.perf_counter()
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, cwd=output.parent)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{name} failed"
    cpu_s = usage.ru_utime + usage.ru_stime
    seconds = time.perf_counter() - start
    print(f"{name:24} {seconds:8.1f} s  CPU {cpu_s:6.1f} s  {usage.ru_maxrss / 1024:6.0f} MiB", flush=True)


def apart(work: Callable[[int, Path], None], count: int, directory: Path) -> None:
    """Work in a process of its own: what is started by a process with much memory seems to have used as much."""
    process = get_context("spawn").Process(target=work, args=(count, directory))
    process.start()
    process.join()
    assert process.exitcode == 0


def main(arguments: list[str]) -> None:
    """Print a line per tool and format."""
    count = int(arguments[0]) if arguments else 10_000_000
    ours = [sys.executable, "-m", "knobscope", "trace"]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        apart(write_tables, count, directory)
        for suffix in ("csv", "parquet"):
            path = directory / f"events.{suffix}"
            measure(f"trace, {suffix}", [*ours, str(path)], directory / "profile.txt")
            path.unlink()
        apart(write_binary, count // len(ACTIONS), directory)
        text, dump = directory / "events.txt", directory / "events.bin"
        measure("blkparse, to text", ["blkparse", "-i", "x"], text)
        measure("trace, blkparse's text", [*ours, str(text)], directory / "profile.txt")
        measure("blkparse, to binary", ["blkparse", "-q", "-i", "x", "-d", str(dump), "-O"], directory / "none.txt")
        measure("btt, of that", ["btt", "-i", str(dump)], directory / "btt.txt")


if __name__ == "__main__":
    main(sys.argv[1:])
