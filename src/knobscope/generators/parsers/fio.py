"""fio with ``--output-format=json --write_bw_log={out}/fio --log_avg_msec=50``, as a program whose I/O is known."""

import json
from collections import defaultdict

from knobscope.generators.output import Output, even_intervals, operation
from knobscope.generators.results import LoadResult
from knobscope.processes import read_foreign

__all__ = ["read_fio"]

_OPERATION_BYTES = 1024
_SIDES = {"read": "READ", "write": "WRITE"}


def read_fio(output: Output, interval_s: float) -> LoadResult:
    """Read totals from its report, intervals from its logs of bandwidth.

    fio knows bytes and requests. An operation is a KiB here, so that settings that move the same data with requests of
    other sizes are compared for the same work; so there are no latencies, which fio gives for requests.
    """
    begin, end = output.text.find("{"), output.text.rfind("}")
    if begin < 0:
        raise ValueError("no report in JSON")
    jobs = json.loads(output.text[begin : end + 1])["jobs"]
    window_s = max(job["job_runtime"] for job in jobs) / 1000
    done = {name: sum(job[side]["io_bytes"] for job in jobs) // _OPERATION_BYTES for side, name in _SIDES.items()}
    total = sum(done.values())
    operations = {name: operation(ok, 0, {}) for name, ok in {**done, "ALL": total}.items() if ok or name == "ALL"}
    return LoadResult(window_s, operations, even_intervals(_progress(output, total, window_s), interval_s, window_s))


def _progress(output: Output, total: int, window_s: float) -> list[tuple[float, float]]:
    """Return (seconds, operations so far); each line of a log is the mean since the one before, in KiB/s."""
    steps: dict[float, float] = defaultdict(float)
    for path in sorted(output.out.glob("fio_bw.*.log")):
        before: dict[str, float] = defaultdict(float)
        for line in read_foreign(path).splitlines():
            at_ms, kib_s, direction, *_ = line.split(",")
            at_s = float(at_ms) / 1000
            steps[at_s] += float(kib_s) * (at_s - before[direction])
            before[direction] = at_s
    points: list[tuple[float, float]] = []
    done = 0.0
    for at_s in sorted(steps):
        done += steps[at_s]
        if at_s < window_s and done <= total:
            points.append((at_s, done))
    return [*points, (window_s, float(total))]
