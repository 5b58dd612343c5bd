"""Pictures behind a finding: default and changed value side by side, as runs and as the block layer saw them."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from knobscope.figures import (
    Figure,
    SizeMark,
    Sizes,
    Strip,
    depth_bins,
    draw_depths,
    draw_shares,
    draw_sizes,
    draw_strips,
    slug,
)
from knobscope.specs import Case
from knobscope.stages.detect import find_runs_behind
from knobscope.study_data.study import Row, StudyData
from knobscope.text.formats import (
    describe_beside,
    describe_change,
    format_micros,
    format_number,
    format_rate,
    format_share,
    format_size,
    format_value,
    plural,
    share_of,
)


@dataclass(frozen=True)
class Setting:
    """The successful runs of one setting, rows of table `runs` with `watched`, and how it looks in pictures."""

    name: str
    look: str
    runs: Sequence[Row]

    @property
    def watched(self) -> list[str]:
        """Ids of the runs that have facts of the block layer."""
        return [run["run_id"] for run in self.runs if run["watched"]]

    @property
    def mean_ops(self) -> float:
        """Geometric mean of throughput: what effects are ratios of."""
        values = [run["throughput_ops"] for run in self.runs if run["throughput_ops"]]
        return math.exp(fmean(math.log(value) for value in values)) if values else 0.0


@dataclass(frozen=True)
class Comparison:
    """The settings of one case that pictures show together; `name` is unique among all."""

    case: Case
    name: str
    settings: list[Setting]
    effect: Row | None = field(default=None)  # of table `effects`, on throughput

    @property
    def is_watched(self) -> bool:
        """Whether all settings have facts of the block layer."""
        return all(setting.watched for setting in self.settings)


def compare_runs(data: StudyData, finding: Row, name: str) -> Comparison:
    """Return the runs behind a finding: with its value and of the default configuration, or just the latter."""
    case = Case.of(finding)
    behind = find_runs_behind(data.connection, finding)
    sentinels, changed = (
        [
            {**run, "watched": run["run_id"] in behind.watched}
            for run in data.rows("SELECT * FROM runs WHERE list_contains(?, run_id) ORDER BY started_at", ids)
        ]
        for ids in (behind.default, behind.value)
    )
    if finding["knob"] is None:
        return Comparison(case, name, [Setting("default configuration", "base-bar", sentinels)])
    dbms, knob, value = data.specs.dbms.get(case.dbms), finding["knob"], finding["value"]
    effect = data.rows(
        """
        SELECT * FROM effects
        WHERE metric = 'throughput_ops' AND dbms = ? AND device = ? AND workload = ? AND knob = ? AND value = ?
        """,
        *case, knob, value,
    )  # fmt: skip
    baseline = effect[0]["baseline"] if effect else None
    usual = f"default {format_value(dbms, knob, baseline)}" if baseline is not None else "default"
    beside = effect[0]["beside"] if effect else None
    conditions = describe_beside(dbms, None if beside is None else json.loads(beside))
    settings = [
        Setting(f"{usual}{conditions}", "base-bar", sentinels),
        Setting(f"{format_value(dbms, knob, value)}{conditions}", "value-bar", changed),
    ]
    return Comparison(case, name, settings, effect[0] if effect else None)


def default_only(data: StudyData, case: Case, name: str) -> Comparison:
    """Return all successful runs of the default configuration of a case, those of screening included."""
    sentinels = data.rows(
        """
        SELECT *, coalesce(monitor = 'bpf' AND coalesce(lost_events, 0) = 0, false) AS watched FROM runs
        WHERE status = 'ok' AND is_sentinel AND dbms = ? AND device = ? AND workload = ?
        ORDER BY started_at
        """,
        *case,
    )
    return Comparison(case, name, [Setting("default configuration", "base-bar", sentinels)])


def _size_marks(data: StudyData, device: str) -> list[SizeMark]:
    """Return the write unit of a device and the size it prefers, as far as they are known; the unit comes first."""
    rows = data.rows("SELECT write_unit_bytes, preferred_write_bytes FROM device_profile WHERE device = ?", device)
    names = {"write_unit_bytes": "write unit", "preferred_write_bytes": "preferred size"}
    return [SizeMark(name, int(row[column])) for row in rows for column, name in names.items() if row[column]]


def picture_throughput(comparison: Comparison) -> Figure:
    """Show every run's throughput, and the interval of the effect in ops/s."""
    effect = comparison.effect
    strips, summaries = [], []
    for index, setting in enumerate(comparison.settings):
        interval = None
        if index and effect and effect["low"] is not None and effect["reference"]:
            interval = (effect["reference"] * math.exp(effect["low"]), effect["reference"] * math.exp(effect["high"]))
        strips.append(
            Strip(
                setting.name, setting.look, [run["throughput_ops"] for run in setting.runs], setting.mean_ops, interval
            )
        )
        summaries.append(f"{setting.name}: {format_rate(setting.mean_ops)} in {plural(len(setting.runs), 'run')}")
    change = (
        f" {describe_change(effect['estimate']).capitalize()}." if effect and effect["estimate"] is not None else ""
    )
    again = ", as new pairs of runs show it" if effect and effect["swept"] is not None else ""
    return Figure(
        name=slug(comparison.name, "throughput"),
        title="Throughput",
        description=f"Throughput of single runs. {'; '.join(summaries)}.{change}",
        draw=lambda width: draw_strips(width, strips),
        data=[
            {"setting": setting.name, "run_id": run["run_id"], "throughput_ops": run["throughput_ops"]}
            for setting in comparison.settings
            for run in setting.runs
        ],
        caption="Dots are runs, the vertical line is their mean, the horizontal one the 95 % interval of the effect"
        f"{again}.",
    )


