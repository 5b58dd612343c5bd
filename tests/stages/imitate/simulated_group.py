"""A simulation of clients whose commits share flushes."""

import heapq
import random


def simulate_group_commit(clients: int, cpu_s: float, flush_s: float) -> tuple[int, float]:
    """Return flushes, and the seconds for a thousand operations: each takes CPU time, then waits for a flush.

    A flush begins as soon as a client waits and none is under way, and it is for all that wait by then. Clients share
    two processors.
    """
    draw, now, flushes, done = random.Random(1), 0.0, 0, 0
    events: list[tuple[float, str, list[int]]] = []
    ready, waiting, processors, is_flushing = list(range(clients)), list[int](), 2, False
    while done < 1000:
        while ready and processors:
            processors -= 1
            heapq.heappush(events, (now + draw.gammavariate(4, cpu_s / 4), "ready", [ready.pop(0)]))
        if waiting and not is_flushing:
            is_flushing, flushes = True, flushes + 1
            heapq.heappush(events, (now + flush_s, "flushed", waiting))
            waiting = []
        now, event, who = heapq.heappop(events)
        if event == "ready":
            processors += 1
            waiting += who
        else:
            is_flushing, done, ready = False, done + len(who), ready + who
    return flushes, now
