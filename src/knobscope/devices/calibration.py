"""Measures the way to a modelled device, once per machine, with a device whose model takes no time."""

import fcntl
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from knobscope.devices.block import find_block_device, read_counts
from knobscope.devices.emulation import bring_up, take_down
from knobscope.errors import UserError
from knobscope.specs.models.device import Device, Emulation
from knobscope.specs.models.device_figures import SEQUENTIAL, SEQUENTIAL_DEPTH
from knobscope.specs.models.device_model import FlashModel
from knobscope.specs.models.quantity import Duration, Rate, Size
from knobscope.specs.models.transport import (
    WAIT_US,
    Transport,
    forget_transport,
    read_transport,
    transport_file,
    write_transport,
)


def _make_device(latency: Duration) -> Device:
    model = FlashModel(
        kind="flash",
        channels=65536,
        read=latency,
        write=latency,
        cache=Size("1GiB"),
        drain=Rate("1000000GB/s"),
        flush=latency,
    )
    emulation = Emulation(size=Size("512MiB"), model=model)
    return Device(name="calibration", description=f"{latency} for all requests", tier="memory", emulate=emulation)


INSTANT_DEVICE = _make_device(Duration("0us"))
_REPEATS = 3
#: Numbers of reads under way at which waiting for others is measured, of one page and of many.
_DEPTHS = (2, 4, 8, 16, 32)
_LARGE_DEPTHS = (1, 2, 4, 8)
#: Pages of 4 KiB that a sequential request has beyond its first.
_MORE_PAGES = SEQUENTIAL // 4096 - 1
#: An engine that waits for each write: libaio would call fdatasync while the write is still under way, and count both.
FLUSHING = ("--fdatasync=1", "--ioengine=psync")


#: Requests and bytes per second of a way that limits nothing.
_UNLIMITED = (1e9, 1e9, 1e13, 1e13)


def ensure_calibrated() -> Transport:
    """Return the figures of this machine, measured now if they have not been; takes a minute then."""
    with _only_one():
        transport = read_transport()
        if transport is not None:
            return transport
        print("measuring what the way to a modelled device costs here (once, one minute)", file=sys.stderr)
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
    """Measure a model that takes no time, and one that takes WAIT_US: before and after it knows how long waking takes.

    Latency swings both ways, with how long a processor takes to wake; other load only takes from rates.
    """
    forget_transport()  # nothing must be answered early
    times, bandwidths = _measure_rounds(INSTANT_DEVICE, _measure_sizes, _measure_bandwidths)
    at_once, inside, (read_page, write_page) = times[:3], times[3:6], times[6:]
    waiting = _make_device(Duration(f"{WAIT_US:g}us"))
    asleep, _ = _measure_rounds(waiting, _measure_latencies, lambda _: ())
    wake_us = max(0.0, asleep[0] - WAIT_US - at_once[0])
    so_far = Transport(0.0, 0.0, 0.0, wake_us, 0.0, *_UNLIMITED)
    write_transport(so_far, measuring=True)  # so the program knows how long it may sleep
    loads, (read_iops, write_iops) = _measure_rounds(waiting, _measure_loads, _measure_rates)
    awake, crowded, large = loads[:3], loads[3 : -len(_LARGE_DEPTHS)], loads[-len(_LARGE_DEPTHS) :]
    slept_us = statistics.median(us - WAIT_US - once for us, once in zip(awake, at_once, strict=True))
    read_us, write_us, flush_us = at_once
    transport = Transport(
        read_us=read_us,
        write_us=write_us,
        flush_us=flush_us,
        wake_us=wake_us,
        slept_us=max(0.0, slept_us),
        read_iops=read_iops,
        write_iops=write_iops,
        read_rate=bandwidths[0],
        write_rate=bandwidths[1],
        read_page_us=max(0.0, read_page),
        write_page_us=max(0.0, write_page),
        queue=_find_queue(awake[0], crowded, read_iops),
        page_queue=_find_page_queue(large, bandwidths[0], read_iops),
        outside=tuple(max(0.0, 1 - block / us) for block, us in zip(inside, at_once, strict=True)),
    )
    write_transport(transport)
    return transport


