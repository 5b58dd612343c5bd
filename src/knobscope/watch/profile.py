"""What a watch says of a run: counts of the whole run, and rows of tables that lack only what the watch cannot know."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from knobscope.tables import FaultRow, FileAccessRow, FileRow, IoProfileRow, MonitorFacts
from knobscope.tables.block_layer import IoLatencyRow, IoSeriesRow, IoSizeRow, QueueDepthRow, SubmitterRow
from knobscope.tables.calls import IoModeRow, SyscallRow
from knobscope.tables.waits import WaitFileRow, WaitStackRow

#: How a file was found: by its path; by the last part of its name only; or it is none: `journal`,
#: `metadata`, `device` (no file system holds it), `unknown`.
Finding = Literal["path", "name", "pseudo"]


class _KernelName(TypedDict, total=False):
    """How the kernel calls a file; `generation` distinguishes it from others that had its inode."""

    name: str  # last part of its path
    generation: int | None


class KernelFile(_KernelName, total=False):
    """A file as the kernel side knows it: what all rows about files have in common."""

    device: str | None  # MAJ:MIN of the file system
    inode: int | None


class CountedFile(FileRow, _KernelName, total=False):
    """Requests of a file: as the kernel side counted them, then by the name that was found for the file."""

    number: int  # of the file in records of single requests
    found_by: Finding


class CountedAccess(FileAccessRow, _KernelName, total=False):
    """System calls on a file, as the kernel side counted them."""


class CountedFaults(FaultRow, _KernelName, total=False):
    """Page faults on a file, as the kernel side counted them."""


class CountedWaitFile(WaitFileRow, _KernelName, total=False):
    """Waits for a file, as the kernel side counted them."""


class CountedThread(TypedDict):
    """A thread that lived in the window."""

    tid: int
    pid: int
    name: str
    title: str  # command line of its process
    wall_us: float  # what the window saw of it
    is_followed: bool  # False: a thread of the kernel whose work is followed, as jbd2's
    served: int  # times that a process that is not followed woke it while it waited for a client
    epoll: NotRequired[int | None]  # descriptor of its process that it waited in last
    written_bytes: NotRequired[int]  # that it made the kernel write; only without BPF, which knows the files
    write_calls: NotRequired[int]  # system calls that write, likewise
    switches: NotRequired[int]  # times that it went to sleep, likewise


class CountedWait(TypedDict):
    """What a thread waited for: a row per thread that it waited for, and reason."""

    tid: int
    via: int  # thread that it waited for; 0: it waited itself
    links: int  # 0: itself, 1: through `via`, 2 to 4: through whom `via` waited for
    reason: str
    waits: int
    time_us: float
    longest_us: float


class AddressCount(TypedDict):
    """Requests whose file the kernel did not know, by region of the disk."""

    op: str
    sector: int
    requests: int
    bytes: int


class LevelRow(TypedDict):
    """What reached the devices of one level of a stack of storage, whoever caused it, by the kernel's own sums."""

    level: int  # 0: the watched device, 1: what it lies on, and so on
    devices: list[str]
    read_bytes: int
    write_bytes: int
    read_amplification: float | None  # bytes of this level / bytes of the one above
    write_amplification: float | None


class OtherProgram(TypedDict):
    """A program that was not measured."""

    name: str
    cpu_share: float  # of all cores' time


class LatencyRow(TypedDict, total=False):
    """Exact latency of the requests of a trace."""

    op: str
    requests: int
    min_ns: int
    mean_ns: float
    max_ns: int
    p50_ns: int
    p95_ns: int
    p99_ns: int
    p999_ns: int


class Profile(MonitorFacts):
    """What `Watch.end` returns, and `knobscope trace` for a trace; numbers that this monitor cannot know are None.

    With procfs all tables but `io_profile` are empty, in light mode those that need more than completions.
    """

    duration_s: float
    monitor: Literal["bpf", "light", "procfs", "trace"]
    scope: Literal["device", "process"]
    cpu_s: float | None
    requeues: int | None
    failed_requests: int | None
    io_profile: list[IoProfileRow]  # one row per operation
    io_sizes: list[IoSizeRow]
    queue_depth: list[QueueDepthRow]  # queue -1: the whole device
    io_latency: list[IoLatencyRow]
    queue_wait: list[IoLatencyRow]
    files: list[CountedFile]
    series: list[IoSeriesRow]

    # Of a live run, not of a trace.
    machine_cpu_share: NotRequired[float | None]  # of all processors' time, in which anything ran on this machine
    other_programs: NotRequired[list[OtherProgram]]  # what kept the processors busy apart from the server or command
    busy_share: NotRequired[float | None]
    mean_depth: NotRequired[float | None]
    depth_one_share: NotRequired[float | None]
    busiest_queue_share: NotRequired[float | None]
    passthrough_requests: NotRequired[int]  # commands that a program or a driver sent to the device itself
    passthrough_bytes: NotRequired[int]
    levels: NotRequired[list[LevelRow]]
    addresses: NotRequired[list[AddressCount]]
    submitters: NotRequired[list[SubmitterRow]]
    limits: NotRequired[Sequence[str]]
    elsewhere: NotRequired[dict[str, "Profile"]]  # of other devices, by name

    # Of probes that were asked for.
    syscalls: NotRequired[list[SyscallRow]]
    io_modes: NotRequired[list[IoModeRow]]
    file_access: NotRequired[list[CountedAccess]]
    faults: NotRequired[list[CountedFaults]]
    wait_threads: NotRequired[list[CountedThread]]
    waits: NotRequired[list[CountedWait]]
    wait_files: NotRequired[list[CountedWaitFile]]
    wait_stacks: NotRequired[list[WaitStackRow]]
    wait_samples: NotRequired[int]  # looks at the threads, from which the tables of waits are made without BPF
    lost_waits: NotRequired[Mapping[str, int]]
    lost_syscalls: NotRequired[Mapping[str, int]]
    lost_faults: NotRequired[Mapping[str, int]]

    # Of a trace.
    trace: NotRequired[str]
    format: NotRequired[str]
    unit: NotRequired[int]
    life: NotRequired[str]  # what latency and depth are of
    interval_s: NotRequired[float]
    truncated_lines: NotRequired[int]
    out_of_order: NotRequired[int]
    other_requests: NotRequired[int]
    latency: NotRequired[list[LatencyRow]]
    locality: NotRequired[Mapping[str, Any] | None]  # as `statistics.locality.Locality`; None: nothing was read
