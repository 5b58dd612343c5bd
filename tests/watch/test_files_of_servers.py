"""Real servers on a file system of their own: their logs, tables and temporary files, against what they say of them."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from loop_devices import Loop, Syncs, open_loop

pytestmark = pytest.mark.real

_PAGE = 4096  # of the page cache
_WAL_PAGE = 8192
_WAL_SEGMENT = 16 << 20


@pytest.fixture
def disk(request: pytest.FixtureRequest, open_directory: Path) -> Iterator[Loop]:
    with open_loop(open_directory / "image", 640, request.param) as opened:
        yield opened


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def watch(disk: Loop, output: Path, *command: str) -> tuple[str, list[dict[str, Any]]]:
    """What the command printed, and the rows of files that were written to."""
    watched = [sys.executable, "-m", "knobscope", "watch", "--device", str(disk.mount), "--json", str(output)]
    done = subprocess.run([*watched, "--", *command], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    profile = json.loads(output.read_text())
    losses = ("lost_events", "files_overflow", "addresses_overflow", "unnamed_submitters", "unwritten_bytes")
    assert {name: profile[name] for name in losses[:-1]} == dict.fromkeys(losses[:-1], 0)
    return done.stdout, [row for row in profile["files"] if row["op"] == "write"]


def sum_bytes(rows: list[dict[str, Any]], pattern: str) -> int:
    return sum(row["bytes"] for row in rows if re.fullmatch(pattern, row["file"]))


def count_appends(rows: list[dict[str, Any]], pattern: str) -> tuple[float, int]:
    """The share of appends among the requests to some files, and the number of these requests."""
    logs = [row for row in rows if re.fullmatch(pattern, row["file"])]
    requests = sum(row["requests"] for row in logs)
    return sum(row["append_share"] * row["requests"] for row in logs) / requests, requests


def run_as_postgres(*command: str, text: str = "") -> None:
    subprocess.run(command, input=text, user="postgres", cwd="/", check=True, capture_output=True, text=True)


def round_up(number: int, page: int) -> int:
    return -(-number // page) * page


# Commits one after another, of one session, and nobody else writes WAL. Then a temporary file that is written back, and
# so much WAL that a new segment is made, which may get the inode of the temporary file.
_SETTINGS = """
wal_level = minimal
max_wal_senders = 0
autovacuum = off
checkpoint_timeout = 1h
max_wal_size = 1GB
wal_writer_delay = 10s
bgwriter_lru_maxpages = 0
listen_addresses = ''
"""
_TABLES = """CREATE TABLE small (i int, text text)
CREATE TABLE large AS SELECT i, repeat('x', 900) AS text FROM generate_series(1, 8000) i
CHECKPOINT
"""
_SESSION = """
log() { echo 'SELECT pg_current_wal_flush_lsn();'; }
generated() { echo "SELECT 'generated', wal_bytes FROM pg_stat_wal;"; }
set -e
cd /
pg_ctl -s -w -D "$1" -l "$1/server.log" -o "-k $1" start
{
    generated
    log
    for i in $(seq 200); do
        echo "INSERT INTO small SELECT i, repeat('x', i % 700) FROM generate_series($i, $i + $i % 20) i;"
        log
    done
    echo 'SET work_mem = 64; BEGIN; DECLARE c CURSOR FOR SELECT * FROM large ORDER BY i % 7, text, i; FETCH 1 FROM c;'
    printf '%s\\n' "\\\\! sync -f $1" 'CLOSE c; COMMIT;'
    log
    for i in 1 2; do
        echo 'INSERT INTO large SELECT * FROM large;'
        log
    done
    echo 'SELECT pg_stat_force_next_flush();'
    generated
    echo "SELECT 'temporary', temp_bytes FROM pg_stat_database WHERE datname = 'postgres';"
} | psql -X -q -A -t -h "$1" postgres
pg_ctl -s -w -D "$1" -m immediate stop
"""


@pytest.mark.parametrize("disk", ["ext4"], indirect=True)
def test_postgresql(disk: Loop, tmp_path: Path, syncs: Syncs) -> None:
    """Every commit writes the pages of the WAL from that on where the one before ended; new segments begin as zeros."""
    need("initdb", "pg_ctl", "psql")
    data = disk.mount / "data"  # type: ignore[operator]
    data.mkdir()
    data.parent.chmod(0o755)
    shutil.chown(data, "postgres")
    run_as_postgres("initdb", "-D", str(data), "--no-sync")
    with (data / "postgresql.conf").open("a") as settings:
        settings.write(_SETTINGS)
    run_as_postgres("postgres", "--single", "-D", str(data), "postgres", text=_TABLES)
    session = ["runuser", "-u", "postgres", "--", "sh", "-c", _SESSION, "sh", str(data)]
    printed, rows = watch(disk, tmp_path / "json", *session)
    ends = [int(high, 16) << 32 | int(low, 16) for high, low in re.findall(r"^(\w+)/(\w+)$", printed, re.MULTILINE)]
    assert len(ends) == 204
    steps = [(begin, end) for begin, end in pairwise(ends) if begin != end]
    assert len(steps) >= 202
    segments = ends[-1] // _WAL_SEGMENT - ends[0] // _WAL_SEGMENT
    assert segments >= 1
    written = sum(round_up(end, _WAL_PAGE) - begin // _WAL_PAGE * _WAL_PAGE for begin, end in steps)
    assert sum_bytes(rows, "data/pg_wal/[0-9A-F]{24}") == written + segments * _WAL_SEGMENT
    before, generated = map(int, re.findall(r"^generated\|(\d+)$", printed, re.MULTILINE))
    assert ends[-1] - ends[0] == pytest.approx(generated - before, rel=0.01)  # headers of pages are no WAL
    temporary = int(re.search(r"^temporary\|(\d+)$", printed, re.MULTILINE)[1])  # type: ignore[index]
    assert temporary > 4 << 20
    written_temporary = sum_bytes(rows, r"(data/base/pgsql_tmp/)?pgsql_tmp.*")
    assert written_temporary >= temporary if syncs.came() else written_temporary == temporary
    assert count_appends(rows, "data/pg_wal/.*")[0] >= 0.95


# A client that waits for every answer: how long the log is after each command, and then how long the snapshots are.
_REDIS = """
import json, os, socket, subprocess, sys, time
directory = sys.argv[1]
settings = "--port 0 --unixsocket socket --logfile log --appendonly yes --appendfsync always --rdbcompression no"
settings = ["--dir", directory, *settings.split(), "--enable-debug-command", "yes", "--save", ""]
server = subprocess.Popen(["redis-server", *settings])
while not os.path.exists(directory + "/socket"):
    time.sleep(0.02)