def _measure_rounds(
    device: Device,
    measure_times: Callable[[Path], tuple[float, ...]],
    measure_rates: Callable[[Path], tuple[float, ...]],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return medians of the latencies, and the highest of the rates that are measured with them."""
    take_down(device, Path("/"))  # a calibration that was killed may have left one, of whichever model
    file = bring_up(device, Path("/"), os.getpid()) / "file"
    try:
        run_fio(file, "write", 32, "--bs=1m", "--time_based=0")
        rounds = [(measure_times(file), measure_rates(file)) for _ in range(_REPEATS)]
    finally:
        take_down(device, Path("/"))
    latencies, rates = zip(*rounds, strict=True)
    return tuple(map(statistics.median, zip(*latencies, strict=True))), tuple(map(max, zip(*rates, strict=True)))


def _measure_latencies(file: Path) -> tuple[float, ...]:
    """Return microseconds of a read, a write and a flush."""
    return tuple(us for us, _ in _measure_alone(file))


def _measure_alone(file: Path) -> list[tuple[float, float]]:
    """Return microseconds of a read, a write and a flush, as fio sees them, and as the kernel counts them."""
    block = find_block_device(file)
    jobs = {
        "read": ("randread", "read", ()),
        "write": ("randwrite", "write", ()),
        "flush": ("randwrite", "sync", FLUSHING),
    }
    latencies = []
    for operation, (pattern, side, options) in jobs.items():
        before = read_counts(block)[operation]
        us = run_fio(file, pattern, 1, *options)[side]["lat_ns"]["mean"] / 1000
        requests, ms = (now - then for now, then in zip(read_counts(block)[operation], before, strict=True))
        latencies.append((us, 1000 * ms / requests))
    return latencies


def _measure_loads(file: Path) -> tuple[float, ...]:
    """Return the same, then microseconds of a read at each of _DEPTHS, and of one of 128 KiB at _LARGE_DEPTHS."""
    large = f"--bs={SEQUENTIAL}"
    crowded = [run_fio(file, "randread", depth) for depth in _DEPTHS]
    crowded += [run_fio(file, "randread", depth, large) for depth in _LARGE_DEPTHS]
    return *_measure_latencies(file), *(job["read"]["lat_ns"]["mean"] / 1000 for job in crowded)


def _find_queue(alone_us: float, crowded_us: Sequence[float], most: float) -> tuple[tuple[float, float], ...]:
    """Return for the work of how many others a request waits, by the number of others that are under way."""
    waited = (max(0.0, latency - alone_us) * most / 1e6 for latency in crowded_us)
    return tuple((float(depth - 1), load) for depth, load in zip(_DEPTHS, waited, strict=True))


def _find_page_queue(large_us: Sequence[float], rate: float, most: float) -> tuple[tuple[float, float], ...]:
    """Return the same for the pages that large reads have beyond their first, as the others all have them."""
    work_us = max(1e6 * SEQUENTIAL / rate - 1e6 / most, 1.0)
    alone_us, *crowded_us = large_us
    waited = (max(0.0, latency - alone_us) / work_us for latency in crowded_us)
    return tuple((float(depth - 1), load) for depth, load in zip(_LARGE_DEPTHS[1:], waited, strict=True))


def _measure_sizes(file: Path) -> tuple[float, ...]:
    """Return microseconds of a read, a write and a flush, the same by the kernel's counts, and of further pages.

    The last are how much longer a read and a write of 128 KiB take, for each 4 KiB beyond the first.
    """
    small, inside = zip(*_measure_alone(file), strict=True)
    large = f"--bs={SEQUENTIAL}"
    times = [run_fio(file, f"rand{op}", 1, large)[op]["lat_ns"]["mean"] / 1000 for op in ("read", "write")]
    return *small, *inside, *((time - small[index]) / _MORE_PAGES for index, time in enumerate(times))


def _measure_rates(file: Path) -> tuple[float, ...]:
    """Return reads and writes of 4 KiB a second; so many at a time that waiting for them limits nothing."""
    return run_fio(file, "randread", 64)["read"]["iops"], run_fio(file, "randwrite", 64)["write"]["iops"]


def _measure_bandwidths(file: Path) -> tuple[float, ...]:
    """Return bytes per second of large reads and writes."""
    large = f"--bs={SEQUENTIAL}"
    read_rate = run_fio(file, "read", SEQUENTIAL_DEPTH, large)["read"]["bw_bytes"]
    write_rate = run_fio(file, "write", SEQUENTIAL_DEPTH, large)["write"]["bw_bytes"]
    return read_rate, write_rate


def run_fio(file: Path, pattern: str, depth: int, *options: str, size: str = "256m") -> dict[str, Any]:
    """Return what fio says of one job: 4 KiB for 0.3 s, unless the options ask for something else."""
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
    timed = ["--time_based=1", "--runtime=300ms", "--ramp_time=100ms"]
    result = subprocess.run([*command, *fixed, *timed, *options], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise UserError(f"fio failed on {file}: {result.stderr.strip() or result.stdout.strip()}")
    return dict(json.loads(result.stdout)["jobs"][0])
