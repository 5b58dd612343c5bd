"""The machine that measured, in words: results of two machines are not comparable, whatever else is equal."""

import os
import platform
from functools import cache
from pathlib import Path

__all__ = ["describe_machine"]


@cache
def describe_machine() -> str:
    """Return kernel, processor and memory, as far as the system tells."""
    models = _values_of("/proc/cpuinfo", "model name")
    memory = _values_of("/proc/meminfo", "MemTotal")
    parts = [
        f"{platform.system()} {platform.release()}",
        f"{os.cpu_count()} cores of {models[0] if models else platform.machine()}",
        *(f"{round(int(total.split()[0]) / 1024**2)} GiB of memory" for total in memory),
    ]
    return ", ".join(parts)


def _values_of(path: str, key: str) -> list[str]:
    pairs = (line.partition(":") for line in Path(path).read_text(encoding="utf-8").splitlines())
    return [value.strip() for name, _, value in pairs if name.strip() == key]
