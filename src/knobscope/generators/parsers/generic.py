"""The form for load generators of one's own: a row a second and a total, as CSV or JSON lines.

Rows have `second` (the end of the interval since the load began, or `total`), `operations`, and as far as known `op`,
`errors`, `mean_us`, `p50_us`, `p95_us`, `p99_us`, `p999_us`, `max_us`; in JSON also `histogram`: operations by the
upper end of their latency in microseconds. Lines before the head of a CSV, and lines that are no JSON object, belong
to the generator. docs/how-to/own-benchmark.md has programs that print it.
"""

import csv
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from knobscope.generators.output import PERCENTILES, Output, interval, operation, percentile, require_rising
from knobscope.generators.results import Check, LoadResult, same

_LATENCIES = ("mean_us", *PERCENTILES, "max_us")
_COLUMNS = {"second", "op", "operations", "errors", "histogram", *_LATENCIES}
_ALL, _TOTAL = "ALL", "total"
#: A stated latency is this near to that of a histogram, whose bins may be wide.
_COARSE = 2.0
#: A mean of all operations may differ so much from that by its intervals, and by 1 us: means are rounded.
_ROUNDED = 1.05

Row = dict[str, Any]


def read_generic(output: Output, interval_s: float) -> LoadResult:
    """Read rows and totals; those of all operations together are sums where the output has none of its own.

    ValueError for a row of another form, for kinds of operations without a total, and for totals that rows contradict.
    """
    rows = list(_read_rows([line for _, line in output.lines]))
    totals = {row["op"]: row for row in rows if row["second"] == _TOTAL}
    steps = [row for row in rows if row["second"] != _TOTAL]
    if len(totals) + len(steps) < len(rows) or not totals or not steps:
        raise ValueError("no row with `second` = total, none of an interval, or two totals of one kind of operation")
    by_kind = {name: [row for row in steps if row["op"] == name] for name in {row["op"] for row in rows}}
    checks = [check for name, own in by_kind.items() for check in _compare(name, own, totals)]
    ends = {own[-1]["second"] for own in by_kind.values() if own}
    if len(ends) > 1:
        raise ValueError(
            f"kinds of operations end at different seconds: {', '.join(f'{end:g}' for end in sorted(ends))}"
        )
    window_s = output.window(ends.pop())
    operations = {name: _summarise(total, by_kind[name]) for name, total in totals.items()}
    if _ALL not in operations:
        together = {"operations": 0, "errors": 0}
        for row in totals.values():
            together = {name: count + row[name] for name, count in together.items()}
        operations[_ALL] = _summarise(together, steps)
    intervals = [_interval(second, by_kind.get(_ALL) or steps) for second in sorted({row["second"] for row in steps})]
    # Intervals that add up to the total are all there, however long they are.
    return LoadResult(window_s, operations, intervals, checks_of_output=checks, interval_s=window_s / len(intervals))


def _read_rows(lines: Sequence[str]) -> Iterator[Row]:
    """Yield the rows, numbers as such; JSON where a line is an object, else CSV from its head on."""
    numbered = [(number, row) for number, line in enumerate(lines, 1) if (row := _read_object(line)) is not None]
    if not any("second" in row for _, row in numbered):
        heads = [number for number, line in enumerate(lines) if "second" in line.split(",") and "operations" in line]
        if not heads:
            printed = f"its {len(lines)} lines" if lines else "it printed nothing"
            raise ValueError(f"{printed}: no CSV header with `second` and `operations`, and no JSON with `second`")
        if len(heads) > 1:
            raise ValueError(f"{len(heads)} CSV headers with `second` and `operations`; expected one")
        reader = csv.DictReader([line for line in lines[heads[0] :] if line.strip()])
        numbered = list(enumerate(reader, heads[0] + 2))
    for number, row in numbered:
        try:
            yield _read_row(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"line {number}: no such row as expected ({error!r}): {str(row)[:120]}") from error


