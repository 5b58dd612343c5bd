"""What the system calls of a program show, against what the program did."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_devices import Fio, Gated, Job, Loop, watch_jobs

from knobscope.devices import find_block_device
from knobscope.watch import Profile, Watch, open_watch

pytestmark = pytest.mark.real

_FILE_MIB = 32
_MODES = {"libaio": "libaio", "io_uring": "io_uring"}
#: Every pattern in one way, and every way in one pattern; the others take long.
_WAYS = [
    pytest.param(engine, rw, marks=() if engine == "psync" or rw == "randrw" else pytest.mark.long)
    for engine in ("sync", "psync", "pvsync", "pvsync2", "posixaio", "libaio", "io_uring")
    for rw in ("read", "write", "randread", "randwrite", "rw", "randrw")
]
_LABELS = {"read": "sequential", "write": "sequential", "rw": "sequential"}

#: program(text) -> its command; the text finds the file's name in `name`.
Program = Callable[[str], Gated]


@pytest.fixture(scope="module")
def file(mounted: Loop) -> Path:
    """A file of 32 MiB, its blocks allocated and clean."""
    assert mounted.mount is not None
    path = mounted.mount / "file"
    path.write_bytes(bytes(_FILE_MIB << 20))
    subprocess.run(["sync", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def watch(mounted: Loop, file: Path) -> Iterator[Watch]:
    with open_watch(mounted.block, 4096, "device", probes=["syscalls"], files="device") as opened:
        assert opened.monitor == "bpf", opened.reason
        assert not opened.missing_probes
        yield opened


@pytest.fixture
def program(file: Path) -> Program:
    def prepare(text: str) -> Gated:
        return Gated([sys.executable, "-c", f"import os\nname = {str(file)!r}\n{text}"])

    return prepare


def run(watch: Watch, followed: Gated, *beside: Gated) -> Profile:
    profile = watch_jobs(watch, followed, beside=beside)
    lost = dict(profile["lost_syscalls"])
    lost.pop("missed_events")  # may be other processes' events
    assert not any(lost.values()), lost
    return profile


def access_of(profile: Profile, op: str, name: str = "file") -> dict[str, Any]:
    return next((row for row in profile["file_access"] if (row["op"], row["name"]) == (op, name)), {"calls": 0})


def mode_of(profile: Profile, op: str, mode: str) -> dict[str, Any]:
    return next(row for row in profile["io_modes"] if (row["op"], row["mode"]) == (op, mode))


def call_of(profile: Profile, name: str) -> dict[str, Any]:
    return next(row for row in profile["syscalls"] if row["syscall"] == name)


def assert_as_fio(profile: Profile, job: Job, mode: str, label: str) -> None:
    for op in ("read", "write"):
        done, row = job.read(op), access_of(profile, op)
        assert row["calls"] == done["total_ios"]
        if not done["total_ios"]:
            continue
        assert (row["bytes"], row["pattern"]) == (done["io_bytes"], label)
        assert row["sequential_share"] == (1 if label == "sequential" else pytest.approx(0, abs=0.05))
        way = mode_of(profile, op, mode)
        assert (way["calls"], way["bytes"], way["call_share"]) == (row["calls"], row["bytes"], 1)


@pytest.mark.parametrize(("engine", "rw"), _WAYS)
def test_counts_are_those_of_fio(watch: Watch, file: Path, fio: Fio, engine: str, rw: str) -> None:
    job = fio(file, ioengine=engine, rw=rw, bs="4k", size=f"{_FILE_MIB}m", number_ios=200)
    profile = run(watch, job)
    assert_as_fio(profile, job, _MODES.get(engine, "sync"), _LABELS.get(rw, "random"))
    assert {row["batch_mean"] for row in profile["io_modes"]} == {1.0}


@pytest.mark.parametrize(("engine", "batch"), [("libaio", 200), ("io_uring", 128)])
def test_long_batches_are_counted_whole(watch: Watch, file: Path, fio: Fio, engine: str, batch: int) -> None:
    """Longer than what one program handles at a time; completions come in as long batches."""
    depth = {"iodepth": batch, "iodepth_batch": batch, "iodepth_batch_complete_min": batch}
    common: dict[str, Any] = {"bs": "4k", "size": f"{_FILE_MIB}m", "direct": 1}
    job = fio(file, ioengine=engine, rw="read", number_ios=5 * batch, **common, **depth)
    profile = run(watch, job)
    assert_as_fio(profile, job, engine, "sequential")
    assert [(row["batch"], row["submits"]) for row in profile["io_batches"]] == [(batch, 5)]
    way = mode_of(profile, "read", engine)
    assert (way["submits"], way["batch_mean"], way["unseen_completions"], way["errors"]) == (5, batch, 0, 0)
    assert 1 < way["in_flight_mean"] <= batch


#: A program of libaio: `submit(blocks)` asks io_submit for all of them and returns how many it took, `reap(n)` waits.
_LIBAIO = """
import ctypes, mmap, struct
aio = ctypes.CDLL("libaio.so.1")
context = ctypes.c_void_p()
assert aio.io_setup(1, ctypes.byref(context)) == 0
f, g = os.open(name, os.O_WRONLY | os.O_DIRECT), os.open(name, os.O_RDONLY)
data = mmap.mmap(-1, 4096)
place = ctypes.addressof(ctypes.c_char.from_buffer(data))
WRITE, SYNC = 1, 2

