"""Turns the counters of a run into its I/O profile: plain rows with sums, shares and units, ready for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from buckets import list_buckets
from counters import OWNERS, Reading, Snapshot
from epochs import OPERATIONS, Totals
from patterns import summarise_pattern

Row = dict[str, Any]
#: Part of the profile -> owners it is made of.
_PARTS = {
    "own": ("own",),
    "inode": ("inode",),
    "journal": ("journal",),
    "flush": ("flush",),
    "foreign": ("foreign", "unknown", "unseen"),
}
#: Owners that `requests` and everything derived from it counts.
_COUNTED = {"device": OWNERS, "process": ("own", "inode", "flush")}
#: Owners of data nobody can vouch for. A journal is the workload's only where the device is.
_UNATTRIBUTED = {"device": ("unseen", "unknown"), "process": ("unseen", "unknown", "journal")}


def summarise_run(reading: Reading, snapshots: Sequence[Snapshot], scope: str) -> Row:
    """Return the profile of a run; times in the series count from its beginning."""
    counted = [_count(totals, "requests", _COUNTED[scope]) for totals in reading.totals]
    depths = _list_depths(reading)
    # A flush has no owner: it stores what all have written.
    data = [totals for op, totals in zip(OPERATIONS, reading.totals, strict=True) if op != "flush"]
    total = sum(sum(totals["requests"]) for totals in data)
    unattributed = sum(_count(totals, "requests", _UNATTRIBUTED[scope]) for totals in data)
    return {
        "duration_s": (reading.end_ns - reading.begin_ns) / 1e9,
        "monitor": "bpf",
        "scope": scope,
        "lost_events": _add(reading, "lost"),
        "unattributed_share": unattributed / total if total else 0.0,
        "completions_without_start": _add(reading, "unstarted") + _add(reading, "early"),
        "starts_without_completion": sum(counted) - _add(reading, "completed") - _add(reading, "late"),
        "files_overflow": reading.origins.overflow,
        "addresses_overflow": _add(reading, "unfiled"),
        "hidden_completions": _add(reading, "hidden") + len(reading.unended_ns),
        **bound_depth(depths, _add(reading, "hidden_ns") + sum(reading.unended_ns), _add(reading, "unstarted_ns")),
        "missed_events": sum(row["missed"] for row in reading.programs),
        "unnamed_submitters": reading.origins.unnamed,
        "unwritten_bytes": _find_unwritten(reading),
        "moved_processes": reading.moved_processes,
        "requeues": _add(reading, "requeues"),
        "failed_requests": _add(reading, "errors"),
        "passthrough_requests": _add(reading, "passthrough"),
        "passthrough_bytes": _add(reading, "passthrough_bytes"),
        **summarise_depth(depths),
        "io_profile": [_summarise_operation(i, reading, scope) for i in range(len(OPERATIONS))],
        "io_sizes": list_sizes(reading.details, reading.odd_sizes),
        "queue_depth": depths,
        "io_latency": list_times(reading.details, "latency"),
        "queue_wait": list_times(reading.details, "wait"),
        "files": _list_files(reading),
        "addresses": _list_addresses(reading),
        "submitters": _list_submitters(reading),
        "series": _list_intervals(reading.begin_ns, snapshots, scope),
        "programs": reading.programs,
    }


def bound_depth(rows: Sequence[Row], hidden_ns: int, unseen_ns: int) -> dict[str, float | None]:
    """Return by how much what the programs did not see may have changed `mean_depth` and `busy_share`, at most.

    `hidden_ns`: time for which requests counted as in flight that had ended unseen, at most; `unseen_ns`: for which
    requests did not count whose issue was not seen. A request that was not in flight makes the depth too high while
    others were, and the busy time too long where it was alone, which makes the mean over that time too low. So the
    mean is highest without the time at the lowest depths.
    """
    times = {row["depth"]: row["time_ns"] for row in rows if row["queue"] == -1}
    total, area = sum(times.values()), sum(depth * time_ns for depth, time_ns in times.items())
    busy = total - times.get(0, 0)
    if not busy:
        return {"depth_excess": None, "depth_shortfall": None, "busy_error": unseen_ns / total if total else None}
    mean, unseen_alone = area / busy, min(unseen_ns, total - busy)
    lowest = max((area - hidden_ns + unseen_alone) / (busy + unseen_alone), 1.0)
    shortest, highest, remaining_ns = busy, (area + unseen_ns) / busy, float(hidden_ns)
    for depth, time_ns in sorted((depth, time_ns) for depth, time_ns in times.items() if depth):
        emptied = min(remaining_ns / depth, time_ns)
        remaining_ns -= emptied * depth
        shortest -= emptied
        area -= emptied * depth
        if shortest > 0:
            highest = max(highest, (area + unseen_ns) / shortest)
    return {
        "depth_excess": max(mean - lowest, 0.0),
        "depth_shortfall": highest - mean,
        "busy_error": max(busy - shortest, unseen_alone) / total,
    }


def _find_unwritten(reading: Reading) -> int:
    """Return bytes of the page cache that the followed processes dirtied and that were not written to the device.

    At most: a folio is dirtied as a whole but may be written in part, what is dirty may be cut off with its file, and
    the kernel's own sum of dirty pages, of all devices, may be others'. Files of which all is written have none. A RAID
    writes more bytes than were dirtied.
    """
    bounds = [reading.dirty_bytes, reading.unwritten_bytes]
    if reading.disks == 1:
        bounds.append(_add(reading, "dirtied") - _add(reading, "written_back"))
    return max(min(bounds), 0)


def _count(totals: Totals, quantity: str, owners: Sequence[str]) -> int:
    return sum(totals[quantity][OWNERS.index(owner)] for owner in owners)


def _add(reading: Reading, field: str) -> int:
    return sum(totals[field] for totals in reading.totals)


def _summarise_operation(index: int, reading: Reading, scope: str) -> Row:
    op, totals = OPERATIONS[index], reading.totals[index]
    requests = _count(totals, "requests", _COUNTED[scope])
    row: Row = {"op": op, "requests": requests, "bytes": _count(totals, "bytes", _COUNTED[scope])}
    for name, is_judged in (("aligned", op != "flush"), ("sequential", op in ("read", "write"))):
        row[f"{name}_requests"] = totals[name] if is_judged else None
        row[f"{name}_share"] = totals[name] / requests if is_judged and requests else None
    row["sequential_bytes"] = totals["sequential_bytes"] if op in ("read", "write") else None
    row["append_requests"] = totals["appended"] if op == "write" and reading.disks == 1 else None
    row |= {name: totals[name] for name in ("fua", "preflush", "sync", "meta")}
    row |= {name: totals[name] if scope == "device" else None for name in ("merges", "splits")}  # whose is not known
    for part, owners in _PARTS.items():
        row[f"{part}_requests"] = _count(totals, "requests", owners)
        row[f"{part}_bytes"] = _count(totals, "bytes", owners)
    return row | {"device_requests": sum(totals["requests"]), "device_bytes": sum(totals["bytes"])}


def summarise_depth(rows: Sequence[Row]) -> Row:
    """Return what `queue_depth` (queue -1: the whole device) says in four numbers.

    `busy_share`: of the time, with a request in flight; of that time `mean_depth` and `depth_one_share`, with one
    only; `busiest_queue_share`: of all requests in flight, summed over time, in the hardware queue that had most. The
    last three are None when no request was in flight.
    """
    times = {row["depth"]: row["time_ns"] for row in rows if row["queue"] == -1}
    busy = sum(time_ns for depth, time_ns in times.items() if depth)
    area = sum(depth * time_ns for depth, time_ns in times.items())
    queues = {row["queue"] for row in rows if row["queue"] >= 0} or {-1}
    areas = [sum(row["depth"] * row["time_ns"] for row in rows if row["queue"] == queue) for queue in queues]
    return {
        "busy_share": busy / sum(times.values()) if times else 0.0,
        "mean_depth": area / busy if busy else None,
        "depth_one_share": times.get(1, 0) / busy if busy else None,
        "busiest_queue_share": max(areas) / sum(areas) if sum(areas) else None,
    }


def _list_files(reading: Reading) -> list[Row]:
    rows = []
    for file in reading.origins.files:
        for op, access in zip(OPERATIONS, file.access, strict=False):
            requests, sequential = access.pattern.judged, access.pattern.sequential
            if requests:
                row = {"number": file.number, "device": file.device, "inode": file.inode}
                row |= {"generation": file.generation, "name": file.name}
                row |= {
                    "op": op,
                    "requests": requests,
                    "bytes": access.bytes,
                    "first_sector": access.first,
                    "end_sector": access.end,
                }
                row |= {"sequential_requests": sequential}
                row |= summarise_pattern(access.pattern, is_write=op == "write")
                rows.append(row if reading.disks == 1 else row | _forget_order(row))
    return rows


def _forget_order(row: Row) -> Row:
    """Return without a value what is judged by distances: on several disks a file's addresses go back and forth."""
    unknown = ("append_share", "strided_share", "random_share", "first_sector", "end_sector")
    return dict.fromkeys(unknown) | {"pattern": row["pattern"] if row["pattern"] in ("sequential", "few") else None}


