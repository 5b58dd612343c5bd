"""fio with ``--output-format=json --write_bw_log={out}/fio --log_avg_msec=50``, as a program whose I/O is known."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from knobscope.generators.output import Output, even_intervals, operation, whole_lines
from knobscope.generators.results import Check, LoadResult, same
from knobscope.processes import read_foreign

_OPERATION_BYTES = 1024
#: Means of 50 ms, the last of which is missing, are this far from what was moved.
_LOGGED = 0.35
_SIDES = {"read": "READ", "write": "WRITE"}


def read_fio(output: Output, interval_s: float) -> LoadResult:
    """Read totals from its report, intervals from its logs of bandwidth.

    fio knows bytes and requests. An operation is a KiB here, so that settings that move the same data with requests of
    other sizes are compared for the same work; so there are no latencies, which fio gives for requests.
    """
    text = output.text
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0:
        raise ValueError("no report in JSON")
    jobs = json.loads(text[begin : end + 1], object_pairs_hook=_without_doubles)["jobs"]
    window_s = output.window(max(job["job_runtime"] for job in jobs) / 1000)
    counts = {name: sum(job[side]["io_bytes"] for job in jobs) // _OPERATION_BYTES for side, name in _SIDES.items()}
    total = sum(counts.values())
    operations = {name: operation(ok, 0, {}) for name, ok in {**counts, "ALL": total}.items() if ok or name == "ALL"}
    checks = [check for job in jobs for side in _SIDES for check in _side_checks(job[side], window_s)]
    points = _progress(output)
    if points:  # none in a call that is over at once
        logged_s, logged = points[-1]
        checks.append(Check("end of its logs (s)", logged_s, "the window", 0.9 * window_s - 0.5, 1.1 * window_s + 0.5))
        checks.append(
            Check("KiB in its logs", logged, "its report", (1 - _LOGGED) * total - 64, (1 + _LOGGED) * total + 64)
        )
    points = [point for point in points if point[0] < window_s and point[1] <= total]
    intervals = even_intervals([*points, (window_s, float(total))], interval_s, window_s)
    return LoadResult(window_s, operations, intervals, checks_of_output=checks)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of the report; ValueError where it has a figure twice.

    An object of texts alone lists the options of a job as they were given, and the last of several has an effect.
    """
    if len(dict(pairs)) < len(pairs) and not all(isinstance(value, str) for _, value in pairs):
        raise ValueError("its report has a key twice")
    return dict(pairs)


def _side_checks(side: Mapping[str, Any], window_s: float) -> Iterator[Check]:
    """Hold bytes against bandwidth and time, of the reads or writes of a job."""
    moved, runtime_s = side["io_bytes"], side["runtime"] / 1000
    yield same("bytes", moved, "bandwidth and time", side["bw_bytes"] * runtime_s, 1 + runtime_s)
    yield Check("time of a job (s)", runtime_s, "the window", 0 if moved == 0 else 1e-9, window_s + 0.05)


def _progress(output: Output) -> list[tuple[float, float]]:
    """Return (seconds, KiB so far); each line of a log is the mean since the one before, in KiB/s."""
    steps: dict[float, float] = defaultdict(float)
    for path in sorted(output.out.glob("fio_bw.*.log")):
        before: dict[str, float] = defaultdict(float)
        for line in whole_lines(read_foreign(path), path.name):
            at_ms, kib_s, direction, *_ = line.split(",")
            at_s = float(at_ms) / 1000
            if at_s < before[direction]:
                raise ValueError(f"{path.name} goes back from {before[direction]:g} to {at_s:g} s")
            steps[at_s] += float(kib_s) * (at_s - before[direction])
            before[direction] = at_s
    return list(zip(sorted(steps), accumulate(steps[at_s] for at_s in sorted(steps)), strict=True))
