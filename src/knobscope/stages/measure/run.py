"""One run: copy, start, read back, warm up, watch, measure, end, record."""

import contextlib
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from knobscope.devices import (
    BlockDevice,
    OpenDevice,
    SettingLostError,
    SettingRefusedError,
    changed_mounts,
    changed_queue,
    count_other_users,
    make_scattering_directory,
    read_filesystem,
)
from knobscope.generators import LoadResult, SessionOperation
from knobscope.processes import find_service_user, make_shared_directory, number_threads
from knobscope.servers import (
    Instance,
    Server,
    count_rows,
    limit_memory,
    open_instance,
)
from knobscope.specs import (
    ClientHost,
    Dbms,
    Generator,
    Value,
    Workload,
    kernel_knob,
    split_configuration,
    split_kernel,
)
from knobscope.stages.measure.complaints import tell_complaints
from knobscope.stages.measure.disturbance import notice_disturbance, telling_of_limit
from knobscope.stages.measure.elsewhere import reach_client_machine
from knobscope.stages.measure.file_roles import list_files, name_rows, sum_waits_by_file
from knobscope.stages.measure.in_force import check_knobs, check_knobs_again
from knobscope.stages.measure.layout import group_trees, list_layout_io, moved_parts, read_trees
from knobscope.stages.measure.load import start_load
from knobscope.stages.measure.operation_io import find_session_question, list_operation_io, locate_sessions
from knobscope.stages.measure.phases import PhaseClock
from knobscope.stages.measure.recovery import Crash, open_crash
from knobscope.stages.measure.statements import list_statements
from knobscope.stages.measure.validity import RunFailedError, check_data, check_result, check_watched, check_window
from knobscope.stages.measure.window import requested_window, share_of_window
from knobscope.stages.prepare import DiskRoom, Snapshot, copy_snapshot
from knobscope.statistics.steadiness import summarise_window
from knobscope.tables import (
    EffectiveValueRow,
    MonitorFacts,
    OperationRow,
    RunRecord,
    RunRow,
    select_columns,
)
from knobscope.thread_classes import OURS
from knobscope.watch import (
    FileTree,
    OtherPrograms,
    Profile,
    Watch,
    describe_others,
    make_wait_columns,
    sum_shares,
    sum_waits,
)

#: The processes that keep a server or client in its namespaces are followed with it: class -> their titles.
_OWN_THREADS = {OURS: re.escape(str(Path(__file__).parents[2]))}
#: Beyond warm-up and measured time, until a client counts as stuck.
_GRACE_S = 30


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
    device: str = ""  # that of the data, by its name
    blocks: Sequence[BlockDevice] = ()  # all that the case uses, that of the data first
    layout: Mapping[str, OpenDevice] = field(default_factory=dict)  # other devices, for parts of the data
    client: ClientHost | None = None  # where YCSB's client runs, unless it is here
    measures_recovery: bool = False  # after the window
    counts_statements: bool = False  # by the server
    unit: int | None = None  # by which requests are aligned, in bytes
    helpers: Sequence[int] = ()  # processes that answer for modelled devices, whose children do so too
    series: set[tuple[Any, ...]] = field(default_factory=set)  # of earlier runs, to find copied ones

    @property
    def begins_cold(self) -> bool:
        """Whether data leaves the page cache first: pages in memory already would not count for the limit."""
        return self.workload.cold or self.workload.memory_mib is not None

    @property
    def interval_ms(self) -> int:
        """Length of one interval."""
        return int(self.workload.interval_s * 1000)


