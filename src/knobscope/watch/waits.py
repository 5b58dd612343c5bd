"""Joins what single threads waited for to classes of threads: rows of tables `waits` and `wait_chains`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knobscope.tables import RunRow
from knobscope.tables.waits import WaitChainRow, WaitRow
from knobscope.thread_classes import SESSION, class_of_thread
from knobscope.watch.profile import CountedThread, Profile

#: Rounding may leave a thread this share short of its wall time; more is time of which nothing is known.
_ROUNDING = 1e-6
#: Of the mean thread that clients wake, how often one is woken that serves them.
_SERVED = 0.1
#: Key of a sum: class of the waiting threads, class of the one waited for (None: not known), reason, links.
_Key = tuple[str, str | None, str, int]


@dataclass
class _Sum:
    waits: int = 0
    time_us: float = 0.0
    through_us: float = 0.0
    longest_us: float = 0.0

    def add(self, waits: int, time_us: float, longest_us: float, *, is_through: bool) -> None:
        self.waits += waits
        self.time_us += time_us
        self.through_us += time_us if is_through else 0.0
        self.longest_us = max(self.longest_us, longest_us)


def sum_waits(profile: Profile, patterns: Mapping[str, str]) -> tuple[list[WaitRow], list[WaitChainRow]]:
    """Return the rows of both tables without `run_id`, from what a profile says of single threads.

    `patterns` are those of the DBMS's spec, class -> regular expression; threads of the kernel are never of these
    classes. Where the parts of a thread do not reach its wall time, the rest is `unknown`.
    """
    threads = profile.get("wait_threads", [])
    classes = find_classes(threads, patterns)
    counts = {name: list(classes.values()).count(name) for name in classes.values()}
    remaining_us = {thread["tid"]: thread["wall_us"] for thread in threads}
    by_reason: dict[tuple[str, str], _Sum] = {}
    by_chain: dict[_Key, _Sum] = {}
    for row in profile.get("waits", []):
        if row["tid"] not in classes:
            continue  # it ended before the window
        own, reason, links = classes[row["tid"]], row["reason"], row["links"]
        figures = row["waits"], row["time_us"], row["longest_us"]
        remaining_us[row["tid"]] -= row["time_us"]
        by_reason.setdefault((own, reason), _Sum()).add(*figures, is_through=links > 0)
        if links > 0:
            by_chain.setdefault((own, classes.get(row["via"]), reason, links), _Sum()).add(*figures, is_through=True)
    for thread in threads:
        rest_us = remaining_us[thread["tid"]]
        if rest_us > _ROUNDING * thread["wall_us"]:
            by_reason.setdefault((classes[thread["tid"]], "unknown"), _Sum()).add(0, rest_us, rest_us, is_through=False)
    return _rows(by_reason, counts), _chains(by_chain)


def find_classes(threads: Sequence[CountedThread], patterns: Mapping[str, str]) -> dict[int, str]:
    """Return the class of each thread by its number.

    A thread serves clients when somebody outside the DBMS wakes it to work: a timer seems to do so, too, but seldom.
    Threads that take turns to wait in one epoll descriptor, as those of a program in Go, run any work of their process.
    What such a thread waits for is not what one client waits for, so none of them serves clients by itself.
    """
    woken = [thread for thread in threads if thread["is_followed"] and thread["served"] > 0]
    least = _SERVED * sum(thread["served"] for thread in woken) / max(len(woken), 1)
    waiting = Counter((thread["pid"], thread.get("epoll")) for thread in woken)
    return {
        thread["tid"]: class_of_thread(
            patterns if thread["is_followed"] else {},
            thread["name"],
            thread["title"],
            serves=thread["is_followed"]
            and thread["served"] >= max(least, 1)
            and (thread.get("epoll") is None or waiting[thread["pid"], thread.get("epoll")] == 1),
        )
        for thread in threads
    }


def _rows(sums: Mapping[tuple[str, str], _Sum], counts: Mapping[str, int]) -> list[WaitRow]:
    """Return the rows by class, in each the longest time first."""
    return [
        {
            "thread_class": thread_class,
            "reason": reason,
            "threads": counts[thread_class],
            "waits": total.waits,
            "time_us": total.time_us,
            "through_us": total.through_us,
            "longest_us": total.longest_us,
        }
        for (thread_class, reason), total in sorted(sums.items(), key=lambda item: (item[0][0], -item[1].time_us))
    ]


def _chains(sums: Mapping[_Key, _Sum]) -> list[WaitChainRow]:
    return [
        {
            "thread_class": thread_class,
            "via_class": via,
            "reason": reason,
            "links": links,
            "waits": total.waits,
            "time_us": total.time_us,
            "longest_us": total.longest_us,
        }
        for (thread_class, via, reason, links), total in sorted(
            sums.items(), key=lambda item: (item[0][0], -item[1].time_us)
        )
    ]


def make_wait_columns(profile: Profile, patterns: Mapping[str, str], window_s: float) -> RunRow:
    """Return over which time waits of sessions were counted, and what was not; None where they were not watched.

    `window_s`: of the load. Where clients are threads of the DBMS's process, other threads outlive them; where each
    operation connects anew, a session lives for a part of the window.
    """
    threads = profile.get("wait_threads", [])
    classes = find_classes(threads, patterns)
    sessions = [thread["wall_us"] / 1e6 for thread in threads if classes[thread["tid"]] == SESSION]
    longest = max((thread["wall_us"] / 1e6 for thread in threads), default=None)
    lost = profile.get("lost_waits")
    return {
        "waits_s": longest if longest is None or not sessions else min(longest, max(*sessions, window_s)),
        "lost_waits": None if lost is None else sum(lost.values()),
    }
