"""The load and what it runs on: 4 KiB requests with direct I/O, on memory and on a disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from knobscope.devices import BlockDevice, find_block_device
from knobscope.watch import gate

DEPTHS = (1, 32)
BLOCK = 4096
_MEMORY_MIB, _DISK_MIB = 512, 1024


@dataclass(frozen=True)
class Target:
    """What fio loads; `scope` tells whether its device is its own or shared."""

    name: str
    description: str
    file: str
    block: BlockDevice
    scope: Any  # knobscope.watch.interface.Scope
    pattern: str


@dataclass(frozen=True)
class Done:
    """What a load did; `missed`: requests that a tool did not count, None for tools that do not tell."""

    seconds: float
    requests: int
    iops: float
    missed: int | None


@dataclass(frozen=True)
class Sample:
    """One load under one condition; `cost_ns`: time in BPF programs per request, None when it was not measured."""

    round: int
    target: str
    condition: str
    depth: int
    iops: float
    requests: int
    missed: int | None
    cpu_share: float
    cost_ns: float | None


class Running(Protocol):
    """A condition that has been started."""

    def begin(self, pid: int) -> None:
        """Count from now on what this process, which waits, will do."""

    def end(self) -> int | None:
        """Return how many requests were counted since; None for tools that do not tell."""


@contextmanager
def open_memory() -> Iterator[Target]:
    """Yield a loop device with direct I/O on a file in memory: a few microseconds per request, the worst case."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="knobscope-benchmark-") as image:
        os.truncate(image.name, _MEMORY_MIB << 20)
        node = _run("losetup", "--find", "--show", "--direct-io=on", image.name)
        try:
            _fill(node, _MEMORY_MIB)
            description = f"loop device {_MEMORY_MIB} MiB on tmpfs"
            yield Target("memory", description, node, find_block_device(Path(node)), "device", "randwrite")
        finally:
            _run("losetup", "--detach", node)


@contextmanager
def open_disk(directory: Path) -> Iterator[Target]:
    """Yield a file that is laid out on the disk of a directory; that disk is shared with the rest of the machine."""
    with tempfile.TemporaryDirectory(dir=directory, prefix="knobscope-benchmark-") as scratch:
        file, block = Path(scratch, "file"), find_block_device(directory)
        _fill(str(file), _DISK_MIB)
        description = f"{_DISK_MIB} MiB file on {block.name}"
        yield Target("disk", description, str(file), block, "process", "randread")


def run_load(target: Target, depth: int, seconds: float, running: Running) -> Done:
    """Load the target; the condition is told before fio begins and after it has ended."""
    with tempfile.NamedTemporaryFile(prefix="knobscope-fio-") as output:
        job = {"name": "load", "filename": target.file, "rw": target.pattern, "bs": BLOCK, "iodepth": depth}
        job |= {"ioengine": "libaio", "direct": 1, "time_based": 1, "runtime": f"{int(seconds * 1000)}ms"}
        job |= {"norandommap": 1, "output-format": "json", "output": output.name}
        read_end, opener = os.pipe()
        command = ["fio", *(f"--{name}={value}" for name, value in job.items())]
        program = [sys.executable, "-I", "-S", gate.__file__, str(read_end), *command]
        with subprocess.Popen(program, pass_fds=[read_end], stdout=subprocess.DEVNULL) as process:
            os.close(read_end)
            running.begin(process.pid)
            os.write(opener, b"!")
            os.close(opener)
        counted = running.end()
        if process.returncode != 0:
            raise RuntimeError(f"fio failed on {target.file}")
        result = json.loads(Path(output.name).read_text())["jobs"][0][target.pattern.removeprefix("rand")]
    # When its time is over fio does not count what is still in flight: then we have more than it.
    missed = None if counted is None else max(result["total_ios"] - counted, 0)
    return Done(result["runtime"] / 1000, result["total_ios"], result["iops"], missed)


def _fill(file: str, size_mib: int) -> None:
    """Write everything once, so that no request meets a hole."""
    options = ["--name=fill", f"--filename={file}", f"--size={size_mib}m", "--rw=write", "--bs=1m", "--direct=1"]
    _run("fio", *options, "--end_fsync=1", "--output=/dev/null")


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
