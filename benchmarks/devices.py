"""How well emulated devices meet their models: target, measured, error on each axis.

    python benchmarks/devices.py [DEVICE...] [--fitted N --from FIGURES.csv] [--out FILE.json]
    python benchmarks/devices.py --transport

For each device: 4 KiB random reads and writes at depths 1, 8 and 32 (writes in the sustained state), sequential 128 KiB
at depth 4, and the latency of an fdatasync after a write of 4 KiB. Targets are those of the model in closed form, for a
disk those of the model in simulated time. A target above what this machine can emulate is listed and not counted: above
the rate, at that depth, of a model that takes no time, less the headroom that one needs which takes time. All is
measured in three rounds, and the median counts: a shared machine stands still now and then. Needs root and fio.

`--transport` compares a model that takes no time with a plain loop device over memory, in turns:
what the way to a modelled device costs, and where the processor goes at its ceiling.
"""

import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from knobscope.devices import bring_up, load_device, take_down
from knobscope.devices.calibration import FLUSHING, INSTANT_DEVICE, ensure_calibrated, run_fio
from knobscope.devices.fit import fit_device, read_figures
from knobscope.devices.program import find_program, model_arguments
from knobscope.specs import Device
from knobscope.specs.checks.emulation_limits import HEADROOM
from knobscope.specs.models import device_figures as figures
from knobscope.specs.models.device_model import DeviceModel, DiskModel
from knobscope.specs.models.transport import Transport

SHIPPED = ["hdd-7200", "sata-ssd", "sata-ssd-plp", "nvme-consumer", "nvme-datacenter"]
DEPTHS = (1, 8, 32)
ROUNDS = 5  # of the comparison with a plain loop device
REPEATS = 3
#: Without an end by time: a hole that is left in the file would have to be allocated by a measured write.
FILLING = ("--bs=1m", "--time_based=0", "--runtime=300s", "--ramp_time=0")
ROOT = Path(__file__).parents[1]


@dataclass
class Point:
    """One axis of one device."""

    device: str
    axis: str
    target: float
    measured: float | None  # None: above the ceiling

    @property
    def error(self) -> float | None:
        """Relative distance from the target."""
        return None if self.measured is None else abs(self.measured / self.target - 1)


@dataclass(frozen=True)
class Axis:
    """What is measured, what the model says, and the most this machine can do."""

    name: str
    target: float
    ceiling: float
    pattern: str
    depth: int
    size: str
    ramp_s: float
    seconds: float


def simulate(model: DeviceModel, operation: str, depth: int) -> float:
    """Return requests of 4 KiB a second in simulated time, after a minute that fills the cache."""
    command = [str(find_program("simulate")), str(2 << 30), operation, "4096", str(depth), "random", "60", "60"]
    return float(subprocess.run([*command, *model_arguments(model)], capture_output=True, text=True, check=True).stdout)


Ceilings = dict[tuple[str, int], float]


def measure_ceilings() -> Ceilings:
    """Return requests a second of a model that takes no time, less the headroom, by pattern and depth."""
    file = bring_up(INSTANT_DEVICE, Path("/"), os.getpid()) / "file"
    try:
        run_fio(file, "write", 32, "--bs=1m", "--time_based=0")
        rates: dict[tuple[str, int], list[float]] = defaultdict(list)
        for pattern, depth in REPEATS * [(pattern, depth) for pattern in ("randread", "randwrite") for depth in DEPTHS]:
            rates[pattern, depth].append(run_fio(file, pattern, depth)[pattern.removeprefix("rand")]["iops"])
    finally:
        take_down(INSTANT_DEVICE, Path("/"))
    return {place: statistics.median(samples) / HEADROOM for place, samples in rates.items()}


def axes_of(model: DeviceModel, way: Transport, ceilings: Ceilings) -> Iterator[Axis]:
    """Yield what is measured with fio on one device, the flush apart."""
    disk = isinstance(model, DiskModel)
    costs = way.costs_us(figures.latencies_alone(model))
    for depth in DEPTHS:
        target = figures.random_read_iops(model, depth) or simulate(model, "read", depth)
        ceiling = min(ceilings["randread", depth], depth * 1e6 / costs.read_us)
        yield Axis(f"random read, depth {depth}", target, ceiling, "randread", depth, "4k", 0.3, 8 if disk else 1.5)
    for depth in DEPTHS:
        target = figures.random_write_iops(model, depth) or simulate(model, "write", depth)
        ceiling = min(ceilings["randwrite", depth], depth * 1e6 / costs.write_us)
        yield Axis(f"random write, depth {depth}", target, ceiling, "randwrite", depth, "4k", 0, 8 if disk else 3)
    read, write = figures.sequential_read_rate(model) / 1e6, figures.sequential_write_rate(model) / 1e6
    yield Axis("sequential read, MB/s", read, way.read_rate / HEADROOM / 1e6, "read", 4, "128k", 0.3, 1.5)
    yield Axis("sequential write, MB/s", write, way.write_rate / HEADROOM / 1e6, "write", 4, "128k", 0, 2)