def _list_addresses(reading: Reading) -> list[Row]:
    return [
        {"op": OPERATIONS[op], "sector": sector, "requests": requests, "bytes": size}
        for (op, sector), (requests, size) in sorted(reading.origins.addresses.items())
    ]


def _list_submitters(reading: Reading) -> list[Row]:
    return [
        {"submitter": name, "op": op, "requests": requests, "bytes": size}
        for name, counts in sorted(reading.origins.submitters.items())
        for op, (requests, size) in zip(OPERATIONS, counts, strict=True)
        if requests
    ]


def list_sizes(details: Sequence[Totals], odd_sizes: Mapping[tuple[int, int], int]) -> list[Row]:
    """Return rows of `io_sizes`: exact counters per operation, and the others by operation and size."""
    sizes = {(i, (n + 1) * 512): v for i, row in enumerate(details) for n, v in enumerate(row["sizes"]) if v}
    sizes |= odd_sizes
    return [{"op": OPERATIONS[op], "bytes": size, "requests": n} for (op, size), n in sorted(sizes.items())]


def _list_depths(reading: Reading) -> list[Row]:
    queues = dict(reading.depth_times)
    queues[-1] = queues.pop(max(queues)) if len(queues) > 1 else queues[0]
    return [
        {"queue": queue, "depth": depth, "time_ns": time_ns}
        for queue, times in sorted(queues.items())
        for depth, time_ns in enumerate(times)
        if time_ns
    ]


