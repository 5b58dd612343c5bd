"""Tables of measured runs: their outcome, and what load client and DBMS said."""

from typing import Annotated, TypedDict

from knobscope.tables.declaring import CaseColumns, Count, Integer, Real, RunColumns, Text, Time, Truth

#: What stands for the block in `block_id` where a table that others measured tells of no blocks.
NO_BLOCK = "(none)"


class MonitorFacts(TypedDict, total=False):
    """What the monitor says of its own counting; NULL where totals of procfs had to do."""

    lost_events: Annotated[Count | None, "Events that found the kernel's buffer full."]
    starts_without_completion: Annotated[Count | None, "Requests that were issued in the window and not seen to end."]
    completions_without_start: Annotated[Count | None, "Requests that ended in the window and were not seen to begin."]
    unattributed_share: Annotated[Real | None, "Share of the data requests (all but flushes) of unknown origin."]
    files_overflow: Annotated[Count | None, "Requests of more files than the monitor can count apart."]
    addresses_overflow: Annotated[Count | None, "Requests whose file and address both found no room."]
    hidden_completions: Annotated[
        Count | None, "Requests whose end no program saw: they count as in flight until their tag is used again."
    ]
    depth_excess: Annotated[
        Real | None, "By how much the mean depth may be too high, at most, because ends or issues were not seen."
    ]
    depth_shortfall: Annotated[
        Real | None,
        "By how much the mean depth may be too low, at most: a request that ended unseen also lengthens the busy time.",
    ]
    busy_error: Annotated[
        Real | None, "By how much the busy share of the window may be wrong, at most, for the same reasons; 0 to 1."
    ]
    missed_events: Annotated[
        Count | None, "Events, of any device, that a program missed because it was interrupted by itself."
    ]
    unwritten_bytes: Annotated[
        Count | None,
        "Bytes that the DBMS left in the page cache when the window ended, not yet written; at most. 0 where all of "
        "its files were written. Not counted on btrfs.",
    ]


class ClientFacts(TypedDict, total=False):
    """The machine that the load came from, when it was another one than the DBMS's; else NULL."""

    client_host: Annotated[Text | None, "Machine that the load came from, as `client` of the study names it."]
    client_machine: Annotated[Text | None, "Kernel, processor and memory of that machine."]
    client_round_trip_us: Annotated[
        Real | None,
        "Time of a byte from that machine through the tunnel to this one and back, before the run (median): every "
        "latency has at least that much in it that is not the DBMS's.",
    ]
    client_clock_offset_us: Annotated[Real | None, "By how much its clock was ahead of this one's before the run."]
    client_clock_error_us: Annotated[Real | None, "By how much that may be wrong at most: half of a round trip."]
    client_clock_change_us: Annotated[Real | None, "By how much more it was ahead after the run."]


