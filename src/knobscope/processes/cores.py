"""The cores that this process may use."""

import os


def usable_cores() -> int:
    """Return on how many cores this process may run: all of them where the system does not say (macOS)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