def list_times(details: Sequence[Totals], quantity: str) -> list[Row]:
    """Return the buckets that are not empty of a histogram per operation."""
    return [
        {"op": OPERATIONS[i], **bucket}
        for i, row in enumerate(details)
        for bucket in list_buckets(row[quantity], "requests")
    ]


def _list_intervals(begin_ns: int, snapshots: Sequence[Snapshot], scope: str) -> list[Row]:
    rows = []
    for before, after in pairwise(snapshots):
        depth = (after.depth_area_ns - before.depth_area_ns) / max(after.at_ns - before.at_ns, 1)
        for op, then, now in zip(OPERATIONS, before.totals, after.totals, strict=True):
            requests = _count(now, "requests", _COUNTED[scope]) - _count(then, "requests", _COUNTED[scope])
            size = _count(now, "bytes", _COUNTED[scope]) - _count(then, "bytes", _COUNTED[scope])
            completed = now["completed"] - then["completed"]
            latency_us = (now["latency_ns"] - then["latency_ns"]) / completed / 1e3 if completed else None
            in_flight = _count(now, "requests", _COUNTED[scope]) - now["completed"]
            if requests or completed or (in_flight and depth):  # a stall has no requests, but a depth
                row = {"t_s": (after.at_ns - begin_ns) / 1e9, "op": op, "requests": requests, "bytes": size}
                rows.append(row | {"depth": depth, "latency_mean_us": latency_us})
    return rows