def measure_run(bench: Bench, run_id: str, configuration: Mapping[str, Value], snapshot: Snapshot) -> RunRecord:
    """Carry out one run and return its record: row `run` and rows of the other tables, without `run_id`.

    A run that fails is a record too: status and reason, with the DBMS's own last lines.
    """
    kernel, other_values = split_kernel(configuration)
    workload, knobs, factors = split_configuration(bench.workload, other_values)
    bench = replace(bench, workload=workload)
    record: RunRecord = {"run": {"started_at": now_text()}}
    clock = PhaseClock()
    try:
        with (
            _kernel_in_force(bench, kernel) as kernel_rows,
            copied_data(snapshot, bench.scratch / "runs" / run_id, cold=bench.begins_cold) as data,
            moved_parts(bench.dbms, knobs, snapshot, data, bench.layout, cold=bench.begins_cold) as homes,
            open_instance(bench.dbms, data, snapshot.password, homes) as instance,
            _crash_of(bench, instance, knobs) as crash,
        ):
            clock.end("restore")
            with tell_complaints(instance):
                trees, served = _carry_out(bench, instance, knobs, snapshot.tables, record, clock, crash)
            clock.end("stop")
            if crash is not None:
                record["run"] |= crash.recover()
                clock.end("recover")
        if bench.traces:
            trace = bench.traces / run_id
            is_traced = bench.watch.write_trace(trace, group_trees(trees, bench.layout)[None], served) is not None
            record["operation_io"] = list_operation_io(trace, record) if is_traced and served else []
        # The load generator was started with these, whatever it is.
        factor_values = {name: bench.dbms.write(value) for name, value in factors.items()}
        record["effective_values"] += [
            {"knob": name, "requested": value, "effective": value} for name, value in factor_values.items()
        ]
        record["effective_values"] += kernel_rows
        record["run"]["status"] = "ok"
    except RunFailedError as error:
        failure: RunRow = {"status": error.status, "reason": str(error), "log_tail": error.log_tail}
        record["run"] |= {**failure, "disturbance": error.disturbance}
    clock.end("clean")
    phases = clock.overhead(bench.workload.warmup_s + record["run"].get("window_s", 0))
    record["phases"] = [{"phase": phase, "seconds": seconds} for phase, seconds in phases.items()]
    record["run"]["overhead_s"] = round(sum(phases.values()), 3)
    return record


@contextlib.contextmanager
def _kernel_in_force(bench: Bench, kernel: Mapping[str, Mapping[str, Value]]) -> Iterator[list[EffectiveValueRow]]:
    """Set queues and mounts of the devices until the end of the run; yield them and the file system as read back."""
    queue, mount = (kernel.get(family, {}) for family in ("queue", "mount"))
    directories = [bench.scratch, *(opened.directory for opened in bench.layout.values())]
    try:
        with changed_queue(bench.blocks, queue) as in_queue, changed_mounts(directories, mount) as in_mount:
            made = read_filesystem(bench.scratch, kernel.get("filesystem", {}))
            effective: dict[str, Mapping[str, object]] = {"queue": in_queue, "mount": in_mount, "filesystem": made}
            yield [
                {
                    "knob": kernel_knob(family, name),
                    "requested": str(value),
                    "effective": str(effective[family][name]),
                }
                for family, settings in kernel.items()
                for name, value in settings.items()
            ]
    except SettingRefusedError as error:
        raise RunFailedError("rejected_value", str(error)) from error
    except SettingLostError as error:
        raise RunFailedError("invalid", f"not in force: {error}", disturbance=str(error)) from error


@contextlib.contextmanager
def _crash_of(bench: Bench, instance: Instance, knobs: Mapping[str, Value]) -> Iterator[Crash | None]:
    """Yield what follows the window where the study asks for it; None for a DBMS that lives in its client."""
    if not bench.measures_recovery or bench.dbms.lifecycle is None:
        yield None
        return
    is_ycsb_here = bench.generator is None and bench.client is None
    with open_crash(instance, bench.dbms.lifecycle, knobs, bench.workload, is_ycsb_here=is_ycsb_here) as crash:
        yield crash


def now_text() -> str:
    """Return the time (UTC) as table `runs` holds it."""
    return datetime.now(UTC).replace(tzinfo=None).isoformat()