def measure(device: Device, way: Transport, ceilings: Ceilings) -> list[Point]:
    """Bring a device up, measure all axes, take it down."""
    file = bring_up(device, Path("/"), os.getpid()) / "file"
    axes = list(axes_of(device.emulate.model, way, ceilings))
    samples: dict[str, list[float]] = defaultdict(list)
    try:
        run_fio(file, "write", 32, *FILLING, size="1800m")
        for axis in REPEATS * [axis for axis in axes if axis.target <= axis.ceiling]:
            samples[axis.name].append(measure_axis(file, axis))
        points = [Point(device.name, axis.name, axis.target, median_of(samples[axis.name])) for axis in axes]
        points.append(measure_flush(device, file, way))
    finally:
        take_down(device, Path("/"))
    for point in points:
        print(f"  {point.axis}: {point.target:.0f} {samples.get(point.axis, point.measured)}", file=sys.stderr)
    return points


def median_of(samples: list[float]) -> float | None:
    """Return the median; None of nothing."""
    return statistics.median(samples) if samples else None


def measure_axis(file: Path, axis: Axis) -> float:
    """Return requests a second, or MB/s.

    Writes are counted until the last one is stored. A window would not do: a cache takes them faster at first, and
    whenever the file system commits its journal, it waits until the whole cache is stored.
    """
    if "read" in axis.pattern:
        window = [f"--ramp_time={round(axis.ramp_s * 1000)}ms", f"--runtime={round(axis.seconds * 1000)}ms"]
        side = run_fio(file, axis.pattern, axis.depth, f"--bs={axis.size}", *window, size="1800m")["read"]
        return float(side["bw_bytes"] / 1e6 if "MB/s" in axis.name else side["iops"])
    amount = axis.target * axis.seconds * (1e6 if "MB/s" in axis.name else 4096)
    whole = ["--time_based=0", f"--io_size={round(amount / 2**20) + 1}m", "--end_fsync=1"]
    timing = ["--ramp_time=0", "--runtime=60s", f"--bs={axis.size}"]
    job = run_fio(file, axis.pattern, axis.depth, *whole, *timing, size="1800m")
    seconds = job["job_runtime"] / 1000
    return float(
        job["write"]["io_bytes"] / 1e6 / seconds if "MB/s" in axis.name else job["write"]["total_ios"] / seconds
    )


def measure_flush(device: Device, file: Path, way: Transport) -> Point:
    """Measure the latency of an fdatasync after each random write of 4 KiB."""
    target = figures.flush_latency_us(device.emulate.model)
    if target is None:  # a disk: a random offset, so a seek and half a turn on average
        head = 1e6 / figures.random_read_iops(device.emulate.model, 1)
        target = head - 100
    if target < way.costs_us(figures.latencies_alone(device.emulate.model)).flush_us:
        return Point(device.name, "fdatasync, us", target, None)
    seconds = 8 if isinstance(device.emulate.model, DiskModel) else 2
    jobs = [
        run_fio(file, "randwrite", 1, *FLUSHING, f"--runtime={seconds}s", size="1800m")["sync"]["lat_ns"]
        for _ in range(REPEATS)
    ]
    return Point(device.name, "fdatasync, us", target, median_of([job["mean"] / 1000 for job in jobs]))


def choose(args: argparse.Namespace) -> list[Device]:
    """Return the devices that are named, or the shipped ones, and drives of the table."""
    chosen = [load_device(name, ROOT) for name in args.device or ([] if args.fitted else SHIPPED)]
    if args.fitted:
        drives = sorted({row["model"] for row in csv.DictReader(args.figures.open())})
        drawn = sorted(random.Random(1).sample(drives, args.fitted))  # noqa: S311 - the same ones every time
        chosen += [fit_device(read_figures(args.figures, drive), args.figures.name) for drive in drawn]
    return chosen


