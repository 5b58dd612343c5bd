"""Whether `knobscope characterise` finds what was put in: devices with random parameters, which it is not told.

    python benchmarks/blind.py --seed N [--devices 30] [--skip N] [--take N] [--mode full] [--out FILE.jsonl]
    python benchmarks/blind.py --show FILE.jsonl...

Four of thirty are disks, the others flash; a third of these has no write unit, or a cache that hides it. Each is
brought up as a modelled device, characterised, and taken down. Write unit (or none), flush latency, the ratio of random
to sequential reads at depth one and the depth that saturates random reads are compared with the model's. Parameters
are drawn from what two processors can emulate, and so that a unit costs at least a tenth of a flush and 300 us: what
costs less, nobody feels. Needs root and fio.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from knobscope.devices import open_locked, take_down
from knobscope.devices.calibration import ensure_calibrated
from knobscope.devices.program import find_program, model_arguments
from knobscope.specs import Device, Emulation
from knobscope.specs.models import device_figures as figures
from knobscope.specs.models.device_model import DeviceModel, DiskModel, FlashModel
from knobscope.specs.models.quantity import Duration
from knobscope.stages.characterise.curves import find_saturation
from knobscope.stages.characterise.profile import Mode, characterise_device

UNITS_KIB = (8, 12, 16, 24, 32, 48, 64, 96, 128)
DISK_EVERY = 8
MOST_READS = 40_000
TOLERANCE = 0.15
DEEPEST = 128
DISK_SECONDS = 300
DEVICE_BYTES = 2 << 30


def draw_device(seed: int, number: int) -> Device:
    """Return one device; the same for the same seed, on any machine."""
    rng = random.Random(f"{seed}/{number}")  # noqa: S311 - the same ones every time
    model = draw_disk(rng) if number % DISK_EVERY == DISK_EVERY // 2 else draw_flash(rng)
    return Device(
        name=f"blind-{seed}-{number}",
        description="random parameters",
        tier="hdd" if isinstance(model, DiskModel) else "nvme_ssd",
        emulate=Emulation(size="2GiB", model=model),
    )


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def draw_flash(rng: random.Random) -> FlashModel:
    """Draw an SSD that two processors can emulate: no latency near that of the way to it, no rate near its ceiling."""
    read_us, flush_us = log_uniform(rng, 120, 500), log_uniform(rng, 100, 3000)
    has_unit = rng.random() < 2 / 3
    return FlashModel(
        kind="flash",
        channels=round(log_uniform(rng, 1, MOST_READS * read_us / 1e6)),
        read=f"{read_us:.0f}us",
        sequential_read=f"{max(90, read_us * rng.uniform(0.3, 1)):.0f}us",
        write=f"{log_uniform(rng, 80, 200):.0f}us",
        bus=f"{log_uniform(rng, 500, 3000):.0f}MB/s",
        cache="0B" if rng.random() < 1 / 5 else f"{rng.choice((16, 32, 64, 128))}MiB",
        drain=f"{log_uniform(rng, 300, 2000):.0f}MB/s",
        random_write=f"{log_uniform(rng, 5, 60):.0f}us",
        unit=f"{rng.choice(UNITS_KIB)}KiB" if has_unit else None,
        fill=f"{log_uniform(rng, 0.1, 0.6) * (flush_us + 300):.0f}us" if has_unit else "0us",
        flush=f"{flush_us:.0f}us",
        power_loss_protection=rng.random() < 1 / 5,
        jitter=f"{rng.uniform(0, 15):.0f}%",
        seed=rng.randrange(1 << 30),
    )


def draw_disk(rng: random.Random) -> DiskModel:
    """Draw a disk of 5400 to 15000 turns a minute."""
    return DiskModel(
        kind="disk",
        seek=f"{log_uniform(rng, 3, 12):.2f}ms",
        track_seek="1ms",
        rotation=f"{rng.choice((11.111, 8.333, 6, 4)):.3f}ms",
        media=f"{log_uniform(rng, 100, 280):.0f}MB/s",
        queue=rng.choice((8, 16, 32, 64)),
        bus="550MB/s",
        cache=f"{rng.choice((16, 32, 64))}MiB",
        read=f"{rng.uniform(150, 300):.0f}us",
        write=f"{rng.uniform(150, 300):.0f}us",
        flush="0us",
        seed=rng.randrange(1 << 30),
    )


def cover(model: DeviceModel, share: float) -> DeviceModel:
    """Return what a model is on a part of the device only: a disk's seeks are shorter there."""
    if not isinstance(model, DiskModel):
        return model
    track, seek = model.track_seek.ns, model.seek.ns
    return model.model_copy(update={"seek": Duration(f"{(track + (seek - track) * math.sqrt(share)) / 1e3:.1f}us")})


def simulate(model: DeviceModel, size: int, depth: int, order: str) -> float:
    """Return reads of 4 KiB a second in simulated time."""
    seconds = DISK_SECONDS if isinstance(model, DiskModel) else 2
    command = [str(find_program("simulate")), str(size), "read", "4096", str(depth), order, "1", str(seconds)]
    return float(subprocess.run([*command, *model_arguments(model)], capture_output=True, text=True, check=True).stdout)