@contextlib.contextmanager
def copied_data(snapshot: Snapshot, directory: Path, *, cold: bool) -> Iterator[Path]:
    """Yield a copy of the snapshot that is on the device already; it is removed at the end."""
    shutil.rmtree(directory, ignore_errors=True)
    make_scattering_directory(directory.parent)
    make_shared_directory(directory, find_service_user())
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
    record: RunRecord,
    clock: PhaseClock,
    crash: Crash | None,
) -> tuple[list[FileTree], list[SessionOperation]]:
    """Fill the record; return the files of the data before and after, and the operations of a run that is traced.

    The server is killed at the end.
    """
    dbms, workload, log = bench.dbms, bench.workload, instance.runtime / "server.log"
    with ExitStack() as stack:
        server, limit = None, stack.enter_context(limit_memory(workload.memory_mib))
        stack.callback(bench.watch.abandon)  # before the limit, whose group has to be empty
        stack.enter_context(telling_of_limit(limit))
        if dbms.lifecycle is not None:
            counters = dbms.statements.start if bench.counts_statements and dbms.statements else []
            server = stack.enter_context(Server(instance, dbms.lifecycle, configuration, log, counters))
            limit.add(server.pid)
        stack.enter_context(notice_disturbance(instance, server, limit))
        if server is not None:
            server.wait_ready()
            clock.end("start")
        # Before there is a client: they cost the measured window nothing.
        trees, others = read_trees(instance), count_other_users()
        elsewhere = stack.enter_context(reach_client_machine(bench.client, instance, record["run"]))
        # The clock of another machine is not that of the trace.
        question = find_session_question(dbms, workload) if bench.traces and elsewhere is None else None
        client = start_load(
            instance,
            workload,
            bench.generator,
            configuration,
            bench.interval_ms,
            limit,
            elsewhere,
            session_thread=question,
        )
        stack.enter_context(client)
        connected = client.wait_connected(_GRACE_S * 2)
        clock.end("connect")
        check_knobs(instance, configuration, connected, bench.scratch, bench.layout, record)
        root = server.pid if server else client.root_pid
        threads = number_threads(root) if question is not None else {}
        bench.watch.follow([root])
        measuring_ns = client.wait_measuring(workload.warmup_s + _GRACE_S)
        bench.watch.begin()
        late_s = (time.time_ns() - measuring_ns) / 1e9
        other_programs = OtherPrograms([os.getpid(), *bench.helpers])
        before = count_rows(instance) if bench.counts_statements else Counter()
        client.wait_measured(workload.measure_s + _GRACE_S)
        clock.end("load")
        profile, record["run"]["other_measurements"] = bench.watch.end(), max(others, count_other_users())
        record["run"] |= _describe_others(other_programs)
        after = count_rows(instance) if bench.counts_statements else Counter()
        trees += read_trees(instance)
        _record_files(bench, profile, trees, tables, record)
        if server is not None and not server.is_alive:
            raise RunFailedError("invalid", "the server died during the run", server.quote())
        result = client.result()
        check_watched(late_s, result.window_s)
        record["statements"] = list_statements(result.statements, before, after, workload)
        _record_result(bench, result, profile, record)
        check_knobs_again(instance, configuration, result.effective, record)
        clock.end("collect")
        if crash is not None:
            crash.write()
            clock.end("witness")
    return trees, locate_sessions(result.sessions, threads, dbms)


def _record_files(
    bench: Bench, profile: Profile, trees: Sequence[FileTree], tables: Mapping[str, str], record: RunRecord
) -> None:
    dbms, grouped = bench.dbms, group_trees(trees, bench.layout)
    record["files"] = list_files(profile, grouped[None], dbms, tables)
    for device, device_profile in profile.get("elsewhere", {}).items():
        record["files"] += list_files(device_profile, grouped[device], dbms, tables)
    record["file_access"] = [*name_rows(profile.get("file_access", []), trees, dbms, tables)]
    record["faults"] = [*name_rows(profile.get("faults", []), trees, dbms, tables)]
    record["wait_files"] = sum_waits_by_file(profile.get("wait_files", []), trees, dbms, tables)


