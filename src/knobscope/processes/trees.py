"""Processes with all that descend from them."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["list_tree"]


def list_tree(roots: Sequence[int]) -> list[int]:
    """Return processes with all their descendants; one that is born meanwhile may be missing."""
    found = dict.fromkeys(roots)  # a root may be a child of another one
    queue = list(found)
    for pid in queue:
        with contextlib.suppress(OSError):  # it has ended
            for children in Path("/proc", str(pid), "task").glob("*/children"):
                new = [child for child in map(int, children.read_text().split()) if child not in found]
                found |= dict.fromkeys(new)
                queue += new
    return queue