def block(number, opcode=WRITE, descriptor=f):
    bytes_ = 4096 if opcode == WRITE or descriptor == g else 0
    return ctypes.create_string_buffer(
        struct.pack("<QIIHhIQQqQII", 0, 0, 0, opcode, 0, descriptor, place, bytes_, 4096 * number, 0, 0, 0), 64)

def submit(blocks):
    pointers = (ctypes.c_void_p * len(blocks))(*(ctypes.addressof(one) for one in blocks))
    return aio.io_submit(context, len(blocks), pointers)

def reap(count):
    events = (ctypes.c_char * (32 * count))()
    assert aio.io_getevents(context, count, count, events, None) == count
    return struct.unpack_from("<q", events, 16)[0]
"""


def test_what_io_submit_refuses_does_not_count(watch: Watch, program: Program) -> None:
    """A ring with less room than is asked for: the program submits the rest again, as programs do."""
    profile = run(
        watch,
        program(f"""{_LIBAIO}
blocks, calls = [block(i) for i in range(1000)], 0
while blocks:
  taken = submit(blocks[:500])
  calls += 1
  reap(taken)
  blocks = blocks[taken:]
assert calls > 2, calls
"""),
    )
    row, way = access_of(profile, "write"), mode_of(profile, "write", "libaio")
    assert (row["calls"], row["bytes"]) == (1000, 1000 * 4096)
    assert (row["sequential_share"], row["append_share"], row["pattern"]) == (1.0, 0.999, "sequential")
    assert (way["calls"], way["bytes"], way["errors"], way["unseen_completions"]) == (1000, 1000 * 4096, 0, 0)
    assert sum(batch["batch"] * batch["submits"] for batch in profile["io_batches"]) == 1000
    sizes = [(size["bytes"], size["calls"]) for size in profile["syscall_sizes"] if size["syscall"] == "io_submit"]
    assert sizes == [(4096, 1000)]


def test_one_block_that_io_submit_refuses_stops_it(watch: Watch, program: Program) -> None:
    """A write to a file that is open for reading, and a sync of bytes, between sound ones; then the first of all."""
    profile = run(
        watch,
        program(f"""{_LIBAIO}