def picture_tail(comparison: Comparison, percentile: int = 99) -> Figure | None:
    """Show a percentile of latency of every run, and medians as the rule has them; None when no run has it."""
    column = f"latency_p{percentile}_us"
    runs_by_setting = {setting.name: [run for run in setting.runs if run[column]] for setting in comparison.settings}
    if not all(runs_by_setting.values()):
        return None
    centres = {name: math.exp(median(math.log(run[column]) for run in runs)) for name, runs in runs_by_setting.items()}
    strips = [
        Strip(
            setting.name,
            setting.look,
            [run[column] for run in runs_by_setting[setting.name]],
            centres[setting.name],
        )
        for setting in comparison.settings
    ]
    summaries = [
        f"{name}: {format_micros(centre)} in {plural(len(runs_by_setting[name]), 'run')}"
        for name, centre in centres.items()
    ]
    return Figure(
        name=slug(comparison.name, "tail"),
        title=f"{percentile}th percentile of latency",
        description=f"{percentile}th percentile of latency of single runs. {'; '.join(summaries)}.",
        draw=lambda width: draw_strips(width, strips, "microseconds", format_micros),
        data=[
            {"setting": name, "run_id": run["run_id"], column: run[column]}
            for name, runs in runs_by_setting.items()
            for run in runs
        ],
        caption="Dots are runs, the vertical line is their median.",
    )


def picture_sizes(data: StudyData, comparison: Comparison, op: str = "write") -> Figure | None:
    """Show bytes and requests by size against the device's sizes; None when no request of the kind was seen."""
    panels, table, summaries, queries = [], [], [], []
    for setting in comparison.settings:
        rows = data.rows(
            "SELECT bytes, sum(requests)::BIGINT AS requests FROM io_sizes "
            "WHERE op = ? AND bytes > 0 AND list_contains(?, run_id) GROUP BY bytes ORDER BY bytes",
            op, setting.watched,
        )  # fmt: skip
        summary = _summarise_op(data, setting, op)
        panels.append(Sizes(f"{setting.name}: {summary}", {row["bytes"]: row["requests"] for row in rows}))
        table += [{"setting": setting.name, "op": op, **row} for row in rows]
        queries.append(rows.query)
        summaries.append(f"{setting.name}: {summary}")
    if not table:
        return None
    marks = _size_marks(data, comparison.case.device) if op == "write" else []
    return Figure(
        name=slug(comparison.name, op, "sizes"),
        title=f"Sizes of {op}s at the device",
        description=f"Share of bytes by the size of {op}s. {'; '.join(summaries)}."
        + "".join(f" {mark.name.capitalize()}: {format_size(mark.size)}." for mark in marks),
        draw=lambda width: draw_sizes(width, panels, marks, f"{op}s"),
        data=table,
        query="\n\n".join(queries),
    )