def _read_object(line: str) -> dict[str | None, Any] | None:
    """Return the JSON object of a line; None where it is none, whatever it begins with."""
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read_row(row: Mapping[str | None, Any]) -> Row:
    if unknown := [name for name in row if name not in _COLUMNS]:
        raise ValueError(f"unknown column {unknown[0]!r}")
    # The keys of a JSON object have no order, and those of Go are sorted as text.
    bins = sorted((float(end), _count(number)) for end, number in (row.get("histogram") or {}).items())
    histogram = dict(bins)
    if len(histogram) < len(bins):
        raise ValueError("a histogram states the same latency twice")
    latencies = {name: float(row[name]) for name in _LATENCIES if row.get(name) not in (None, "")}
    if any(not 0 <= latency < math.inf for latency in latencies.values()):
        raise ValueError("a latency that is no number from 0 on")
    return {
        "second": _TOTAL if row["second"] == _TOTAL else float(row["second"]),
        "op": str(row.get("op") or _ALL).upper(),
        "operations": _count(row["operations"]),
        "errors": _count(row.get("errors") or 0),
        "histogram": histogram,
        "latencies": latencies,
    }


def _count(value: object) -> int:
    number = float(str(value))
    if number != int(number) or number < 0:
        raise ValueError(f"{value!r} is no count")
    return int(number)


def _compare(name: str, rows: Sequence[Row], totals: Mapping[str, Row]) -> Iterator[Check]:
    """Hold the intervals of a kind of operation against its total, and both against their histograms."""
    require_rising((row["second"] for row in rows), f"`second` of {name}")
    if name not in totals:
        raise ValueError(f"no total of {name}")
    total = totals[name]
    for count in ("operations", "errors"):
        yield same(f"{count} ({name})", total[count], "its intervals", sum(row[count] for row in rows))
    for row in (*rows, total):
        if row["histogram"]:
            counted = sum(row["histogram"].values())
            yield same(f"operations of {name} at {row['second']}", row["operations"], "its histogram", counted)
    if "mean_us" in total["latencies"] and (mean := _mean_of(rows)) is not None:
        low, high = mean / _ROUNDED - 1, mean * _ROUNDED + 1
        yield Check(f"mean_us of {name}", total["latencies"]["mean_us"], "its intervals", low, high)
    joined = _join(rows)
    if joined and total["histogram"] and joined != Counter(total["histogram"]):
        raise ValueError(f"the histogram of the total of {name} is not the sum of those of its intervals")
    latencies = _from_histogram(joined)
    for figure, value in total["latencies"].items():
        if reference := latencies.get(figure):
            source = "the histograms of its intervals"
            yield Check(f"{figure} of {name}", value, source, reference / _COARSE, reference * _COARSE)


def _summarise(total: Mapping[str, Any], rows: Sequence[Row]) -> Row:
    """Return an entry of `operations`: latencies as stated, else of a histogram, of the total or of all intervals."""
    stated = total.get("latencies") or {}
    latencies = stated or _from_histogram(Counter(total.get("histogram") or {}) or _join(rows))
    return operation(total["operations"], total["errors"], latencies)


def _interval(second: float, rows: Sequence[Row]) -> Row:
    """Return a row of `intervals`; of several kinds of operations together, latencies are known by histograms only."""
    own = [row for row in rows if row["second"] == second]
    latencies = own[0]["latencies"] if len(own) == 1 and own[0]["latencies"] else _from_histogram(_join(own))
    return interval(second, sum(row["operations"] for row in own), sum(row["errors"] for row in own), latencies)


def _mean_of(rows: Sequence[Row]) -> float | None:
    """Return the mean of the intervals' operations; None where one does not state its own."""
    own = [row for row in rows if row["operations"]]
    if not own or not all("mean_us" in row["latencies"] for row in own):
        return None
    times = sum(row["latencies"]["mean_us"] * row["operations"] for row in own)
    return float(times / sum(row["operations"] for row in own))


def _join(rows: Sequence[Row]) -> Counter[float]:
    """Return the histograms of rows together; none where one of them has none."""
    if not all(row["histogram"] for row in rows if row["operations"]):
        return Counter()
    return sum((Counter(row["histogram"]) for row in rows), Counter())


def _from_histogram(histogram: Counter[float]) -> dict[str, float | None]:
    """Return mean, percentiles and maximum; an operation counts with the upper end of its bin."""
    ordered = [(end, count) for end, count in sorted(histogram.items()) if count]
    if not ordered:
        return {}
    mean = sum(end * count for end, count in ordered) / sum(count for _, count in ordered)
    shares = {name: percentile(ordered, share) for name, share in PERCENTILES.items()}
    return {"mean_us": mean, **shares, "max_us": ordered[-1][0]}
