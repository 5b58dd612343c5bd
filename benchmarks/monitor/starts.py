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
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from conditions import CONDITIONS, SETTLED_S, Condition
from load import Target, open_memory

_COMMAND = [str(Path(sys.executable).with_name("knobscope")), "watch"]
_KEPT = Path("/var/cache/knobscope")
OWN = {
    "knobscope watch": [],
    "knobscope watch --light": ["--light"],
    "knobscope watch --with waits": ["--with", "waits"],
    "knobscope watch --with syscalls": ["--with", "syscalls"],
}
OTHERS = ("biolatency (libbpf)", "bitesize (libbpf)", "bpftrace, sizes and latency")


def time_start(start: Callable[[], float]) -> tuple[float, float]:
    """Return the seconds by the wall until a start has ended, as it tells, and those of processors, to its end."""
    before, began = os.times(), time.monotonic()
    ended = start()
    after = os.times()
    return ended - began, after.children_user + after.children_system - before.children_user - before.children_system


def run(command: Sequence[str]) -> float:
    """Run a command and return when it has ended."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic()


def load(condition: Condition, target: Target) -> float:
    """Start a tool, end it, and return when its last program was loaded."""
    with condition.open(target):
        return time.monotonic() - SETTLED_S


def measure(rounds: int, target: Target) -> dict[str, list[tuple[float, float]]]:
    """Return wall and processor seconds of each start, by name and round."""
    command = [*_COMMAND, "--device", target.file]
    starts = {name: partial(run, [*command, *more, "--", "true"]) for name, more in OWN.items()}
    starts |= {tool.name: partial(load, tool, target) for tool in CONDITIONS if tool.name in OTHERS}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in starts}
    order = random.Random(1)  # noqa: S311 - an order, no secret
    shutil.rmtree(_KEPT, ignore_errors=True)
    for _ in range(rounds + 1):
        for name in order.sample(sorted(taken), len(taken)):
            taken[name].append(time_start(starts[name]))
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
        taken = measure(rounds, target)
    print("| | first, wall | first, processor | later, wall | later, processor |\n|---|---|---|---|---|")
    for name, (first, *later) in taken.items():
        walls, processors = zip(*later, strict=True)
        print(f"| {name} | {first[0]:.2f} | {first[1]:.2f} | {show(walls)} | {show(processors)} |")


if __name__ == "__main__":
    main()
