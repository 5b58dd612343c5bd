"""What watching system calls and page faults costs: nanoseconds of BPF programs per call, by the kernel's statistics.

Run as root: `python benchmarks/call_cost.py [--directory .] [--repeats 5]`. The same small program runs followed and
not followed; what the programs take for a call that is not followed is taken off for all other calls of the machine.
The kernel's own measuring is part of the figures (some tens of nanoseconds per program run).
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from knobscope.devices import find_block_device
from knobscope.watch import Watch, gate, open_watch

_SWITCH = Path("/proc/sys/kernel/bpf_stats_enabled")
_CALLS = 100_000
_PAGES = 16384
_HEAD = f"""
import mmap, os, sys
f = os.open(sys.argv[1], os.O_RDWR)
data = bytes(4096)
blocks = [i * 7919 % {_PAGES} * 4096 for i in range({_CALLS})]
"""
_FAULTS = f"""
os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
m = mmap.mmap(f, 0)
m.madvise(mmap.MADV_RANDOM)
for b in blocks[:{_PAGES}]: m[b]
"""
#: What is done -> key of the programs' costs in the profile, how often it is done, program.
LOADS = {
    "pread of 4 KiB in the page cache": ("syscall_programs", _CALLS, "for b in blocks: os.pread(f, 4096, b)"),
    "pwrite of 4 KiB into the page cache": ("syscall_programs", _CALLS, "for b in blocks: os.pwrite(f, data, b)"),
    "page fault that reads 4 KiB": ("fault_programs", _PAGES, _FAULTS),
}

Costs = dict[str, tuple[int, int]]


@contextmanager
def kernel_statistics() -> Iterator[None]:
    """Let the kernel measure BPF programs."""
    before = _SWITCH.read_text()
    _SWITCH.write_text("1")
    try:
        yield
    finally:
        _SWITCH.write_text(before)


def run_program(watch: Watch, command: list[str], key: str, *, followed: bool) -> Costs:
    """Run a command and return for each BPF program its runs and nanoseconds."""
    read_end, opener = os.pipe()
    child = subprocess.Popen([sys.executable, "-I", "-S", gate.__file__, str(read_end), *command], pass_fds=[read_end])
    os.close(read_end)
    idle = subprocess.Popen(["sleep", "600"])
    try:
        watch.follow([child.pid if followed else idle.pid])
        watch.begin()
        os.write(opener, b"!")
        if child.wait() != 0:
            raise SystemExit("the program under the watch failed")
        return {row["program"]: (row["runs"], row["time_ns"]) for row in watch.end()[key]}
    finally:
        idle.kill()
        idle.wait()
        os.close(opener)


def subtract(followed: Costs, beside: Costs, calls: int) -> float:
    """Return the nanoseconds of one followed call."""
    total = 0.0
    for program, (runs, time_ns) in followed.items():
        other_runs, other_ns = beside[program]
        other_calls_ns = max(runs - calls, 0) * (other_ns / other_runs if other_runs else 0)
        total += time_ns - other_calls_ns
    return total / calls


def measure(watch: Watch, file: Path, repeats: int) -> None:
    """Print a row of a table per load: median, least and most of the repeats."""
    print("| call | ns, followed | ns, not followed |\n|---|---|---|")
    for name, (key, calls, text) in LOADS.items():
        command = [sys.executable, "-c", _HEAD + text, str(file)]
        costs, unfollowed = [], []
        for _ in range(repeats):
            beside = run_program(watch, command, key, followed=False)
            costs.append(subtract(run_program(watch, command, key, followed=True), beside, calls))
            unfollowed.append(sum(time_ns / runs for runs, time_ns in beside.values() if runs > calls / 2))
        middle, baseline = statistics.median(costs), statistics.median(unfollowed)
        print(f"| {name} | {middle:.0f} ({min(costs):.0f} to {max(costs):.0f}) | {baseline:.0f} |")


def main() -> None:
    """Measure on a file in a directory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, default=Path(), help="where the file is made (64 MiB)")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    block = find_block_device(options.directory)
    with (
        kernel_statistics(),
        NamedTemporaryFile(dir=options.directory) as file,
        open_watch(block, 4096, "device", probes=["syscalls", "faults"]) as watch,
    ):
        if watch.reason or watch.missing_probes:
            raise SystemExit(f"nothing to measure: {watch.reason or dict(watch.missing_probes)}")
        file.write(bytes(_PAGES * 4096))
        file.flush()
        os.fsync(file.fileno())
        measure(watch, Path(file.name), options.repeats)


if __name__ == "__main__":
    main()
