"""Tables of what the device saw in a run."""

from typing import Annotated, TypedDict

from knobscope.tables.declaring import Count, Integer, Real, RunColumns, Text, Unsigned


class OrderColumns(TypedDict, total=False):
    """In which order a file is read or written."""

    sequential_share: Annotated[
        Real | None, "Share of its requests (or calls) that belong to a stream, as in `io_profile`."
    ]
    append_share: Annotated[
        Real | None,
        "Share of its writes, sequential or not, that begin at the end of what was written, or in the last 8 KiB "
        "before, and reach it; NULL for reads.",
    ]
    strided_share: Annotated[
        Real | None, "Share that is one of three or more at equal distances, neither sequential nor an append."
    ]
    random_share: Annotated[Real | None, "Share that is none of these."]
    pattern: Annotated[
        Text | None,
        "What first has a share of 0.8 or more: `sequential`, `append`, `strided` or `random`; `mixed` when none has, "
        "`few` below 10; "
        "NULL: not known.",
    ]


class IoProfileRow(RunColumns, total=False):
    """Block requests of a run by operation, and whose they are: five parts that add up to all.

    On a dedicated device everything counts as the DBMS's doing; elsewhere what it submitted, what was written back from
    its files, and flushes. NULL is what procfs cannot know.
    """

    op: Annotated[Text, "`read`, `write`, `discard` or `flush`."]
    requests: Annotated[Count | None, "Requests of the DBMS, counted once each, when they are first issued."]
    bytes: Annotated[Count | None, "Bytes of these requests."]
    aligned_requests: Annotated[
        Count | None, "Requests whose address and length are multiples of the preferred write unit of the device."
    ]
    aligned_share: Annotated[Real | None, "The same as a share of the requests."]
    sequential_requests: Annotated[
        Count | None, "Requests of a stream: at least three in a row, each near the end of the one before."
    ]
    sequential_bytes: Annotated[
        Count | None, "Bytes of these; the first ones of a stream count as many as the one by which it was known."
    ]
    sequential_share: Annotated[Real | None, "The same as a share of the requests."]
    append_requests: Annotated[
        Count | None,
        "Writes that begin at the end of what was written of their file, or in the last 8 KiB before, and "
        "reach it, sequential or not.",
    ]
    fua: Annotated[Count | None, "Writes that must be on the medium before they end (FUA)."]
    preflush: Annotated[Count | None, "Requests that ask for a flush of the device's cache first."]
    sync: Annotated[Count | None, "Requests that somebody waits for."]
    meta: Annotated[Count | None, "Requests for the file system's own data."]
    merges: Annotated[
        Count | None,
        "Bios that became part of a request under way. NULL, as are `splits`, where not all requests of the device "
        "count: whose bios these are is not known.",
    ]
    splits: Annotated[Count | None, "Bios that were too large for one request."]
    own_requests: Annotated[Count | None, "Part: submitted by the processes of the DBMS."]
    own_bytes: Annotated[Count | None, "Bytes of these."]
    inode_requests: Annotated[Count | None, "Part: written back from a file that they dirtied."]
    inode_bytes: Annotated[Count | None, "Bytes of these."]
    journal_requests: Annotated[Count | None, "Part: the file system's journal and metadata."]
    journal_bytes: Annotated[Count | None, "Bytes of these."]
    flush_requests: Annotated[Count | None, "Part: flushes."]
    flush_bytes: Annotated[Count | None, "Bytes of these."]
    foreign_requests: Annotated[Count | None, "Part: of others, or of nobody known."]
    foreign_bytes: Annotated[Count | None, "Bytes of these."]
    device_requests: Annotated[Count | None, "All requests that the device saw, whoever asked."]
    device_bytes: Annotated[Count | None, "Bytes of these."]


class IoSizeRow(RunColumns, total=False):
    """How many requests of which size a run made."""

    op: Annotated[Text, "`read`, `write`, `discard` or `flush`."]
    bytes: Annotated[Count, "Size of a request."]
    requests: Annotated[Count, "Requests of that size."]


class QueueDepthRow(RunColumns, total=False):
    """How long how many requests were in flight, by hardware queue."""

    queue: Annotated[Integer, "Hardware queue; -1 is the whole device."]
    depth: Annotated[Integer, "Requests in flight; 0 is idle time."]
    time_ns: Annotated[Count, "Time at that depth."]


class IoLatencyRow(RunColumns, total=False):
    """Histogram of the time from issue to completion of a request."""

    op: Annotated[Text, "`read`, `write`, `discard` or `flush`."]
    low_us: Annotated[Real, "Lower end of the bucket."]
    high_us: Annotated[Real, "Upper end of the bucket."]
    requests: Annotated[Count, "Requests in the bucket."]


