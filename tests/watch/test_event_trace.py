"""The trace of a run, request by request, against the counters of the same run and against fio."""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import pytest
from loop_devices import Fio, Loop, row_of, watch_jobs

from knobscope.commands.trace import open_trace, profile_trace
from knobscope.watch import Profile, Watch, open_watch, read_tree
from knobscope.watch.locality import trace_locality

pytestmark = pytest.mark.real

Traced = Callable[..., tuple[Profile, Profile, Path]]


@pytest.fixture
def watch(loop: Loop, tmp_path: Path) -> Iterator[Watch]:
    with open_watch(loop.block, 4096, "device", trace=tmp_path / "traces") as opened:
        yield opened


@pytest.fixture
def mounted_watch(mounted: Loop, tmp_path: Path) -> Iterator[Watch]:
    with open_watch(mounted.block, 4096, "device", trace=tmp_path / "traces") as opened:
        yield opened


def describe(directory: Path) -> Profile:
    with open_trace(directory) as trace:
        return profile_trace(trace, 4096)


def select(directory: Path, query: str) -> list[tuple[Any, ...]]:
    """Return rows of a query on the tables `events` and `lost`."""
    with duckdb.connect() as connection:
        for table in ("events", "lost"):
            connection.read_parquet(str(directory / f"{table}.parquet")).create_view(table)
        return connection.execute(query).fetchall()


def watch_whole(watch: Watch, start: Callable[[], Any]) -> Profile:
    """Watch a job, again if the kernel did not show every completion: a few are missed now and then."""
    for _ in range(5):
        counted = watch_jobs(watch, start())
        if counted["starts_without_completion"] == 0:
            return counted
    pytest.skip("this kernel does not show every completion")


def times_of(profile: Profile) -> dict[tuple[int, int], int]:
    return {(row["queue"], row["depth"]): row["time_ns"] for row in profile["queue_depth"]}


@pytest.mark.parametrize(
    "options",
    [
        {"rw": "randrw", "bsrange": "4k-64k", "iodepth": 8},
        pytest.param(
            {"rw": "write", "bs": "16k", "iodepth": 4, "numjobs": 3, "offset_increment": "32m", "size": "16m"},
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"rw": "randread", "bs": "4k", "iodepth": 1, "runtime": "400ms", "time_based": 1}, marks=pytest.mark.long
        ),
    ],
    ids=["randrw", "three streams", "randread"],
)
def test_trace_and_counters_of_a_run_agree(
    loop: Loop, direct: Fio, watch: Watch, tmp_path: Path, options: dict[str, str | int]
) -> None:
    counted = watch_whole(watch, lambda: direct(loop.node, **options))
    assert watch.write_trace(tmp_path / "run", []) == (sum(row["requests"] for row in counted["io_profile"]), 0)
    traced = describe(tmp_path / "run")
    for op in ("read", "write", "discard", "flush"):
        ours, theirs = row_of(traced, op), row_of(counted, op)
        exact = ["requests", "bytes", "aligned_requests", "sync", "meta", "own_requests", "device_bytes"]
        assert {name: ours[name] for name in exact} == {name: theirs[name] for name in exact}
        # Requests that several processors issue within the same moment may be counted in another order.
        off = 0 if "numjobs" not in options else 0.01 * theirs["requests"]
        assert ours["sequential_requests"] == pytest.approx(theirs["sequential_requests"], abs=off)
    for table in ("io_sizes", "io_latency", "queue_wait"):
        assert traced[table] == counted[table]
    assert traced["duration_s"] == counted["duration_s"]
    assert traced["unattributed_share"] == counted["unattributed_share"]
    ours, theirs = times_of(traced), times_of(counted)
    assert ours == pytest.approx(theirs, rel=0.01, abs=2e6)


@pytest.mark.long
def test_the_submitter_is_in_every_event(loop: Loop, direct: Fio, watch: Watch, tmp_path: Path) -> None:
    watch_whole(watch, lambda: direct(loop.node, rw="randwrite", bs="4k", number_ios=500, iodepth=4))
    watch.write_trace(tmp_path / "run", [])
    assert select(tmp_path / "run", "SELECT DISTINCT comm, owner, op, queue, failed, file FROM events") == [
        ("fio", "own", "write", 0, False, None)
    ]
    assert select(tmp_path / "run", "SELECT count(*) FROM events WHERE lat_ns > 0 AND wait_ns >= 0 AND pid > 1") == [
        (500,)
    ]


