"""Section "Knob effects": what every swept value does to throughput, latency and, where measured, recovery."""

import json
import math
from dataclasses import dataclass
from statistics import median

from knobscope.figures import Effect, Figure, ForestRow, MetricPanel, Span, draw_forest, draw_spans, slug
from knobscope.specs import Case
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.formats import describe_beside, describe_change, format_value

_PANELS = {
    "throughput_ops": MetricPanel("Throughput", "slower", "faster", 1),
    "latency_p95_us": MetricPanel("95th percentile of latency", "longer", "shorter", -1),
    "recovery_s": MetricPanel("Recovery of a killed server", "longer", "shorter", -1),
}


@dataclass(frozen=True)
class CaseEffects:
    """All effects of one case, and the short picture of its knobs."""

    name: str
    figure: Figure
    span: Figure


@dataclass(frozen=True)
class EffectsSection:
    """Effects by case, and how many did not show again in new runs; `empty` says why there are none."""

    cases: list[CaseEffects]
    gone: int = 0
    empty: str = ""


def build_effects(data: StudyData) -> EffectsSection:
    """Return the section from table `effects`."""
    cases = [
        CaseEffects(name_case(case), forest_figure(data, case, rows), _span_figure(data, case, rows))
        for case in data.shown_cases
        if (rows := load_effects(data, case))
    ]
    if cases:
        return EffectsSection(cases, len(data.gone_effects))
    sweeps = data.value("SELECT count(*) FROM runs WHERE phase = 'sweep' AND status = 'ok'")
    if not sweeps and data.value("SELECT count(*) FROM predicted_effects"):
        return EffectsSection(
            [],
            empty="No run changed one knob alone. What the model of screening predicts of each value is under Knob "
            "ranking and in table predicted_effects.",
        )
    if not sweeps:
        return EffectsSection(
            [], empty="There is no successful run that changes one knob alone, so no effect of a single knob is known."
        )
    if data.value("SELECT count(*) FROM effects WHERE metric = 'throughput_ops'"):
        return EffectsSection(
            [], empty="No effect that is shown here could be estimated; section Runs lists the runs that failed."
        )
    return EffectsSection(
        [], empty="The one-at-a-time round changed no knob: screening selected none and `sweep.always` is empty."
    )


def load_effects(data: StudyData, case: Case) -> list[Row]:
    """Return effects of a case that are shown and have an estimate, in the order of the knobs' values."""
    return data.rows(
        """
        SELECT * FROM effects
        WHERE dbms = ? AND device = ? AND workload = ? AND estimate IS NOT NULL
            AND list_contains(?, metric)
        ORDER BY knob, beside NULLS FIRST, step NULLS FIRST, try_cast(value AS DOUBLE), value, metric DESC
        """,
        *case,
        list(_PANELS),
    )


def read_effect(data: StudyData, row: Row) -> Effect:
    """Return the effect of a row of table `effects`.

    It is clear when it passes the study's thresholds and, where throughput was measured again, showed again.
    """
    thresholds = data.specs.study.thresholds
    is_sure = row["q_value"] is not None and row["q_value"] <= thresholds.fdr
    is_large = abs(math.expm1(min(row["estimate"], 50))) >= thresholds.min_effect
    interval = None if row["low"] is None or row["high"] is None else (row["low"], row["high"])
    return Effect(row["estimate"], interval, is_sure and is_large and not _is_gone(data, row))


def _is_gone(data: StudyData, row: Row) -> bool:
    """Whether a row of table `effects` is about throughput and its effect did not show again in new runs."""
    key = (*Case.of(row), row["knob"], row["value"])
    return row["metric"] == "throughput_ops" and key in data.gone_effects


def forest_figure(
    data: StudyData, case: Case, rows: list[Row], title: str = "", name: str = "", label: str = ""
) -> Figure:
    """Return the forest plot of effects, the strongest knob first.

    With `label`, a column that tells the rows apart (device or value), it is small, and has one panel.
    """
    metrics = [metric for metric in _PANELS if any(row["metric"] == metric for row in rows)]
    panels = [_panel(metric, rows) for metric in metrics]
    lines = _forest_rows(data, case, rows, metrics, label or "value")
    return Figure(
        name=name or slug("effects", *case),
        title=title or name_case(case),
        description=_describe(case, rows, data, label),
        draw=lambda width: draw_forest(width, lines, panels),
        data=rows,
        wide=not label,
    )