assert submit([block(0), block(1), block(9, descriptor=g), block(2)]) == 2
reap(2)
assert submit([block(2), block(3), block(0, SYNC, g), block(4)]) == 2
reap(2)
assert submit([block(9, descriptor=g), block(4)]) < 0
assert submit([block(4), block(5)]) == 2
reap(2)
"""),
    )
    row, way = access_of(profile, "write"), mode_of(profile, "write", "libaio")
    assert (row["calls"], row["bytes"], way["calls"], way["bytes"]) == (6, 6 * 4096, 6, 6 * 4096)
    assert row["sequential_share"] == 1.0
    assert access_of(profile, "sync")["calls"] == 0
    assert call_of(profile, "io_submit")["errors"] == 1
    sizes = [(size["bytes"], size["calls"]) for size in profile["syscall_sizes"] if size["syscall"] == "io_submit"]
    assert sizes == [(4096, 6)]


@pytest.mark.parametrize(
    "options",
    [{"registerfiles": 1, "fixedbufs": 1}, {"sqthread_poll": 1}, {"nonvectored": 0}],
    ids=["fixed", "polled", "vectors"],
)
def test_io_uring_in_all_its_forms(watch: Watch, file: Path, fio: Fio, options: dict[str, int]) -> None:
    common: dict[str, Any] = {"bs": "8k", "size": f"{_FILE_MIB}m", "direct": 1, "iodepth": 8, "number_ios": 400}
    job = fio(file, ioengine="io_uring", rw="randrw", **common, **options)
    profile = run(watch, job)
    assert_as_fio(profile, job, "io_uring", "random")
    row = mode_of(profile, "read", "io_uring")
    assert row["polled"] == (row["calls"] if "sqthread_poll" in options else 0)
    assert (row["submits"] == 0) == ("sqthread_poll" in options)


def test_only_followed_processes_count(watch: Watch, file: Path, fio: Fio) -> None:
    common: dict[str, Any] = {"ioengine": "psync", "rw": "randread", "bs": "4k", "size": f"{_FILE_MIB}m"}
    followed, other = fio(file, number_ios=111, **common), fio(file, number_ios=500, **common)
    profile = run(watch, followed, other)
    assert access_of(profile, "read")["calls"] == 111


def test_children_count(watch: Watch, program: Program) -> None:
    child = "f = os.open(name, os.O_RDONLY)\nif not os.fork():\n  [os.pread(f, 512, i) for i in range(7)]\n"
    profile = run(watch, program(child + "else:\n  os.wait(); os.pread(f, 512, 0)"))
    assert call_of(profile, "pread64")["calls"] == 8
    assert sum(row["calls"] for row in profile["syscalls"] if row["syscall"] in ("fork", "clone", "clone3")) == 1


def test_threads_whose_places_are_the_same_count(watch: Watch, program: Program) -> None:
    """The child's number differs from its parent's in a bit that the program leaves out: it takes its second place."""
    text = """
