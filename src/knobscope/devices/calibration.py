"""Measures the way to a modelled device, once per machine, with a device whose model takes no time."""

import fcntl
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from knobscope.devices.emulation import bring_up, take_down
from knobscope.errors import UserError
from knobscope.specs.device import Device, Emulation
from knobscope.specs.device_figures import SEQUENTIAL, SEQUENTIAL_DEPTH
from knobscope.specs.device_model import FlashModel
from knobscope.specs.transport import Transport, forget_transport, read_transport, transport_file, write_transport

__all__ = ["FLUSHING", "INSTANT_DEVICE", "calibrate", "ensure_calibrated", "run_fio"]

_INSTANT = FlashModel(
    kind="flash", channels=65536, read="0us", write="0us", cache="1GiB", drain="1000000GB/s", flush="0us"
)
INSTANT_DEVICE = Device(
    name="calibration",
    description="a modelled device that takes no time",
    tier="memory",
    emulate=Emulation(size="512MiB", model=_INSTANT),
)
_REPEATS = 5
#: An engine that waits for each write: libaio would call fdatasync while the write is still under way, and count both.
FLUSHING = ("--fdatasync=1", "--ioengine=psync")


def ensure_calibrated() -> Transport:
    """Return the figures of this machine, measured now if they have not been; takes a minute then."""
    with _only_one():
        known = read_transport()
        if known is not None:
            return known
        print("measuring what the way to a modelled device costs here (once, a minute)", file=sys.stderr)
        return _measure()


def calibrate() -> Transport:
    """Measure the figures of this machine anew, and keep them. Raises UserError without root or fio."""
    with _only_one():
        return _measure()


@contextmanager
def _only_one() -> Iterator[None]:
    lock = transport_file().with_suffix(".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _measure() -> Transport:
    forget_transport()  # the instant device, too, would be answered early
    file = bring_up(INSTANT_DEVICE, Path("/"), os.getpid()) / "file"
    try:
        run_fio(file, "write", 32, "--bs=1m", "--time_based=0")
        rounds = [_measure_once(file) for _ in range(_REPEATS)]
    finally:
        take_down(INSTANT_DEVICE, Path("/"))
    # Latency swings both ways, with how long a processor takes to wake; other load only takes from rates.
    columns = list(zip(*rounds, strict=True))
    found = Transport(*(statistics.median(column) for column in columns[:3]), *(max(column) for column in columns[3:]))
    write_transport(found)
    return found


def _measure_once(file: Path) -> tuple[float, ...]:
    read = run_fio(file, "randread", 1)["read"]["lat_ns"]["mean"] / 1000
    write = run_fio(file, "randwrite", 1)["write"]["lat_ns"]["mean"] / 1000
    flush = run_fio(file, "randwrite", 1, *FLUSHING)["sync"]["lat_ns"]["mean"] / 1000
    read_iops = run_fio(file, "randread", 32)["read"]["iops"]
    write_iops = run_fio(file, "randwrite", 32)["write"]["iops"]
    large = f"--bs={SEQUENTIAL}"
    read_rate = run_fio(file, "read", SEQUENTIAL_DEPTH, large)["read"]["bw_bytes"]
    write_rate = run_fio(file, "write", SEQUENTIAL_DEPTH, large)["write"]["bw_bytes"]
    return read, write, flush, read_iops, write_iops, read_rate, write_rate


def run_fio(file: Path, pattern: str, depth: int, *options: str, size: str = "256m") -> dict[str, Any]:
    """Return what fio says of one job: 4 KiB for a second, unless the options ask for something else."""
    fio = shutil.which("fio")
    if fio is None:
        raise UserError("modelled devices need fio once, to measure what they cost here; apt-get install fio")
    command = [
        fio,
        "--name=calibration",
        f"--filename={file}",
        f"--size={size}",
        f"--rw={pattern}",
        f"--iodepth={depth}",
    ]
    fixed = ["--direct=1", "--ioengine=libaio", "--bs=4k", "--norandommap", "--output-format=json", "--fallocate=none"]
    timed = ["--time_based=1", "--runtime=1s", "--ramp_time=200ms"]
    done = subprocess.run([*command, *fixed, *timed, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"fio failed on {file}: {done.stderr.strip() or done.stdout.strip()}")
    return dict(json.loads(done.stdout)["jobs"][0])
