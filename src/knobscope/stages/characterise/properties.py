"""What a device is like, in properties: what was measured, what the kernel says, and how sure that is."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from knobscope.stages.characterise.curves import PAGE, Measured, Pattern, Point, choose_knee, find_saturation
from knobscope.stages.characterise.kernel import KernelFacts
from knobscope.stages.characterise.others import Others, mean_of
from knobscope.stages.characterise.session import Session
from knobscope.stages.characterise.unit import CANDIDATES, UnitFinding, find_unit
from knobscope.tables.devices import DevicePropertyRow
from knobscope.text.formats import format_micros, format_number, format_share, format_size, loosen_units

Confidence = Literal["high", "medium", "low", "not measured"]

_LEVELS: tuple[Confidence, ...] = ("high", "medium", "low", "not measured")
#: How the name of a property starts -> the curve that it rests on.
_CURVES = {
    "write_unit": "unit",
    "size": "write_size",
    "flush": "flush",
    "saturating": "queue_depth",
    "random": "queue_depth",
    "reads_beside": "beside",
}
#: Rounds that differ by no more than this share agree; beyond the second they say little.
_AGREE, _DISAGREE = 0.1, 0.3
#: Standard errors from which on a unit is beyond doubt.
_SURE_ERRORS = 12.0
_FEWEST_FLUSHES = 100


def find_ratios(curves: dict[Point, Measured], random: Pattern, sequential: Pattern) -> dict[int, float]:
    """Return how many times as many random as sequential requests of 4 KiB were done, by depth."""
    by_depth = {
        (point.pattern, point.queue_depth): measured.iops
        for point, measured in curves.items()
        if point.curve == "queue_depth"
    }
    depths = sorted(depth for pattern, depth in by_depth if pattern == sequential)
    return {depth: by_depth[random, depth] / by_depth[sequential, depth] for depth in depths}


def find_preferred_size(curves: dict[Point, Measured]) -> int | None:
    """Return the smallest write that comes within 10 % of the best bandwidth; None where that is the largest tried."""
    sizes = {point.block_bytes: result.bytes_per_s for point, result in curves.items() if point.curve == "write_size"}
    knee = choose_knee(sizes)
    return None if knee == max(sizes) else knee


def list_properties(session: Session, kernel: KernelFacts) -> list[DevicePropertyRow]:
    """Return rows of `device_property`, without the device."""
    curves, durable = session.merged(), find_unit(session.durable)
    unit = _unit_row("write_unit", durable, session, _say_sizes(kernel))
    rows: list[DevicePropertyRow] = [
        unit,
        {**unit, "property": "write_unit_cost", "value": durable.cost_us, "unit": "us", "kernel": None},
        _unit_row("write_unit_without_flush", find_unit(session.plain), session, None),
        _preferred_row(session, curves),
        _flush_row(session, curves, kernel),
        _depth_row(session, curves, kernel),
        *_ratio_rows(session, curves, kernel),
        _beside_row(session, curves),
        _atomic_row(kernel),
    ]
    return [lower_confidence(row, session.others) for row in rows]


def lower_confidence(row: DevicePropertyRow, usage: Mapping[str, Sequence[Others]]) -> DevicePropertyRow:
    """Lower the confidence of a row when others kept the machine or the device busy while it was measured.

    They may be off by the share that others used, so that share is graded as the difference between rounds is.
    """
    curve = next((curve for start, curve in _CURVES.items() if row["property"].startswith(start)), None)
    if curve is None or not usage.get(curve):
        return row
    mean = mean_of(usage[curve])
    confidence = max(row["confidence"], _grade(mean.share), key=_LEVELS.index)
    others = None if _grade(mean.share) == "high" else loosen_units(mean.describe())
    return {**row, "confidence": confidence, "others": others}


def _row(
    name: str, value: float | None, unit: str, confidence: Confidence, because: str, kernel: str | None = None
) -> DevicePropertyRow:
    return {
        "property": name,
        "value": value,
        "unit": unit,
        "confidence": confidence,
        "because": loosen_units(because),
        "others": None,
        "kernel": kernel,
    }


def _say_sizes(kernel: KernelFacts) -> str:
    return _say(kernel, "minimum_io_size", "optimal_io_size", "physical_block_size")


def _say(kernel: KernelFacts, *names: str) -> str:
    facts = [(name, getattr(kernel, name)) for name in names]
    return ", ".join(f"{name} {'not told' if value is None else value}" for name, value in facts)


def _unit_row(name: str, finding: UnitFinding, session: Session, kernel: str | None) -> DevicePropertyRow:
    if finding.unit_bytes is None:
        confidence: Confidence = _grade(finding.visible_share)
        because = (
            f"writes shifted by 4 KiB take as long as those at multiples of their size; a unit of up to "
            f"{format_size(max(CANDIDATES))} that costs {format_micros(finding.visible_us)} "
            f"({_part(finding.visible_share)} a write) would have been seen"
        )
    else:
        confidence = "high" if finding.errors >= _SURE_ERRORS else "medium"
        because = (
            f"writes that leave a unit partly written take {format_micros(finding.extra_us)} more than "
            f"{format_micros(finding.whole_us)}, {format_number(finding.errors)} standard errors from nothing"
        )
    if not session.knows_addresses:
        confidence, because = "low", f"{because}; the file system does not tell addresses on the device"
    return _row(name, finding.unit_bytes, "bytes", confidence, because, kernel)


def _grade(share: float) -> Confidence:
    return "high" if share <= _AGREE else "medium" if share <= _DISAGREE else "low"


def describe_agreement(values: Sequence[float]) -> tuple[Confidence, str]:
    """Return how well rounds agree, and that in words."""
    if len(values) < 2:
        return "medium", "measured in one window"
    spread = (max(values) - min(values)) / median(values)
    return _grade(spread), f"{len(values)} rounds differ by {_part(spread)} their median"


def _part(ratio: float) -> str:
    """Return how many times, or what share of, what is named next."""
    return f"{format_share(ratio)} of" if ratio < 1 else f"{format_number(ratio)} times"


def _preferred_row(session: Session, curves: dict[Point, Measured]) -> DevicePropertyRow:
    sizes_of = {point: result for point, result in curves.items() if point.curve == "write_size"}
    sizes = {point.block_bytes: result.bytes_per_s for point, result in sizes_of.items()}
    preferred, largest = find_preferred_size(curves), max(sizes)
    best = format_number(max(sizes.values()) / 1e6)
    because = (
        f"bandwidth still rises at {format_size(largest)}, the largest tried: no size is preferred"
        if preferred is None
        else f"random writes reach {format_number(sizes[preferred] / 1e6)} of {best} MB/s"
    )
    chosen = next(point for point in sizes_of if point.block_bytes == (preferred or largest))
    confidence, agreement = describe_agreement([window.bytes_per_s for window in session.windows[chosen]])
    return _row("size_for_full_bandwidth", preferred, "bytes", confidence, f"{because}; {agreement}")


def _flush_row(session: Session, curves: dict[Point, Measured], kernel: KernelFacts) -> DevicePropertyRow:
    point = Point("flush", "randwrite", PAGE, 1)
    times = curves[point].flush
    if times is None:
        raise AssertionError("a window with flushes has none")
    confidence, agreement = describe_agreement(
        [window.flush.p50_us for window in session.windows[point] if window.flush]
    )
    if times.count < _FEWEST_FLUSHES:
        confidence, agreement = "low", f"only {times.count} flushes"
    because = (
        f"median of {times.count}; mean {format_micros(times.mean_us)}, 99 % within {format_micros(times.p99_us)}, "
        f"99.9 % within {format_micros(times.p999_us)}; {agreement}"
    )
    return _row("flush", times.p50_us, "us", confidence, because, _say(kernel, "write_cache", "fua"))


def _depth_row(session: Session, curves: dict[Point, Measured], kernel: KernelFacts) -> DevicePropertyRow:
    reads = {p.queue_depth: m.iops for p, m in curves.items() if (p.curve, p.pattern) == ("queue_depth", "randread")}
    saturating = find_saturation(reads)
    best = max(reads, key=lambda depth: reads[depth])
    confidence, agreement = describe_agreement(
        [window.iops for window in session.windows[Point("queue_depth", "randread", PAGE, best)]]
    )
    because = (
        f"random reads still rise at depth {max(reads)}, to {format_number(reads[best])} a second"
        if saturating is None
        else f"90 % of {format_number(reads[best])} random reads a second; {format_number(reads[1])} at depth 1"
    )
    queues = _say(kernel, "hardware_queues", "nr_requests")
    return _row("saturating_depth", saturating, "requests", confidence, f"{because}; {agreement}", queues)


def _ratio_rows(session: Session, curves: dict[Point, Measured], kernel: KernelFacts) -> list[DevicePropertyRow]:
    rows = []
    kinds: list[tuple[str, Pattern, Pattern]] = [("reads", "randread", "read"), ("writes", "randwrite", "write")]
    for name, scattered, ordered in kinds:
        ratios = find_ratios(curves, scattered, ordered)
        for depth in sorted({min(ratios), max(ratios)}):
            windows = [session.windows[Point("queue_depth", pattern, PAGE, depth)] for pattern in (scattered, ordered)]
            pairs = [random.iops / sequential.iops for random, sequential in zip(*windows, strict=False)]
            confidence, agreement = describe_agreement(pairs)
            listed = ", ".join(f"{format_number(ratio)} at depth {at}" for at, ratio in ratios.items())
            key = f"random_to_sequential_{name}_depth_{depth}"
            rows.append(
                _row(key, ratios[depth], "ratio", confidence, f"{listed}; {agreement}", _say(kernel, "rotational"))
            )
    return rows


def _beside_row(session: Session, curves: dict[Point, Measured]) -> DevicePropertyRow:
    beside, alone = curves[Point("beside", "randread", PAGE, 1)], curves[Point("queue_depth", "randread", PAGE, 1)]
    windows = session.windows[Point("beside", "randread", PAGE, 1)]
    confidence, agreement = describe_agreement([window.latency_p50_us for window in windows])
    because = (
        f"median {format_micros(beside.latency_p50_us)} instead of {format_micros(alone.latency_p50_us)}, 99 % within "
        f"{format_micros(beside.latency_p99_us)} instead of {format_micros(alone.latency_p99_us)}; {agreement}"
    )
    return _row("reads_beside_writes", beside.latency_p50_us / alone.latency_p50_us, "ratio", confidence, because)


def _atomic_row(kernel: KernelFacts) -> DevicePropertyRow:
    return _row(
        "atomic_write",
        None,
        "bytes",
        "not measured",
        "only a power cut would show whether a write can be torn",
        _say(kernel, "atomic_write_unit_min_bytes", "atomic_write_unit_max_bytes"),
    )