class RunRow(RunColumns, CaseColumns, MonitorFacts, ClientFacts, total=False):
    """All runs of the study, also those that failed: what ran, how it ended, and its figures."""

    study: Annotated[Text, "Name of the study."]
    block_id: Annotated[
        Text,
        "Block: dbms/device/workload/phase-round-number; of an imported table dbms/device/workload/NAME, which ends in "
        "`(none)` where the table tells of no blocks.",
    ]
    phase: Annotated[Text, "`screen`, `sweep` or `tune`."]
    round: Annotated[Integer, "Round of the phase, from 0."]
    position: Annotated[Integer, "Position in the order of its block, from 0."]
    dbms_version: Annotated[Text, "Version that the DBMS told when its data was loaded."]
    tier: Annotated[Text, "Storage class of the device."]
    workload_class: Annotated[Text, "`read` or `write`, what dominates the workload."]
    config_id: Annotated[Text, "Configuration; equal settings have equal ids. See `knob_values`."]
    is_sentinel: Annotated[Truth, "Whether it is a run of the default configuration inside a block."]
    repeat: Annotated[Integer, "Number of the repetition of its configuration, from 0."]
    status: Annotated[Text, "`ok`, `failed_start`, `failed_run`, `rejected_value`, `timeout` or `invalid`."]
    reason: Annotated[Text | None, "Why it failed; NULL for `ok`."]
    log_tail: Annotated[Text | None, "Last lines of the server or of the load generator, when it failed."]
    disturbance: Annotated[
        Text | None, "What seems to have ended it from outside, though the default configuration ran well after it."
    ]
    first_failure: Annotated[
        Text | None,
        "Status and reason of a first attempt that failed, where the second one succeeded and nothing outside seems to "
        "have ended the first; else NULL.",
    ]
    started_at: Annotated[Time, "When it began (UTC)."]
    machine: Annotated[Text, "Kernel, processor and memory of the machine."]
    session: Annotated[
        Text,
        "Begin of the session that measured it; a block that was resumed later has several. Of an imported run its "
        "column `session` after `imported`, or else `imported`, with the first start or run of the session where a "
        "series has several.",
    ]
    window_s: Annotated[Real, "Length of the measured window."]
    window_change: Annotated[
        Real | None, "Change of throughput from begin to end of the window, as a share of its median."
    ]
    window_trend_p: Annotated[
        Real | None, "p value: that there is no trend in the window; NULL: too few intervals to tell."
    ]
    window_steady: Annotated[Truth | None, "Whether that change is small, or could be chance."]
    window_late_s: Annotated[
        Real | None, "By how much longer than requested the window lasted; NULL where a number of requests is its end."
    ]
    window_pause_s: Annotated[
        Real | None, "Longest time, in whole intervals, in which no operation ended; NULL: too few operations to tell."
    ]
    window_halves: Annotated[
        Real | None, "Operations of the second half of the window by those of the first; NULL: too few to tell."
    ]
    overhead_s: Annotated[Real, "Time of the run outside warm-up and measured window."]
    operations: Annotated[Count, "Operations of the window that succeeded."]
    failed_operations: Annotated[Count, "Operations of the window that failed."]
    throughput_ops: Annotated[Real, "Successful operations per second."]
    latency_mean_us: Annotated[Real | None, "Mean latency of a successful operation."]
    latency_p50_us: Annotated[Real | None, "Median latency."]
    latency_p95_us: Annotated[Real | None, "95th percentile of latency."]
    latency_p99_us: Annotated[Real | None, "99th percentile of latency."]
    cpu_s: Annotated[Real | None, "CPU time of the DBMS in the window; of an embedded one, with its load client."]
    cpu_share: Annotated[Real | None, "That CPU time as a share of all cores over the window."]
    machine_cpu_share: Annotated[
        Real | None,
        "Share of all cores' time in the window in which anything ran on the DBMS's machine: also the load client and "
        "a modelled device. Time that the host of a virtual machine took away counts.",
    ]
    other_cpu_share: Annotated[
        Real | None,
        "Share of all cores' time in the window that programs took which have no part in the run: neither DBMS, load "
        "client, monitor nor modelled device. Also time that the host of a virtual machine took away. Programs that "
        "are not in /proc, such as those of other containers, are missing.",
    ]
    other_programs: Annotated[Text | None, "The largest of these with their shares."]
    other_measurements: Annotated[
        Count | None,
        "Other processes of knobscope that had a disk of this machine for themselves, to measure or to load data, "
        "shortly before or at the end of the window, the greater of both. Each may have slowed the other down.",
    ]
    recovery_s: Annotated[
        Real | None,
        "Time from the start of the server, killed after the window, until it answers again; NULL where the study does "
        "not ask for it (`measure: [recovery]`), and for a DBMS that lives in its client.",
    ]
    lost_writes: Annotated[
        Count | None,
        "Rows that the server had acknowledged before it was killed, and does not have afterwards. NULL also where the "
        "load is not YCSB's, or comes from another machine.",
    ]
    lost_s: Annotated[
        Real | None, "Time from the acknowledgement of the first of them until the server was gone; 0 for none."
    ]
    monitor: Annotated[Text, "`bpf`: every request was counted in the kernel; `procfs`: totals only."]
    monitor_reason: Annotated[Text | None, "Why only procfs was available."]
    aligned_to_bytes: Annotated[
        Count | None,
        "Size of whose multiples a request is aligned in `io_profile`; NULL: nobody recorded it. Where the device's "
        "profile prefers another one by now, the database has no aligned requests of the run.",
    ]
    waits_s: Annotated[
        Real | None,
        "Time over which table `waits` counted: about that of the window; NULL: waits were not watched.",
    ]
    lost_waits: Annotated[
        Count | None,
        "Threads, times, files, stacks and events that table `waits` and those like it lack; NULL: waits were not "
        "watched.",
    ]
    lost_calls: Annotated[
        Count | None,
        "Calls, files, page faults and events that tables `syscalls`, `io_modes`, `file_access` and `faults` lack; "
        "NULL: neither was watched.",
    ]