def _panel(metric: str, rows: list[Row]) -> MetricPanel:
    panel = _PANELS[metric]
    noise = [row["noise"] for row in rows if row["metric"] == metric and row["noise"] is not None]
    return MetricPanel(panel.title, panel.worse, panel.better, panel.sign, median(noise) if noise else None)


def _forest_rows(data: StudyData, case: Case, rows: list[Row], metrics: list[str], label: str) -> list[ForestRow]:
    dbms = data.specs.dbms.get(case.dbms)
    by_setting: dict[tuple[str, str, str], dict[str, Row]] = {}
    strength: dict[str, float] = {}
    for row in rows:
        by_setting.setdefault((row["knob"], row["beside"] or "", row[label]), {})[row["metric"]] = row
        if row["metric"] == metrics[0]:
            strength[row["knob"]] = max(strength.get(row["knob"], 0.0), abs(row["estimate"]))
    ordered = sorted(by_setting.items(), key=lambda item: (-strength.get(item[0][0], 0.0), *item[0][:2]))
    return [
        ForestRow(
            group=knob,
            note=name_reference(data, next(iter(by_metric.values()))),
            label=name if label == "device" else format_value(dbms, knob, name),
            effects=tuple(read_effect(data, by_metric[metric]) if metric in by_metric else None for metric in metrics),
            durability=any(bool(row["durability"]) for row in by_metric.values()),
        )
        for (knob, _, name), by_metric in ordered
    ]


def name_reference(data: StudyData, row: Row) -> str:
    """Return what an effect is measured against: default 25 %, with appendonly = yes."""
    baseline = format_value(data.specs.dbms.get(row["dbms"]), row["knob"], row["baseline"])
    return f"default {baseline}{name_beside(data, row)}"


def name_beside(data: StudyData, row: Row) -> str:
    """Return the settings of other knobs under which an effect was measured; empty if they are defaults."""
    settings = None if row["beside"] is None else json.loads(row["beside"])
    return describe_beside(data.specs.dbms.get(row["dbms"]), settings)


def name_setting(data: StudyData, row: Row) -> str:
    """Say what was set: synchronous = off, with the other knobs changed, if any."""
    value = format_value(data.specs.dbms.get(row["dbms"]), row["knob"], row["value"])
    return f"{row['knob']} = {value}{name_beside(data, row)}"


def _describe(case: Case, rows: list[Row], data: StudyData, label: str = "") -> str:
    """Say what the forest shows; those of several devices with the device of each."""
    of_devices = label == "device"
    changes = [
        f"{row['device'] + ', ' if of_devices else ''}{name_setting(data, row)}: {describe_change(row['estimate'])}"
        f"{'' if read_effect(data, row).clear else ', not clear'}"
        for row in sorted(rows, key=lambda row: -abs(row["estimate"]))
        if row["metric"] == "throughput_ops"
    ]
    where = "several devices" if of_devices else name_case(case)
    return f"Change of throughput against the default configuration on {where}. {'; '.join(changes[:8])}."


def _span_figure(data: StudyData, case: Case, rows: list[Row]) -> Figure:
    dbms = data.specs.dbms.get(case.dbms)
    by_knob: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["metric"] == "throughput_ops":
            by_knob.setdefault((row["knob"], name_beside(data, row)), []).append(row)
    spans, table = [], []
    for (knob, beside), knob_rows in by_knob.items():
        slow, fast = min(knob_rows, key=lambda row: row["estimate"]), max(knob_rows, key=lambda row: row["estimate"])
        names = [format_value(dbms, row["knob"], row["value"]) for row in (slow, fast)]
        ends = (read_effect(data, slow), names[0], read_effect(data, fast), names[1])
        spans.append(Span(knob, beside.strip(), *ends, bool(fast["durability"])))
        table += [
            {"knob": f"{knob}{beside}", "value": row["value"], "estimate": row["estimate"]} for row in (slow, fast)
        ]
    spans.sort(key=lambda span: -(max(span.fast.estimate, 0) - min(span.slow.estimate, 0)))
    return Figure(
        name=slug("knobs", *case),
        title=name_case(case),
        description=f"From the slowest to the fastest value of each knob. {_describe(case, rows, data)}",
        draw=lambda width: draw_spans(width, spans[:8]),
        data=table,
        caption=f"The {min(len(spans), 8)} strongest of {len(spans)} swept knobs." if len(spans) > 8 else "",
    )