def _describe_others(programs: OtherPrograms) -> RunRow:
    shares = programs.list_shares()
    return {"other_cpu_share": sum_shares(shares), "other_programs": describe_others(shares)}


def _record_result(bench: Bench, result: LoadResult, profile: Profile, record: RunRecord) -> None:
    """Fill the record; raises RunFailedError when the result is not whole."""
    totals = result.operations["ALL"]
    cpu_s, window_s = profile["cpu_s"], result.window_s
    record["run"] |= {
        "window_s": window_s,
        "operations": totals["ok"],
        "failed_operations": totals["failed"],
        "throughput_ops": totals["ok"] / window_s,
        "latency_mean_us": totals["mean_us"],
        "latency_p50_us": totals["p50_us"],
        "latency_p95_us": totals["p95_us"],
        "latency_p99_us": totals["p99_us"],
        "cpu_s": cpu_s,
        "cpu_share": None if cpu_s is None else cpu_s / min(profile["duration_s"], window_s) / (os.cpu_count() or 1),
        "machine_cpu_share": share_of_window(profile["machine_cpu_share"], profile, window_s),
        "monitor": profile["monitor"],
        "monitor_reason": bench.watch.reason,
        "aligned_to_bytes": bench.unit,
    }
    record["run"] |= {"lost_calls": _count_lost_calls(profile)}
    record["run"] |= select_columns(RunRow, MonitorFacts.__annotations__, profile)
    record["layout_io"] = list_layout_io(profile, bench.device, window_s)
    record["operations"] = [
        _operation_row(name, figures, window_s) for name, figures in result.operations.items() if name != "ALL"
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
    ends, counts = [row["t_s"] for row in record["intervals"]], [row["ops"] for row in record["intervals"]]
    record["run"] |= cast("RunRow", summarise_window(ends, counts))
    _record_profile(profile, record)
    classes = {**_OWN_THREADS, **bench.dbms.threads}
    record["run"] |= make_wait_columns(profile, classes, window_s)
    record["waits"], record["wait_chains"] = sum_waits(profile, classes)
    record["checks"] = [
        {"condition": check["name"], "holds": check["holds"], "detail": check["detail"]} for check in result.checks
    ]
    requested_s = requested_window(bench.workload, bench.generator)
    if requested_s is not None:
        record["run"]["window_late_s"] = max(0.0, window_s - requested_s)
        longest_s = 0.0 if bench.generator is None else (totals["max_us"] or 0.0) / 1e6
        check_window(window_s, requested_s, longest_s)
    expected = window_s / (result.interval_s or bench.interval_ms / 1000)
    check_data(result.checks)
    limit, first_failure = bench.workload.max_failed_share, result.first_failure
    check_result(totals, record["intervals"], expected, bench.series, limit, first_failure)


def _count_lost_calls(profile: Profile) -> int | None:
    losses = [profile[name] for name in ("lost_syscalls", "lost_faults") if name in profile]
    return sum(sum(lost.values()) for lost in losses) if losses else None


def _operation_row(name: str, counted: Mapping[str, Any], window_s: float) -> OperationRow:
    return {
        "operation": name,
        "ok": counted["ok"],
        "failed": counted["failed"],
        "retried": counted.get("retried"),
        "per_minute": 60 * counted["ok"] / window_s,
        "latency_mean_us": counted["mean_us"],
        "latency_p50_us": counted["p50_us"],
        "latency_p95_us": counted["p95_us"],
        "latency_p99_us": counted["p99_us"],
    }


def _record_profile(profile: Profile, record: RunRecord) -> None:
    """Take over the tables of the profile that need no names of files; those of probes are missing when not asked."""
    record["io_profile"], record["io_sizes"] = profile["io_profile"], profile["io_sizes"]
    record["queue_depth"], record["io_latency"] = profile["queue_depth"], profile["io_latency"]
    record["submitters"], record["io_series"] = profile["submitters"], profile["series"]
    record["wait_stacks"] = profile.get("wait_stacks", [])
    record["syscalls"], record["io_modes"] = profile.get("syscalls", []), profile.get("io_modes", [])
