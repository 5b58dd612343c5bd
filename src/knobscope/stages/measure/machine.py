"""The machine that measured, in words: results of two machines are not comparable, whatever else is equal."""

import os
import platform
from functools import cache
from pathlib import Path


@cache
def describe_machine() -> str:
    """Return kernel, processor and memory, as far as the system tells."""
    models = _values_of("/proc/cpuinfo", "model name")
    memory = _values_of("/proc/meminfo", "MemTotal")
    parts = [
        f"{platform.system()} {platform.release()}",
        f"{_count_cores()} of {models[0] if models else platform.machine()}",
        *(f"{round(int(total.split()[0]) / 1024**2)} GiB of memory" for total in memory),
    ]
    return ", ".join(parts)


def _count_cores() -> str:
    """Return how many cores this process may use: a cluster may bind a job to some of them."""
    usable, all_cores = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    return f"{all_cores} cores" if usable == all_cores else f"{usable} of {all_cores} cores"


def _values_of(path: str, key: str) -> list[str]:
    pairs = (line.partition(":") for line in Path(path).read_text(encoding="utf-8").splitlines())
    return [value.strip() for name, _, value in pairs if name.strip() == key]