import ctypes, signal, struct
f = os.open(name, os.O_RDONLY)
os.pread(f, 4096, 0)
number = (ctypes.c_int * 1)(os.getpid() ^ 16384)
arguments = struct.pack("11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(number), 1, 0)
child = ctypes.CDLL(None).syscall(435, arguments, len(arguments))  # clone3
assert child in (0, number[0])
for i in range(50 if child else 30): os.pread(f, 4096, 0)
if not child: os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    profile = run(watch, program(text))
    assert (access_of(profile, "read")["calls"], call_of(profile, "pread64")["calls"]) == (81, 81)


@pytest.mark.parametrize(
    ("offsets", "pattern", "strided"),
    [
        ("[i * 65536 for i in range(100)]", "strided", 99),
        ("[(99 - i) * 4096 for i in range(100)]", "strided", 99),
        ("[(i % 2 << 20) + (i // 2) * 4096 for i in range(100)]", "sequential", 0),
        ("[0] * 100", "random", 0),
        ("[i * 4096 for i in range(50)] + [j * j * 4096 for j in range(50)]", "mixed", 0),
        ("[i * 4096 for i in range(9)]", "few", 0),
    ],
    ids=["strided", "backward", "two-streams", "one-offset", "mixed", "few"],
)
def test_patterns(watch: Watch, program: Program, offsets: str, pattern: str, strided: int) -> None:
    text = f"f = os.open(name, os.O_RDONLY)\nfor offset in {offsets}: os.pread(f, 4096, offset)"
    row = access_of(run(watch, program(text)), "read")
    assert row["pattern"] == pattern
    assert row["strided_share"] * row["calls"] == pytest.approx(strided)
    assert row["sequential_share"] + row["strided_share"] + row["random_share"] == pytest.approx(1)


def test_offsets_of_every_kind_of_call(watch: Watch, program: Program) -> None:
    """Each group goes on where the one before it ended; only then it is one sequential stream."""
    text = """
f = os.open(name, os.O_RDWR)
for i in range(4): os.read(f, 4096)
for i in range(4): os.readv(f, [bytearray(1024), bytearray(3072)])
for i in range(4): os.pread(f, 4096, 32768 + i * 4096)
for i in range(4): os.preadv(f, [bytearray(4096)], 49152 + i * 4096)
out = os.open(name + '.copy', os.O_RDWR | os.O_CREAT | os.O_TRUNC)
for i in range(4): os.copy_file_range(f, out, 4096, 65536 + i * 4096, i * 4096)
for i in range(4): os.sendfile(out, f, 81920 + i * 4096, 4096) if not os.lseek(out, 16384 + i * 4096, 0) < 0 else 0
log = os.open(name + '.log', os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
for i in range(12): os.write(log, bytes(100 + i))
os.fsync(log); os.fdatasync(log)
directory = os.open(os.path.dirname(name), os.O_RDONLY)
os.fsync(directory)
"""
    profile = run(watch, program(text))
    read, copied = access_of(profile, "read"), access_of(profile, "write", "file.copy")
    assert (read["calls"], read["bytes"], read["sequential_share"]) == (24, 24 * 4096, 1)
    assert (copied["calls"], copied["bytes"], copied["sequential_share"]) == (8, 8 * 4096, 1)
    log = access_of(profile, "write", "file.log")
    assert (log["calls"], log["bytes"], log["pattern"]) == (12, sum(range(100, 112)), "sequential")
    assert {row["calls"] for row in profile["file_syncs"] if row["name"] == "file.log"} == {2}
    assert mode_of(profile, "sync", "sync")["calls"] == 3  # the directory's is one


def test_errors_and_ends_of_files_move_no_bytes(watch: Watch, program: Program) -> None:
    text = f"""
f = os.open(name, os.O_WRONLY)
for i in range(3):
  try: os.pread(f, 4096, 0)
  except OSError: pass
g = os.open(name, os.O_RDONLY)
os.pread(g, 4096, {_FILE_MIB << 20})
os.pread(g, 4096, {(_FILE_MIB << 20) - 1000})
"""
    profile = run(watch, program(text))
    row = call_of(profile, "pread64")
    assert (row["calls"], row["errors"], row["bytes"]) == (5, 3, 1000)
    assert (access_of(profile, "read")["calls"], access_of(profile, "read")["bytes"]) == (1, 1000)


def test_histograms_add_up(watch: Watch, file: Path, fio: Fio) -> None:
    common: dict[str, Any] = {"bssplit": "4k/50:12k/50", "norandommap": 1, "size": f"{_FILE_MIB}m"}
    job = fio(file, ioengine="psync", rw="randwrite", fsync=10, number_ios=300, **common)
    profile = run(watch, job)
    row = call_of(profile, "pwrite64")
    sizes = {r["bytes"]: r["calls"] for r in profile["syscall_sizes"] if r["syscall"] == "pwrite64"}
    assert set(sizes) == {4096, 12288}
    assert (sum(sizes.values()), sum(size * calls for size, calls in sizes.items())) == (300, row["bytes"])
    times = [r for r in profile["syscall_latency"] if r["syscall"] == "pwrite64"]
    assert sum(r["calls"] for r in times) == 300
    low, high = (sum(r[edge] * r["calls"] for r in times) / 300 for edge in ("low_us", "high_us"))
    assert low <= row["latency_mean_us"] <= high
    assert call_of(profile, "fsync")["calls"] == job.read("sync")["total_ios"]


@pytest.mark.long
def test_other_calls_can_be_left_out(mounted: Loop, tmp_path: Path, program: Program) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    text = f"f, g = os.open(name, os.O_RDWR), os.open({elsewhere!r}, os.O_RDWR | os.O_CREAT)\n"
    text += "os.pwrite(f, bytes(512), 0); os.pwrite(g, bytes(512), 0); os.fsync(f); os.fsync(g)"
    with open_watch(mounted.block, 4096, "device", probes=["syscalls"], calls=["fsync"]) as watch:
        profile = run(watch, program(text))
    assert [(row["syscall"], row["calls"]) for row in profile["syscalls"]] == [("fsync", 2)]
    assert {row["name"] for row in profile["file_syncs"]} == {"file", "elsewhere"}


def test_an_unknown_call_is_explained(mounted: Loop) -> None:
    with open_watch(mounted.block, 4096, "device", probes=["syscalls"], calls=["no_such_call"]) as watch:
        assert "no_such_call" in watch.missing_probes["syscalls"]
        assert watch.monitor == "bpf"


def test_sqlite_is_synchronous(watch: Watch, program: Program) -> None:
    text = """
import sqlite3
db = sqlite3.connect(name + '.db', isolation_level=None)
db.execute('CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)')
for k in range(20): db.execute('INSERT INTO t VALUES (?, ?)', (k, bytes(1000)))
"""
    profile = run(watch, program(text))
    assert {row["mode"] for row in profile["io_modes"]} == {"sync"}
    assert {row["batch_mean"] for row in profile["io_modes"]} == {1.0}
    syncs = [(row["name"], row["calls"]) for row in profile["file_syncs"]]
    assert sorted(syncs) == [("/", 21), ("file.db", 21), ("file.db-journal", 42)]  # it comes and goes, and is one file
    assert access_of(profile, "write", "file.db")["bytes"] % 4096 == 0


@pytest.mark.long
def test_postgresql_is_synchronous(open_directory: Path) -> None:
    if shutil.which("initdb") is None or shutil.which("postgres") is None:
        pytest.skip("PostgreSQL is not installed")
    data = open_directory / "data"
    data.mkdir()
    shutil.chown(data, "postgres")
    subprocess.run(["initdb", "-D", data, "--no-sync"], user="postgres", cwd="/", check=True, capture_output=True)
    lines = "CREATE TABLE t AS SELECT i, repeat('x', 900) FROM generate_series(1, 5000) i\nCHECKPOINT\n"
    call = f"subprocess.run(['postgres', '--single', '-D', {str(data)!r}, 'postgres'], input={lines!r}, text=True"
    server = Gated([sys.executable, "-c", f"import subprocess\n{call}, user='postgres', cwd='/', check=True)"])
    with open_watch(find_block_device(data), 4096, "process", probes=["syscalls"], files="device") as watch:
        profile = run(watch, server)
    assert [(row["mode"], row["batch_mean"]) for row in profile["io_modes"] if row["op"] == "write"] == [("sync", 1.0)]
    assert mode_of(profile, "read", "sync")["call_share"] > 0.9  # the rest are pages of the program itself
    pages = [row for row in profile["syscall_sizes"] if row["syscall"] == "pwrite64" and row["bytes"] % 8192 == 0]
    assert sum(row["calls"] * row["bytes"] for row in pages) >= 5000 * 900
    assert mode_of(profile, "sync", "sync")["calls"] > 0


@pytest.mark.usefixtures("statistics")
def test_programs_cost_nanoseconds(watch: Watch, program: Program) -> None:
    text = "f = os.open(name, os.O_RDONLY)\nfor i in range(20_000): os.pread(f, 4096, i * 7919 % 8192 * 4096)"
    profile = run(watch, program(text))
    costs = {row["program"]: row["time_ns"] / row["runs"] for row in profile["syscall_programs"] if row["runs"] > 1000}
    assert set(costs) >= {"on_enter", "on_exit"}
    assert max(costs.values()) < 5000, costs
