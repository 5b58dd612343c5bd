"""Control groups of tests."""

import os
from fnmatch import filter as matching
from pathlib import Path

from waiting import wait_until


def find_cgroup2() -> str:
    """Return where cgroup v2 is mounted, or nothing."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return next((line.split()[4] for line in lines if " - cgroup2 " in line), "")


def find_cgroups(pattern: str, below: Path = Path("/sys/fs/cgroup")) -> list[Path]:
    """Return those whose names match, from the top down; groups of other tests may vanish meanwhile."""
    return [Path(top, name) for top, names, _ in os.walk(below) for name in matching(names, pattern)]


def empty_cgroup(group: Path) -> None:
    """End what a failed test has left in a group, and remove what monitors made in it."""
    (group / "cgroup.kill").write_text("1")
    assert wait_until(lambda: "populated 0" in (group / "cgroup.events").read_text())
    for left in reversed(find_cgroups("knobscope-*", group)):
        left.rmdir()
