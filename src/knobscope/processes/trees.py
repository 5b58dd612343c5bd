"""Processes with all that descend from them, and when each began."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

_ENDED = ("Z", "X")  # states of a process of which only the exit code is left


def read_process_stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the name: state, parent and so on. OSError: it has ended."""
    return Path("/proc", str(pid), "stat").read_text(errors="replace").rpartition(")")[2].split()


def read_start(pid: int) -> int | None:
    """Return when a process began, in ticks since boot, which tells it from a later one with its number.

    None: there is none, or nothing but its exit code.
    """
    try:
        fields = read_process_stat(pid)
    except OSError:
        return None
    return None if fields[0] in _ENDED else int(fields[19])


def list_ancestors(pid: int) -> list[int]:
    """Return parent, grandparent and so on."""
    ancestors: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        while parent := int(read_process_stat(pid)[1]):
            ancestors.append(pid := parent)
    return ancestors


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