client = socket.socket(socket.AF_UNIX)
client.connect(directory + "/socket")
answers = client.makefile("rb")
def ask(*words):
    parts = [word.encode() for word in words]
    client.sendall(b"*%d\\r\\n" % len(parts) + b"".join(b"$%d\\r\\n%s\\r\\n" % (len(part), part) for part in parts))
    answer = answers.readline()
    return answers.read(int(answer[1:]) + 2).decode() if answer[:1] == b"$" else answer.decode()
def ask_size(name):
    return int(ask("INFO", "persistence").split(name + ":")[1].split()[0])
sizes = [ask_size("aof_current_size") - ask_size("aof_base_size")]
for number in range(300):
    assert ask("SET", f"key{number}", "x" * (number * 37 % 3000)) == "+OK\\r\\n"
    sizes.append(ask_size("aof_current_size") - ask_size("aof_base_size"))
ask("DEBUG", "POPULATE", "20000", "key", "1000")
ask("BGREWRITEAOF")
while ask_size("aof_rewrite_in_progress") or ask_size("aof_rewrite_scheduled"):
    time.sleep(0.05)
base = ask_size("aof_base_size")
assert ask("SAVE") == "+OK\\r\\n"
client.sendall(b"SHUTDOWN NOSAVE\\r\\n")
server.wait()
print(json.dumps({"sizes": sizes, "base": base, "saved": os.path.getsize(directory + "/dump.rdb")}))
"""


@pytest.mark.parametrize("disk", ["xfs"], indirect=True)
def test_redis(disk: Loop, tmp_path: Path) -> None:
    """Every command writes all pages of the log from that on which the one before ended; a snapshot is written once."""
    need("redis-server")
    data = disk.mount / "data"  # type: ignore[operator]
    data.mkdir()
    printed, rows = watch(disk, tmp_path / "json", sys.executable, "-c", _REDIS, str(data))
    told = json.loads(printed.splitlines()[-1])
    steps = pairwise(told["sizes"])
    written = sum(round_up(end, _PAGE) - begin // _PAGE * _PAGE for begin, end in steps)
    log = r"(data/appendonlydir/)?appendonly\.aof\.1\.incr\.aof"  # which is gone at the end
    assert sum_bytes(rows, log) == written
    assert count_appends(rows, log)[0] >= 0.95
    base = r"data/appendonlydir/appendonly\.aof\.2\.base\.rdb"
    for snapshot, size in ((base, told["base"]), (r"data/dump\.rdb", told["saved"])):
        assert size > 20_000_000
        # It is synced every 4 MiB, wherever that ends on a page, which is written once more then.
        assert round_up(size, _PAGE) <= sum_bytes(rows, snapshot) <= round_up(size, _PAGE) + size // (4 << 20) * _PAGE


@pytest.mark.fleet
@pytest.mark.parametrize("disk", ["ext4", "xfs"], indirect=True)
def test_rocksdb(disk: Loop, tmp_path: Path) -> None:
    """Batches of 500 KiB, each synced; flushes and compactions; by all files, most of which are gone at the end."""
    need("db_bench")
    options = ["--benchmarks=fillrandom", "--num=60000", "--value_size=1000", "--batch_size=500", "--sync=1"]
    options += [
        "--statistics",
        "--write_buffer_size=16777216",
        "--target_file_size_base=8388608",
        "--compression_type=none",
    ]
    options += ["--max_bytes_for_level_base=16777216", "--level0_file_num_compaction_trigger=2", "--seed=1"]
    printed, rows = watch(disk, tmp_path / "json", "db_bench", f"--db={disk.mount}/data", *options)
    told = {name: int(count) for name, count in re.findall(r"^rocksdb\.(\S+) COUNT : (\d+)$", printed, re.MULTILINE)}
    assert told["compact.write.bytes"] > 20_000_000
    assert sum_bytes(rows, r"(data/)?\d+\.log") == pytest.approx(told["wal.bytes"], rel=0.01)
    tables = told["flush.write.bytes"] + told["compact.write.bytes"]
    assert sum_bytes(rows, r"(data/)?\d+\.sst") == pytest.approx(tables, rel=0.01)
    assert count_appends(rows, r"(data/)?\d+\.log")[0] >= 0.95
