"""pgbench: totals from its report, latencies and intervals from its transaction log (``-l --log-prefix={out}/log``)."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from knobscope.generators.output import Output, find_once, interval, operation, summarise_latencies
from knobscope.generators.results import LoadResult, same
from knobscope.processes import open_foreign

#: About 13 million transactions: two numbers of each are kept.
_MOST_LOG_BYTES = 512 << 20
#: Times of a transaction are read one after the other.
_CLOCKS_US = 1000
_TPS = r"^tps = ([0-9.]+) \((?:without initial connection time|excluding connections establishing)\)$"


def read_pgbench(output: Output, interval_s: float) -> LoadResult:
    """Read a run with ``-T`` and ``-l``; times in the log are those at which transactions ended, in microseconds.

    The report's `duration` is the one asked for: how long it took follows from the rate.
    """
    text = output.text
    ok = int(find_once(r"^number of transactions actually processed: ([0-9]+)$", text, "the transactions"))
    tps = float(find_once(_TPS, text, "the rate"))
    mean_ms = float(find_once(r"^latency average = ([0-9.]+) ms", text, "the mean latency"))
    clients = int(find_once(r"^number of clients: ([0-9]+)$", text, "the clients"))
    failed_lines = "number of failed transactions:" in text  # from version 15 on
    failed = int(find_once(r"^number of failed transactions: ([0-9]+) ", text, "the failures")) if failed_lines else 0
    if ok == 0 or tps == 0:
        raise ValueError("no transaction in its report")
    window_s = output.window(ok / tps)
    log = _Log.read(output)
    in_flight_s = (ok + failed) * mean_ms / 1000 / clients
    checks = [
        same("transactions", ok, "its log", len(log.ends)),
        same("failed transactions", failed, "its log", log.failed),
        same("clients", clients, "the call", output.threads),
        same("length of the window (s)", window_s, "clients and mean latency", in_flight_s, 0.02 * window_s + 0.05),
    ]
    totals = {"ALL": operation(ok, failed, summarise_latencies(log.latencies))}
    intervals = list(_intervals(log, window_s, interval_s))
    return LoadResult(window_s, totals, intervals, checks_of_output=checks, in_flight=clients)


@dataclass
class _Log:
    """All transactions in the order in which they ended, in microseconds."""

    ends: "array[float]" = field(default_factory=lambda: array("d"))
    latencies: "array[float]" = field(default_factory=lambda: array("d"))
    failed: int = 0

    @classmethod
    def read(cls, output: Output) -> "_Log":
        """Read the files of all threads; the columns are those of pgbench's manual.

        ValueError where a client's transactions are not numbered one after the other, or overlap.
        """
        log, remaining_bytes = cls(), _MOST_LOG_BYTES
        for path in sorted(output.out.glob("log.*")):
            last: dict[str, tuple[int, float]] = {}
            with open_foreign(path) as file:
                for line in file:
                    remaining_bytes -= len(line)
                    if remaining_bytes < 0:
                        raise ValueError(f"its log is larger than {_MOST_LOG_BYTES >> 20} MiB; shorten `measure_s`")
                    if not line.endswith("\n"):
                        raise ValueError(f"its log ends inside a line: {line!r}")
                    log._add(line, last)
        return log

    def _add(self, line: str, last: dict[str, tuple[int, float]]) -> None:
        client, number, latency, _script, seconds, microseconds = line.split()[:6]
        before, end_before = last.get(client, (0, 0.0))
        if int(number) != before + 1:
            raise ValueError(f"in its log transaction {number} of client {client} follows number {before}")
        end = int(seconds) * 1e6 + int(microseconds)
        last[client] = (before + 1, end)
        if latency == "failed":
            self.failed += 1
        elif latency != "skipped":
            if end - float(int(latency)) < end_before - _CLOCKS_US:
                raise ValueError(f"in its log transaction {number} of client {client} begins before the last one ended")
            self.ends.append(end)
            self.latencies.append(float(int(latency)))


def _intervals(log: _Log, window_s: float, interval_s: float) -> Iterator[dict[str, Any]]:
    count = max(1, round(window_s / interval_s))
    if not len(log.ends):
        return
    ends, latencies = np.frombuffer(log.ends), np.frombuffer(log.latencies)
    begin = (ends - latencies).min()
    number = np.minimum(count - 1, ((ends - begin) / 1e6 / interval_s).astype(np.int64))
    order = np.argsort(number, kind="stable")
    parts = np.split(latencies[order], np.searchsorted(number[order], np.arange(1, count)))
    for index, part in enumerate(parts):
        yield interval(interval_s * (index + 1), len(part), latencies=summarise_latencies(part))