@pytest.mark.parametrize("hot", [10, pytest.param(25, marks=pytest.mark.long)])
def test_a_known_hot_set_is_found_and_caches_save_what_they_would(
    loop: Loop, direct: Fio, watch: Watch, tmp_path: Path, hot: int
) -> None:
    """Nine of ten reads go to the first `hot` percent of 96 MiB; what caches save is simulated request by request."""
    zones = f"zoned:90/{hot}:10/{100 - hot}"
    job = {"rw": "randread", "bs": "4k", "size": "96m", "norandommap": 1, "number_ios": 12_000, "iodepth": 4}
    watch_whole(watch, lambda: direct(loop.node, random_distribution=zones, **job))
    watch.write_trace(tmp_path / "run", [])
    with open_trace(tmp_path / "run") as trace:
        traced = trace_locality(trace.connection, "SELECT *, op = 0 AS is_read FROM requests WHERE op < 2")
    assert traced is not None
    measured = traced.locality
    assert measured.rate == 1
    assert measured.files[0].hot_share == pytest.approx(hot / 100 * 8 / 9, abs=0.03)  # 80 % of requests, not 90
    blocks = [sector // 8 for (sector,) in select(tmp_path / "run", "SELECT lba FROM events WHERE op = 'read'")]
    for point in measured.curve:
        cache: OrderedDict[int, None] = OrderedDict()
        missed = 0
        for block in blocks:
            missed += block not in cache
            cache[block] = None
            cache.move_to_end(block)
            if len(cache) > point.cache_bytes // 4096:
                cache.popitem(last=False)
        assert point.miss_share == pytest.approx(missed / len(blocks))
    assert measured.useful_cache_bytes is not None
    # A cache must hold the hot zone and the cold reads between two reads of a hot block.
    assert 0.96e6 * hot < measured.useful_cache_bytes < 4e6 * hot


def sums_of(profile: Profile, name: str) -> list[tuple[Any, ...]]:
    """Return what was counted of the file with this name."""
    columns = ("op", "requests", "bytes", "sequential_requests", "pattern")
    paths = [(row.get("file") or row["name"], row) for row in profile["files"]]
    return [tuple(row[column] for column in columns) for path, row in paths if Path(path).name == name]


@pytest.mark.parametrize("is_direct", [1, 0], ids=["direct", "buffered"])
def test_file_and_offset(mounted: Loop, fio: Fio, mounted_watch: Watch, tmp_path: Path, is_direct: int) -> None:
    """Of cached pages the kernel knows file and offset, of direct I/O the extents tell the file."""
    assert mounted.mount is not None
    file = mounted.mount / f"data-{is_direct}"
    file.write_bytes(bytes(4 << 20))
    os.sync()
    trees = [read_tree(mounted.mount)]
    options = {"rw": "write", "bs": "64k", "size": "4m", "direct": is_direct, "ioengine": "psync", "end_fsync": 1}
    counted = watch_whole(mounted_watch, lambda: fio(file, **options))
    mounted_watch.write_trace(tmp_path / "run", [*trees, read_tree(mounted.mount)])
    rows = select(
        tmp_path / "run",
        'SELECT file, sum(bytes), min("offset"), max("offset" + bytes) FROM events '
        "WHERE owner IN ('own', 'inode') AND op = 'write' AND NOT meta GROUP BY file",
    )
    known = (0, 4 << 20) if not is_direct else (None, None)
    assert (file.name, 4 << 20, *known) in rows
    if not is_direct:  # the counters know the file of direct requests at once, the trace by its extents
        assert sums_of(describe(tmp_path / "run"), file.name) == sums_of(counted, file.name)
    assert sum(row[0] for row in select(tmp_path / "run", "SELECT bytes FROM events")) == sum(
        row["bytes"] for row in counted["io_profile"]
    )


@pytest.mark.long
def test_offsets_of_split_requests(mounted: Loop, fio: Fio, mounted_watch: Watch, tmp_path: Path) -> None:
    """Pages of many folios that lie side by side are one element of a bio, and the device takes it in small pieces."""
    assert mounted.mount is not None
    limit = Path("/sys/block", mounted.block.name, "queue/max_sectors_kb")
    usual = limit.read_text()
    limit.write_text("20")
    file = mounted.mount / "split"
    options = {"rw": "write", "bs": "256k", "size": "4m", "ioengine": "psync", "end_fsync": 1}
    try:
        watch_whole(mounted_watch, lambda: fio(file, **options))
    finally:
        limit.write_text(usual)
    mounted_watch.write_trace(tmp_path / "run", [read_tree(mounted.mount)])
    pieces = select(
        tmp_path / "run", "SELECT \"offset\", bytes FROM events WHERE file = 'split' AND op = 'write' ORDER BY 1"
    )
    assert len(pieces) > (4 << 20) / (20 << 10)
    assert [offset for offset, _ in pieces] == [0, *accumulate(length for _, length in pieces[:-1])]


@pytest.mark.long
def test_flags_and_flushes(mounted: Loop, fio: Fio, mounted_watch: Watch, tmp_path: Path) -> None:
    assert mounted.mount is not None
    file = mounted.mount / "synced"
    options = {"rw": "write", "bs": "8k", "size": "256k", "ioengine": "psync", "fsync": 1}
    counted = watch_whole(mounted_watch, lambda: fio(file, **options))
    mounted_watch.write_trace(tmp_path / "run", [read_tree(mounted.mount)])
    traced = describe(tmp_path / "run")
    assert row_of(traced, "flush")["requests"] == row_of(counted, "flush")["requests"] > 0
    assert traced["unattributed_share"] == counted["unattributed_share"]
    for name in ("fua", "preflush", "journal_requests", "own_requests", "inode_requests"):
        assert row_of(traced, "write")[name] == row_of(counted, "write")[name], name
    assert select(
        tmp_path / "run", "SELECT count(*) FROM events WHERE op = 'flush' AND (pid IS NOT NULL OR bytes > 0)"
    ) == [(0,)]


@pytest.mark.long
def test_a_run_begins_with_an_empty_trace(loop: Loop, direct: Fio, watch: Watch, tmp_path: Path) -> None:
    for number in (300, 50):
        watch_whole(watch, lambda: direct(loop.node, rw="randwrite", bs="4k", number_ios=number))  # noqa: B023
    watch.write_trace(tmp_path / "run", [])
    assert select(tmp_path / "run", "SELECT count(*), min(ts_ns) >= 0 FROM events") == [(50, True)]


@pytest.mark.long
def test_nothing_is_lost_silently(
    loop: Loop, direct: Fio, watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What exceeds the length of a trace is counted, by time."""
    monkeypatch.setattr("knobscope.watch.recording.MAX_EVENTS", 100)
    watch_whole(watch, lambda: direct(loop.node, rw="randwrite", bs="4k", number_ios=1000))
    assert watch.write_trace(tmp_path / "run", []) == (100, 900)
    assert describe(tmp_path / "run")["lost_events"] == 900
    assert select(tmp_path / "run", "SELECT sum(recorded), sum(lost) FROM lost") == [(100, 900)]


def test_a_full_ring_is_counted(loop: Loop, direct: Fio, tmp_path: Path) -> None:
    """The ring holds 170,000 records; the monitor empties it once a minute here."""
    from knobscope.watch import monitor

    original = monitor._start
    slow: Callable[..., Any] = lambda command, errors: original([*command, "--interval-ms", "60000"], errors)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor, "_start", slow)
        with open_watch(loop.block, 4096, "device", trace=tmp_path / "traces") as opened:
            job = direct(loop.node, rw="randread", bs="512", iodepth=32, size="100m")
            counted = watch_jobs(opened, job)
            events, lost = opened.write_trace(tmp_path / "run", []) or (0, 0)
    requests = row_of(counted, "read")["requests"]
    assert requests == 100 << 11
    assert requests - counted["starts_without_completion"] <= events + lost <= requests
    assert lost > 0
    assert counted["lost_events"] == 0  # the counters know all of them


def test_procfs_has_no_trace(loop: Loop, tmp_path: Path) -> None:
    with open_watch(loop.block, 4096, "device", prefer="procfs", trace=tmp_path) as opened:
        assert opened.write_trace(tmp_path / "run", []) is None