def know_truth(whole: DeviceModel, file_bytes: int) -> dict[str, float | None]:
    """Return what was put in, in the words of the profile, for the part of the device that the test file covers."""
    model = cover(whole, file_bytes / DEVICE_BYTES)
    depths = range(1, DEEPEST + 1) if isinstance(model, FlashModel) else (1, *range(2, 65, 2), 96, DEEPEST)
    reads = {depth: simulate(model, file_bytes, depth, "random") for depth in depths}
    return {
        "write_unit_bytes": visible_unit(model),
        "flush_p50_us": figures.flush_latency_us(model) or mean_turn_us(model),
        "saturating_depth": find_saturation(reads),
        "random_sequential_ratio": reads[1] / simulate(model, file_bytes, 1, "sequential"),
    }


def visible_unit(model: DeviceModel) -> int | None:
    """Return the write unit, None where there is none, or a protected cache waits until all of it was written."""
    if isinstance(model, DiskModel) or model.unit is None:
        return None
    return None if model.power_loss_protection and model.cache.bytes else model.unit.bytes


def mean_turn_us(model: DeviceModel) -> float:
    """Return what a disk takes to store one page at a random place: a seek and half a turn, less what a write took."""
    positioned = 1e6 / (figures.random_read_iops(model, 1) or math.inf) - model.read.us
    return positioned - model.write.us


def measure(device: Device, mode: Mode) -> dict[str, Any]:
    """Characterise a device that does not exist before and after."""
    with open_locked([device], Path("/"), "blind") as (opened,):
        profile = characterise_device(opened, mode)
    take_down(device, Path("/"))
    return profile


def is_near(truth: float | None, estimate: float | None) -> bool:
    """Whether a figure is within the tolerance, or rightly absent."""
    if truth is None or estimate is None:
        return truth is estimate
    return abs(estimate / truth - 1) <= TOLERANCE


CHECKS: dict[str, Callable[[Any, Any], bool]] = {
    "write_unit_bytes": lambda truth, estimate: bool(truth == estimate),
    "flush_p50_us": is_near,
    "random_sequential_ratio": is_near,
    "saturating_depth": is_near,
}


def show(results: list[dict[str, Any]]) -> None:
    """Print a row per device as Markdown, and how many of each figure were found."""
    print("| device | write unit | flush | random to sequential reads | saturating depth | seconds |")
    print("|---|---|---|---|---|---|")
    for row in results:
        cells = [describe(name, row["truth"][name], row["found"][name]) for name in CHECKS]
        print(f"| {row['kind']} {row['number']} | {' | '.join(cells)} | {row['seconds']:.0f} |")
    print()
    for name, check in CHECKS.items():
        right = sum(check(row["truth"][name], row["found"][name]) for row in results)
        print(f"{name}: {right} of {len(results)}")


def describe(name: str, truth: float | None, estimate: float | None) -> str:
    """Return one cell: put in, found, and a mark when that is wrong."""
    if name == "write_unit_bytes":
        texts = ["none" if value is None else f"{value / 1024:.0f} KiB" for value in (truth, estimate)]
    else:
        texts = ["none" if value is None else f"{value:.3g}" for value in (truth, estimate)]
    return f"{texts[0]}, {texts[1]}{'' if CHECKS[name](truth, estimate) else ' ✗'}"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="which devices")
    parser.add_argument("--devices", type=int, default=30, help="how many")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first ones: to measure in pieces")
    parser.add_argument("--take", type=int, default=1000, help="measure so many")
    parser.add_argument("--mode", choices=("quick", "full"), default="full", help="how thoroughly")
    parser.add_argument("--out", type=Path, help="add a line of JSON for each device")
    parser.add_argument("--show", type=Path, nargs="+", metavar="FILE", help="print what such files hold")
    args = parser.parse_args()
    if args.show:
        lines = [line for file in args.show for line in file.read_text().splitlines()]
        show(sorted(map(json.loads, lines), key=lambda row: int(row["number"])))
        return
    if args.seed is None:
        parser.error("--seed or --show is needed")
    ensure_calibrated()
    results = []
    for number in range(args.devices)[args.skip :][: args.take]:
        device = draw_device(args.seed, number)
        model = device.emulate.model if device.emulate else None
        assert model is not None
        begin = time.monotonic()
        profile = measure(device, args.mode)
        row = {
            "number": number,
            "kind": model.kind,
            "model": model.model_dump(exclude_none=True),
            "seconds": time.monotonic() - begin,
            "truth": know_truth(model, profile["method"]["file_bytes"]),
            "found": {name: profile[name] for name in CHECKS},
            "properties": profile["properties"],
        }
        results.append(row)
        if args.out:
            with args.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
        print(f"{number}: " + ", ".join(describe(n, row["truth"][n], row["found"][n]) for n in CHECKS), file=sys.stderr)
    show(results)


if __name__ == "__main__":
    main()