class PhaseRow(RunColumns, total=False):
    """Where the time of a run went outside warm-up and window, in this order."""

    phase: Annotated[
        Text,
        "`restore`, `start`, `connect`, `load` (what warm-up and window took beyond their lengths), `collect`, "
        "`witness`, `stop`, `recover` (first and third of these where recovery is measured) or `clean`.",
    ]
    seconds: Annotated[Real, "Time spent in it, in seconds."]


class EffectiveValueRow(RunColumns, total=False):
    """What was asked of each knob in a run, and what the DBMS said is in force.

    It is asked before the load and, where a connection of the load client can be asked, again after the window: a run
    in which a value has changed by then is invalid.
    """

    knob: Annotated[Text, "Knob."]
    requested: Annotated[Text, "Value that was asked for, as the DBMS writes it."]
    effective: Annotated[Text | None, "Value that the DBMS told; NULL where it cannot be asked."]


class IntervalRow(RunColumns, total=False):
    """Throughput and latency of a run over time, by interval of a second or less."""

    t_s: Annotated[Real, "End of the interval, from the start of the window."]
    ops: Annotated[Count, "Operations of the interval that succeeded."]
    failed: Annotated[Count, "Operations of the interval that failed."]
    latency_p95_us: Annotated[Real | None, "95th percentile of latency in the interval."]
    latency_p99_us: Annotated[Real | None, "99th percentile of latency in the interval."]


class OperationRow(RunColumns, total=False):
    """Figures of a run by kind of operation: READ, UPDATE, ... of YCSB, transactions of TPC-C, queries of TPC-H."""

    operation: Annotated[Text, "Kind of operation."]
    ok: Annotated[Count, "Operations that succeeded."]
    failed: Annotated[Count, "Operations that failed."]
    retried: Annotated[
        Count | None, "Attempts that were repeated because they conflicted with others; NULL where not known."
    ]
    per_minute: Annotated[Real, "Successful ones per minute; of NEW_ORDER what TPC-C calls tpmC."]
    latency_mean_us: Annotated[Real | None, "Mean latency of the successful ones."]
    latency_p50_us: Annotated[Real | None, "Median latency."]
    latency_p95_us: Annotated[Real | None, "95th percentile of latency."]
    latency_p99_us: Annotated[Real | None, "99th percentile of latency."]


class StatementRow(RunColumns, total=False):
    """Statements of a run by table: as the load client sent them, and as the server counted their rows."""

    source: Annotated[
        Text,
        "`client`: the load client counted, also transactions that were repeated or rolled back; `server`: the server "
        "did, in the window as exactly as it publishes its counters (PostgreSQL once a second).",
    ]
    operation: Annotated[Text | None, "Transaction or query that they belong to; NULL: the server knows none."]
    table_name: Annotated[Text, "Table; a statement about several tables counts for each."]
    statement: Annotated[Text, "`select`, `insert`, `update` or `delete`."]
    calls: Annotated[Count | None, "Statements; NULL: the server counts rows only."]
    rows: Annotated[
        Count,
        "Rows that they returned, or changed. For the server `select` are rows that it fetched, also to change them, "
        "to join them or to compute with them.",
    ]


class CheckRow(RunColumns, total=False):
    """What the data was checked for after the run; one condition that does not hold makes the run invalid."""

    condition: Annotated[Text, "Condition."]
    holds: Annotated[Truth, "Whether it holds."]
    detail: Annotated[Text | None, "What was found."]


RUNS_TABLES: dict[str, type] = {
    "runs": RunRow,
    "phases": PhaseRow,
    "effective_values": EffectiveValueRow,
    "intervals": IntervalRow,
    "operations": OperationRow,
    "statements": StatementRow,
    "checks": CheckRow,
}
