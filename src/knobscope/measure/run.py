"""One run: copy, start, read back, warm up, watch, measure, end, record."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from knobscope.devices import make_scattering_directory
from knobscope.generators import Connected, GeneratorError, LoadResult
from knobscope.measure.files import describe_files, describe_named
from knobscope.measure.load import start_load
from knobscope.measure.phases import PhaseClock
from knobscope.measure.steadiness import find_trend
from knobscope.measure.validity import RunFailedError, check_data, check_result
from knobscope.prepare import DiskRoom, Snapshot, copy_snapshot
from knobscope.servers import (
    Instance,
    Server,
    ServerFailedError,
    ask_instance,
    compare_effective,
    limit_memory,
    open_instance,
    read_tail,
)
from knobscope.specs import Dbms, Generator, Value, Workload
from knobscope.watch import FileTree, Watch, read_tree

__all__ = ["Bench", "measure_run"]

#: Beyond warm-up and measured time, until a client counts as stuck.
_GRACE_S = 30
#: Columns of `runs` that are keys of the profile.
_MONITOR_FACTS = (
    "lost_events",
    "starts_without_completion",
    "completions_without_start",
    "unattributed_share",
    "files_overflow",
    "addresses_overflow",
)
_TABLES = ("io_profile", "io_sizes", "queue_depth", "io_latency", "submitters")
_CALL_TABLES = ("syscalls", "io_modes")  # filled when the study asks for it, as are those by file
_FILE_TABLES = ("file_access", "faults")


@dataclass
class Bench:
    """What all runs of a block share."""

    dbms: Dbms
    workload: Workload
    scratch: Path
    watch: Watch
    generator: Generator | None = None  # of the workload, unless it is YCSB
    room: DiskRoom | None = None  # of the study
    traces: Path | None = None  # where each run's requests are written, in a directory of its own
    series: set[tuple[Any, ...]] = field(default_factory=set)  # of earlier runs, to find copied ones

    @property
    def begins_cold(self) -> bool:
        """Whether data leaves the page cache first: pages in memory already would not count for the limit."""
        return self.workload.cold or self.workload.memory_mib is not None

    @property
    def interval_ms(self) -> int:
        """Length of one interval: a second, or a quarter of a shorter window."""
        return 1000 if self.workload.measure_s >= 2 else int(self.workload.measure_s * 250)


def measure_run(bench: Bench, run_id: str, configuration: Mapping[str, Value], snapshot: Snapshot) -> dict[str, Any]:
    """Carry out one run and return its record: row `run` and rows of the other tables, without `run_id`.

    A run that fails is a record too: status and reason, with the DBMS's own last lines.
    """
    record: dict[str, Any] = {"run": {"started_at": datetime.now(UTC).replace(tzinfo=None).isoformat()}}
    clock = PhaseClock()
    try:
        with (
            copied_data(snapshot, bench.scratch / "runs" / run_id, cold=bench.begins_cold) as data,
            open_instance(bench.dbms, data, snapshot.password) as instance,
        ):
            clock.end("restore")
            trees = _carry_out(bench, instance, configuration, snapshot.tables, record, clock)
            clock.end("stop")
        if bench.traces:
            bench.watch.write_trace(bench.traces / run_id, trees)
        record["run"]["status"] = "ok"
    except RunFailedError as error:
        record["run"] |= {"status": error.status, "reason": str(error), "log_tail": error.log_tail}
    except ServerFailedError as error:
        record["run"] |= {"status": "failed_start", "reason": str(error), "log_tail": error.log_tail}
    except GeneratorError as error:
        record["run"] |= {"status": _status_of(error), "reason": str(error), "log_tail": error.log_tail}
    clock.end("clean")
    phases = clock.overhead(bench.workload.warmup_s + record["run"].get("window_s", 0))
    record["phases"] = [{"phase": phase, "seconds": seconds} for phase, seconds in phases.items()]
    record["run"]["overhead_s"] = round(sum(phases.values()), 3)
    return record


def _status_of(error: GeneratorError) -> str:
    return {"timeout": "timeout", "refused": "rejected_value"}.get(error.kind, "failed_run")


@contextlib.contextmanager
def copied_data(snapshot: Snapshot, directory: Path, *, cold: bool) -> Iterator[Path]:
    """Yield a copy of the snapshot that is on the device already; it is removed at the end."""
    shutil.rmtree(directory, ignore_errors=True)
    make_scattering_directory(directory.parent)
    directory.mkdir(mode=0o711)
    try:
        copy_snapshot(snapshot, directory / "data", cold=cold)
        yield directory / "data"
    finally:
        shutil.rmtree(directory)


def _carry_out(
    bench: Bench,
    instance: Instance,
    configuration: Mapping[str, Value],
    tables: Mapping[str, str],
    record: dict[str, Any],
    clock: PhaseClock,
) -> list[FileTree]:
    """Fill the record; return the files of the data directory before and after."""
    dbms, workload, log = bench.dbms, bench.workload, instance.runtime / "server.log"
    with ExitStack() as stack:
        server, limit = None, stack.enter_context(limit_memory(workload.memory_mib))
        if dbms.lifecycle is not None:
            server = stack.enter_context(Server(instance, dbms.lifecycle, configuration, log))
            limit.add(server.pid)
            server.wait_ready()
            clock.end("start")
        client = start_load(instance, workload, bench.generator, configuration, bench.interval_ms, limit)
        stack.enter_context(client)
        connected = client.wait_connected(_GRACE_S * 2)
        clock.end("connect")
        _check_knobs(instance, configuration, connected, record)
        bench.watch.follow([server.pid if server else client.root_pid])
        trees = [read_tree(instance.data)]  # during the warm-up: it costs the measured window nothing
        client.wait_measuring(workload.warmup_s + _GRACE_S)
        bench.watch.begin()
        client.wait_measured(workload.measure_s + _GRACE_S)
        clock.end("load")
        profile = bench.watch.end()
        trees.append(read_tree(instance.data))
        record["files"] = describe_files(profile, trees, dbms, tables)
        record |= {table: describe_named(profile.get(table, []), trees, dbms, tables) for table in _FILE_TABLES}
        if server is not None and not server.is_alive:
            raise RunFailedError("invalid", "the server died during the run", read_tail(log))
        _record_result(bench, client.result(), profile, record)
        clock.end("collect")
    return trees


def _check_knobs(
    instance: Instance, configuration: Mapping[str, Value], connected: Connected, record: dict[str, Any]
) -> None:
    effective = {**connected.effective, **ask_instance(instance)}
    rows, differing = compare_effective(instance.dbms, configuration, effective)
    record["effective_values"] = rows
    if differing or connected.disagree:
        asked = {row["knob"]: row for row in rows}
        words = [f"{name}={asked[name]['requested']} reads back {asked[name]['effective']}" for name in differing]
        words += [f"connections disagree: {knob}" for knob in connected.disagree]
        raise RunFailedError("invalid", "not in force: " + ", ".join(words))


def _record_result(bench: Bench, result: LoadResult, profile: Mapping[str, Any], record: dict[str, Any]) -> None:
    """Fill the record; raises RunFailedError when the result is not whole."""
    totals = result.operations["ALL"]
    cpu_s, window_s = profile["cpu_s"], result.window_s
    record["run"] |= {
        "window_s": window_s,
        "operations": totals["ok"],
        "failed_operations": totals["failed"],
        "throughput_ops": totals["ok"] / window_s,
        **{f"latency_{name}": totals[name] for name in ("mean_us", "p50_us", "p95_us", "p99_us")},
        "cpu_s": cpu_s,
        "cpu_share": None if cpu_s is None else cpu_s / profile["duration_s"] / (os.cpu_count() or 1),
        "monitor": profile["monitor"],
        "monitor_reason": bench.watch.reason,
        **{name: profile[name] for name in _MONITOR_FACTS},
    }
    record["operations"] = [
        {
            "operation": name,
            "ok": one["ok"],
            "failed": one["failed"],
            "retried": one.get("retried"),
            "per_minute": 60 * one["ok"] / window_s,
            **{f"latency_{key}": one[key] for key in ("mean_us", "p50_us", "p95_us", "p99_us")},
        }
        for name, one in result.operations.items()
        if name != "ALL"
    ]
    record["intervals"] = [
        {
            "t_s": row["t_s"],
            "ops": row["ops"],
            "failed": row["failed"],
            "latency_p95_us": row["p95_us"],
            "latency_p99_us": row["p99_us"],
        }
        for row in result.intervals
        if row["op"] == "ALL" and row["t_s"] > 0
    ]
    if trend := find_trend([row["ops"] for row in record["intervals"]]):
        record["run"] |= {
            "window_change": trend.change,
            "window_trend_p": trend.p_value,
            "window_steady": trend.is_steady,
        }
    record |= {table: profile[table] for table in _TABLES}
    record |= {table: profile[table] for table in _CALL_TABLES if table in profile}
    record["io_series"] = profile["series"]
    record["checks"] = [
        {"condition": one["name"], "holds": one["holds"], "detail": one["detail"]} for one in result.checks
    ]
    expected = round(window_s * 1000 / bench.interval_ms)
    check_data(result.checks)
    check_result(totals, record["intervals"], expected, bench.series)