def show(points: list[Point], way: Transport, ceilings: Ceilings) -> None:
    """Print one line per axis, and the errors of all."""
    print(f"the way to a device: {asdict(way)}")
    for (pattern, depth), rate in ceilings.items():
        print(f"ceiling of {pattern} at depth {depth}: {rate:.0f} requests a second")
    for point in points:
        if point.error is None:
            print(f"{point.device:28} {point.axis:26} {point.target:10.0f}   above the ceiling")
        else:
            print(f"{point.device:28} {point.axis:26} {point.target:10.0f} {point.measured:10.0f} {point.error:7.1%}")
    errors = [point.error for point in points if point.error is not None]
    above = len(points) - len(errors)
    print(f"{len(errors)} points: median error {statistics.median(errors):.1%}, worst {max(errors):.1%}; {above} above")


def compare_transport() -> None:
    """Print latency at depth one, the ceiling, and the processor time of a request, with and without a model."""
    emulation = INSTANT_DEVICE.emulate
    assert emulation is not None
    plain = INSTANT_DEVICE.model_copy(
        update={"name": "plain-loop", "emulate": emulation.model_copy(update={"model": None})}
    )
    devices = {"plain loop device": plain, "with a model": INSTANT_DEVICE}
    files = {}
    rounds: dict[str, list[Way]] = {name: [] for name in devices}
    try:
        for name, device in devices.items():
            files[name] = bring_up(device, Path("/"), os.getpid()) / "file"
            run_fio(files[name], "write", 32, "--bs=1m", "--time_based=0")
        for _ in range(ROUNDS):
            for name, file in files.items():
                rounds[name].append(measure_way(file))
    finally:
        for device in devices.values():
            take_down(device, Path("/"))
    print("best of the rounds    read us  write us   reads/s  writes/s  busy us of a read at depth 32")
    for name, ways in rounds.items():  # whatever else runs only makes them worse
        latencies = f"{min(way.read_us for way in ways):8.1f} {min(way.write_us for way in ways):9.1f}"
        rates = f"{max(way.reads for way in ways):9.0f} {max(way.writes for way in ways):9.0f}"
        print(f"{name:20} {latencies} {rates} {min(way.busy_us for way in ways):8.1f}")


@dataclass(frozen=True)
class Way:
    """What one round shows of a device that takes no time by itself."""

    read_us: float
    write_us: float
    reads: float
    writes: float
    busy_us: float  # of all processors


def measure_way(file: Path) -> Way:
    """Measure latencies at depth one, rates at depth 32, and the processor time of a read there."""
    read = run_fio(file, "randread", 1)["read"]["lat_ns"]["mean"] / 1000
    write = run_fio(file, "randwrite", 1)["write"]["lat_ns"]["mean"] / 1000
    before = busy_seconds()
    job = run_fio(file, "randread", 32, "--ramp_time=0")["read"]
    busy = 1e6 * (busy_seconds() - before) / job["total_ios"]
    return Way(read, write, job["iops"], run_fio(file, "randwrite", 32)["write"]["iops"], busy)


def busy_seconds() -> float:
    """Return the time that all processors have been busy since boot."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    idle, waiting = fields[3:5]
    return (sum(map(int, fields[:8])) - int(idle) - int(waiting)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", nargs="*", help="names in specs/devices; absent: the five that are shipped")
    parser.add_argument(
        "--fitted", type=int, default=0, metavar="N", help="also N drives of the table, drawn with a seed"
    )
    parser.add_argument("--from", dest="figures", type=Path, help="table of figures, for --fitted")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first devices: to measure in pieces")
    parser.add_argument("--take", type=int, default=1000, help="measure so many of them")
    parser.add_argument("--out", type=Path, help="write the points as JSON")
    parser.add_argument("--transport", action="store_true", help="compare with a plain loop device instead")
    args = parser.parse_args()
    if args.transport:
        compare_transport()
        return
    if args.fitted and args.figures is None:
        parser.error("--fitted needs --from")
    way, ceilings = ensure_calibrated(), measure_ceilings()
    chosen = choose(args)[args.skip :][: args.take]
    points = [point for device in chosen for point in measure(device, way, ceilings)]
    show(points, way, ceilings)
    if args.out:
        args.out.write_text(json.dumps([asdict(point) for point in points], indent=1))


if __name__ == "__main__":
    main()