class IoSeriesRow(RunColumns, total=False):
    """Requests of a run over time, by interval of 100 ms and operation."""

    t_s: Annotated[Real, "End of the interval, from the start of the window."]
    op: Annotated[Text, "`read`, `write`, `discard` or `flush`."]
    requests: Annotated[Count, "Requests that were issued."]
    bytes: Annotated[Count, "Bytes of these."]
    depth: Annotated[Real | None, "Mean number of requests in flight, of all operations."]
    latency_mean_us: Annotated[Real | None, "Mean latency of the requests that ended."]


class FileRow(RunColumns, OrderColumns, total=False):
    """All requests of a run by file, flushes apart; what belongs to no file has a word instead of a path."""

    file: Annotated[
        Text,
        "Path below the data directory, or its last part where no more is known; `journal`, `metadata`, `device` or "
        "`unknown` for what belongs to no file.",
    ]
    role: Annotated[
        Text,
        "`data`, `log`, `temp`, `other`, `journal`, `metadata` or `unknown`; on a shared device the last also for a "
        "file that was found in no directory of the data and fits no pattern of the spec: it may be another program's.",
    ]
    table_name: Annotated[Text | None, "Table in the file; NULL where it holds none, or several."]
    device: Annotated[Text | None, "File system, as MAJ:MIN."]
    inode: Annotated[Unsigned | None, "Inode of the file."]
    op: Annotated[Text, "`read`, `write` or `discard`."]
    requests: Annotated[Count, "Requests."]
    bytes: Annotated[Count, "Bytes of these."]
    address_requests: Annotated[
        Count, "Requests that were found by their address on the disk; their order is not in the following columns."
    ]
    sequential_requests: Annotated[Count | None, "Requests that belong to a stream."]


#: What `operation_io` calls requests that belong to no operation.
BACKGROUND = "background"


class OperationIoRow(RunColumns, total=False):
    """Requests of a traced run by transaction or query; those of a run add up to all that its trace has.

    A request belongs to the operation during which the thread that serves its session submitted it.
    """

    operation: Annotated[
        Text,
        "Transaction or query, as in `operations`; `background`: submitted by a thread that serves no session, by "
        "nobody, or between two operations.",
    ]
    transactions: Annotated[
        Count, "How many of these operations succeeded in the window; of `background`, those of all kinds together."
    ]
    file: Annotated[
        Text | None,
        "Path below the data directory; `journal` for the file system's journal and metadata, or `unknown`. NULL for a "
        "flush.",
    ]
    role: Annotated[Text | None, "`data`, `log`, `temp`, `other`, `journal` or `unknown`, as in `files`."]
    table_name: Annotated[Text | None, "Table in the file; NULL where it holds none, or several."]
    op: Annotated[Text, "`read`, `write`, `discard` or `flush`."]
    requests: Annotated[Count, "Requests."]
    bytes: Annotated[Count, "Bytes of these."]


class LayoutIoRow(RunColumns, total=False):
    """What each device of a layout was asked for.

    All other tables of requests, `files` apart, tell of the device of the data. Empty in a study without a layout.
    """

    device: Annotated[Text, "Device, by the name of its spec."]
    op: Annotated[Text, "`read`, `write`, `discard` or `flush`."]
    requests: Annotated[Count | None, "Requests."]
    bytes: Annotated[Count | None, "Bytes of these."]
    mean_depth: Annotated[Real | None, "Mean number of requests in flight on the device, of all operations."]
    busy_share: Annotated[Real | None, "Share of the window in which it had any."]


class DeviceHealthRow(RunColumns, total=False):
    """What disks told of themselves around a run, of devices whose spec asks for `health`."""

    device: Annotated[Text, "Device, by the name of its spec."]
    moment: Annotated[Text, "`before` the run or `after` it."]
    disk: Annotated[Text, "Disk below the device, as the kernel calls it."]
    source: Annotated[Text, "Who told: `sysfs`, `smartctl`, `nvme`; empty: nobody."]
    temperature_c: Annotated[Real | None, "Temperature in degrees Celsius."]
    wear_share: Annotated[Real | None, "Share of the promised endurance that is used up; may exceed 1."]
    spare_share: Annotated[Real | None, "Share of the spare cells that is left."]
    written_bytes: Annotated[Count | None, "Bytes that were written to it in its life."]
    critical_warning: Annotated[Integer | None, "Bits of the warning in NVMe's health log; 0 is none."]


class SubmitterRow(RunColumns, total=False):
    """Who submitted the requests of a run: threads of the DBMS, writeback, the file system's journal."""

    submitter: Annotated[Text, "Name of the thread."]
    op: Annotated[Text, "`read`, `write`, `discard` or `flush`."]
    requests: Annotated[Count, "Requests."]
    bytes: Annotated[Count, "Bytes of these."]


BLOCK_LAYER_TABLES: dict[str, type] = {
    "io_profile": IoProfileRow,
    "io_sizes": IoSizeRow,
    "queue_depth": QueueDepthRow,
    "io_latency": IoLatencyRow,
    "io_series": IoSeriesRow,
    "files": FileRow,
    "operation_io": OperationIoRow,
    "layout_io": LayoutIoRow,
    "device_health": DeviceHealthRow,
    "submitters": SubmitterRow,
}