def _summarise_op(data: StudyData, setting: Setting, op: str) -> str:
    row = data.rows(
        "SELECT sum(requests) AS requests, sum(aligned_requests) AS aligned FROM io_profile "
        "WHERE op = ? AND requests > 0 AND list_contains(?, run_id)",
        op, setting.watched,
    )[0]  # fmt: skip
    operations = sum(run["operations"] or 0 for run in setting.runs if run["watched"])
    if not row["requests"]:
        return "none"
    per_operation = f"{format_number(row['requests'] / operations)} per operation" if operations else ""
    share = share_of(row["aligned"], row["requests"])
    aligned = f"{format_share(share)} aligned" if op == "write" and share is not None else ""
    return ", ".join(filter(None, [aligned, per_operation]))


def picture_depth(data: StudyData, comparison: Comparison) -> Figure | None:
    """Show the time-weighted depth of the whole device; None when it was never seen busy."""
    series, table, summaries, queries = [], [], [], []
    for setting in comparison.settings:
        rows = data.rows(
            "SELECT depth, sum(time_ns)::BIGINT AS time_ns FROM queue_depth "
            "WHERE queue = -1 AND list_contains(?, run_id) GROUP BY depth ORDER BY depth",
            setting.watched,
        )  # fmt: skip
        times = {row["depth"]: row["time_ns"] for row in rows}
        busy = sum(time for depth, time in times.items() if depth > 0)
        if not busy:
            return None
        share = format_share(busy / sum(times.values()))
        series.append((setting.look, f"{setting.name} (busy {share})", depth_bins(times)))
        summaries.append(f"{setting.name}: busy {share} of the time, one request in flight for "
                     f"{format_share(times.get(1, 0) / busy)} of that")  # fmt: skip
        table += [{"setting": setting.name, **row} for row in rows]
        queries.append(rows.query)
    return Figure(
        name=slug(comparison.name, "depth"),
        title="Requests in flight, by share of busy time",
        description=f"Time-weighted queue depth of the device. {'; '.join(summaries)}.",
        draw=lambda width: draw_depths(width, series),
        data=table,
        query="\n\n".join(queries),
    )


def picture_shares(data: StudyData, comparison: Comparison) -> Figure | None:
    """Show sequential shares and CPU use; None when neither is known."""
    processors = {"CPU of the DBMS": "cpu_share", "CPU in total": "machine_cpu_share"}
    names = ("sequential writes", "sequential reads", *processors)
    shares_by_name: dict[str, dict[str, float | None]] = {name: {} for name in names}
    for setting in comparison.settings:
        for op in ("write", "read"):
            row = data.rows(
                "SELECT sum(requests) AS requests, sum(sequential_requests) AS sequential FROM io_profile "
                "WHERE op = ? AND requests > 0 AND list_contains(?, run_id)",
                op, setting.watched,
            )[0]  # fmt: skip
            shares_by_name[f"sequential {op}s"][setting.name] = share_of(row["sequential"], row["requests"])
        for name, column in processors.items():
            busy = [run[column] for run in setting.runs if run[column] is not None]
            shares_by_name[name][setting.name] = fmean(busy) if busy else None
    shares_by_name = {name: shares for name, shares in shares_by_name.items() if set(shares.values()) != {None}}
    if not shares_by_name:
        return None
    rows = [
        (name, [(setting.look, setting.name, shares[setting.name]) for setting in comparison.settings])
        for name, shares in shares_by_name.items()
    ]
    summaries = [
        f"{name}: {', '.join(f'{setting_name} {format_share(share)}' for setting_name, share in shares.items())}"
        for name, shares in shares_by_name.items()
    ]
    return Figure(
        name=slug(comparison.name, "shares"),
        title="Sequential share and CPU",
        description=f"{'; '.join(summaries)}.",
        draw=lambda width: draw_shares(width, rows),
        data=[{"share": name, **shares} for name, shares in shares_by_name.items()],
    )
