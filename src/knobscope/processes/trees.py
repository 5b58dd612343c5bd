"""Processes with all that descend from them."""

import contextlib
from collections.abc import Sequence
from pathlib import Path


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


def number_threads(root: int) -> dict[int, int]:
    """Return the threads of a process and its descendants: number in their own PID namespace -> number in ours.

    Of two with the same number the one in the inner namespace counts: the outer ones only keep it.
    """
    chains: list[list[int]] = []
    for pid in list_tree([root]):
        for status in Path("/proc", str(pid), "task").glob("*/status"):
            with contextlib.suppress(OSError):  # it has ended
                text = status.read_text(encoding="utf-8", errors="replace")
                chains += ([*map(int, line.split()[1:])] for line in text.splitlines() if line.startswith("NSpid:"))
    return {chain[-1]: chain[0] for chain in sorted(chains, key=len)}
