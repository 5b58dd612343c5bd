"""How long a start takes: `knobscope watch -- true` as a whole, and other tools until their programs are loaded.

Run `python benchmarks/monitor/starts.py` as root on a machine that does nothing else. Every round starts each of them
once, in random order, on a loop device on a file in /dev/shm. The first round begins without kept programs
(/var/cache/knobscope). Prints a Markdown table of seconds: wall clock, and processor time of the process and what it
started; of the later rounds the median, the least and the most.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from conditions import with_tracefs
from costs import list_programs
from load import open_memory

from knobscope.devices import BlockDevice

_COMMAND = [str(Path(sys.executable).with_name("knobscope")), "watch"]
_HERE, _KEPT = Path(__file__).resolve().parent, Path("/var/cache/knobscope")
_READY_S = 30.0
OWN = {
    "knobscope watch": [],
    "knobscope watch --light": ["--light"],
    "knobscope watch --with waits": ["--with", "waits"],
    "knobscope watch --with syscalls": ["--with", "syscalls"],
}
OTHERS = {
    "biolatency (libbpf)": ["/usr/sbin/biolatency", "-d", "{name}"],
    "bitesize (libbpf)": ["/usr/sbin/bitesize", "-d", "{name}"],
    "bpftrace, sizes and latency": ["bpftrace", str(_HERE / "counts.bt"), "{number}"],
}


def time_run(command: Sequence[str]) -> tuple[float, float]:
    """Return the seconds that a command takes, by the wall and of processors."""
    before, began = os.times(), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    computed = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, computed


def time_load(command: Sequence[str]) -> tuple[float, float]:
    """Return the seconds until the programs of a tool are loaded, the last of them; its end takes no more processor."""
    before, began = os.times(), time.monotonic()
    with subprocess.Popen(with_tracefs([*command]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        loaded, since = 0, began
        while not loaded or time.monotonic() < since + 0.5:
            if process.poll() is not None or time.monotonic() > began + _READY_S:
                raise RuntimeError(f"{command[0]} loads no program")
            if (now := len(list_programs([process.pid]))) != loaded:
                loaded, since = now, time.monotonic()
            time.sleep(0.005)
        process.terminate()
    after = os.times()
    return since - began, after.children_user + after.children_system - before.children_user - before.children_system


def measure(rounds: int, block: BlockDevice) -> dict[str, list[tuple[float, float]]]:
    """Return wall and processor seconds of each start, by command and round."""
    values = {"name": block.name, "number": str(block.major << 20 | block.minor)}
    commands = {name: [*_COMMAND, "--device", f"/dev/{block.name}", *more, "--", "true"] for name, more in OWN.items()}
    others = {name: [word.format(**values) for word in words] for name, words in OTHERS.items()}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in (*commands, *others)}
    order = random.Random(1)  # noqa: S311 - an order, no secret
    shutil.rmtree(_KEPT, ignore_errors=True)
    for _ in range(rounds + 1):
        for name in order.sample(sorted(taken), len(taken)):
            taken[name].append(time_run(commands[name]) if name in commands else time_load(others[name]))
    return taken


def show(values: Sequence[float]) -> str:
    """Return median, least and most."""
    return f"{statistics.median(values):.2f} [{min(values):.2f}-{max(values):.2f}]"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="starts of each after the first (default: %(default)s)")
    rounds = parser.parse_args().rounds
    with open_memory() as target:
        taken = measure(rounds, target.block)
    print("| | first, wall | first, processor | later, wall | later, processor |\n|---|---|---|---|---|")
    for name, (first, *later) in taken.items():
        walls, processors = zip(*later, strict=True)
        print(f"| {name} | {first[0]:.2f} | {first[1]:.2f} | {show(walls)} | {show(processors)} |")


if __name__ == "__main__":
    main()
