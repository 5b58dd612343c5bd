"""Which programs, apart from those that are measured, keep the processors of this machine busy."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from knobscope.text.formats import format_share, join_words, loosen_units
from knobscope.watch.processors import read_ticks
from knobscope.watch.profile import OtherProgram

#: Share of all cores' time from which others are reported: the effect of less is lost in the noise of runs.
NOTICEABLE_SHARE = 0.05
_MOST_NAMED = 3
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD among the flags of /proc/PID/stat
_STEAL = 7  # field of the line `cpu` in /proc/stat

#: Number of a process and when it began: another one may have the number later.
_Key = tuple[int, int]


@dataclass(frozen=True)
class _Process:
    name: str
    parent: int
    ticks: int  # its own
    ended_ticks: int  # of its children that have ended, and of theirs


class OtherPrograms:
    """Measures from its making on: programs outside the process trees with the roots `own`, as far as /proc has them.

    Threads of the kernel belong to nobody: they work for whoever made them. Time that the host of a virtual machine
    took away (steal) counts as that of a program.
    """

    def __init__(self, own: Sequence[int]) -> None:
        self._own = own
        self._before, self._ticks_before = _read_processes(), read_ticks()

    def list_shares(self) -> list[OtherProgram]:
        """Return the programs by name with their shares of all cores' time, the largest first.

        The time of a process that has ended is that of its parent: a compiler's is that of `make`.
        """
        now, ticks = _read_processes(), read_ticks()
        own = _list_trees(self._before, self._own) | _list_trees(now, self._own)
        ended = _sum_ended(self._before, now)
        spent: Counter[str] = Counter()
        for key in now.keys() - own:
            process, before = now[key], self._before.get(key, _Process("", 0, 0, 0))
            of_ended = process.ended_ticks - before.ended_ticks - ended[key]
            spent[process.name] += process.ticks - before.ticks + max(of_ended, 0)
        spent["(the host)"] += ticks[_STEAL] - self._ticks_before[_STEAL]
        total = sum(ticks) - sum(self._ticks_before)
        return [{"name": name, "cpu_share": count / total} for name, count in spent.most_common() if count and total]


def sum_shares(programs: Iterable[OtherProgram]) -> float:
    """Return the share of all programs together."""
    return min(1.0, sum(program["cpu_share"] for program in programs))


def describe_others(programs: Sequence[OtherProgram]) -> str:
    """Name the largest programs with their shares."""
    named = [f"{program['name']} {format_share(program['cpu_share'])}" for program in programs[:_MOST_NAMED]]
    return loosen_units(join_words([*named, *(["others"] if len(programs) > _MOST_NAMED else [])]))


def _read_processes() -> dict[_Key, _Process]:
    """Return all processes but threads of the kernel."""
    processes = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            head, _, rest = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
            fields = rest.split()
            if not int(fields[6]) & _KERNEL_THREAD:
                name = "".join(char if char.isprintable() else "?" for char in head.partition("(")[2])
                user, system, ended_user, ended_system = map(int, fields[11:15])
                key = int(entry.name), int(fields[19])
                processes[key] = _Process(name, int(fields[1]), user + system, ended_user + ended_system)
    return processes


def _list_trees(processes: dict[_Key, _Process], roots: Sequence[int]) -> set[_Key]:
    """Return the roots and all their descendants."""
    children: dict[int, list[_Key]] = {}
    for key, process in processes.items():
        children.setdefault(process.parent, []).append(key)
    queue = [key for key in processes if key[0] in roots]
    trees: set[_Key] = set()
    while queue:
        key = queue.pop()
        trees.add(key)
        queue += children.get(key[0], [])
    return trees


def _sum_ended(before: dict[_Key, _Process], now: dict[_Key, _Process]) -> Counter[_Key]:
    """Return the earlier ticks of processes that have ended, by the ancestor that is left, whose sum has them now."""
    keys = {key[0]: key for key in before}
    sums: Counter[_Key] = Counter()
    for ended in before.keys() - now.keys():
        heir: _Key | None = ended
        while heir is not None and heir not in now:
            heir = keys.get(before[heir].parent)
        if heir is not None:
            sums[heir] += before[ended].ticks + before[ended].ended_ticks
    return sums
