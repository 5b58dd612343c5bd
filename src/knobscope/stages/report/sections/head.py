"""Top of the page: the answer in a sentence, how sure it is, and where it was measured."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from knobscope.specs import TPCDS, TPCH, Case, Workload
from knobscope.stages.report.sections.client import tell_client
from knobscope.stages.report.sections.effects import read_effect
from knobscope.stages.report.sections.findings import FindingsSection
from knobscope.stages.report.sections.guards import (
    Controls,
    describe_levels,
    find_controls,
    name_set_aside,
    tell_missing_blocks,
)
from knobscope.stages.report.sections.runs import run_noise
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.formats import (
    UNKNOWN,
    describe_beside,
    describe_change,
    format_count,
    format_number,
    format_share,
    format_time,
    format_value,
    join_words,
    plural,
)

__all__ = ["Head", "Sureness", "build_head"]

#: Flushes per operation below which a default configuration cannot make each commit durable: read-mostly workloads
#: write one in twenty operations.
_SELDOM_FLUSHED = 0.01
#: Operations of a run below which its speed is told: one more or less changes it by 1 %, and by 0.2 %.
_FEW_OPERATIONS, _ENOUGH_OPERATIONS = 100, 500


@dataclass(frozen=True)
class Sureness:
    """One reason to believe the page, or not: `level` is good, fair, poor, or empty where there is none."""

    name: str
    value: str
    meaning: str
    level: str


@dataclass(frozen=True)
class Head:
    """What a hurried reader takes away."""

    title: str
    description: str
    answer: list[str]
    sureness: list[Sureness]
    facts: list[tuple[str, str]]


def build_head(data: StudyData, findings: FindingsSection) -> Head:
    """Return the top of the page."""
    study, controls = data.specs.study, find_controls(data)
    told = [*_strongest_knobs(data), *_verdicts(data, findings), *_false_alarms(controls), *_losses(data)]
    return Head(
        title=study.name,
        description=study.description,
        answer=[*told, *describe_levels(data), *tell_missing_blocks(data)],
        sureness=[*_sureness(data), *_control_sureness(controls)],
        facts=list(_facts(data)),
    )


def _strongest_knobs(data: StudyData) -> Iterator[str]:
    """Say which knob decides, and which one where no committed data is at risk."""
    clear = _clear_effects(data)
    if not clear:
        swept = data.value("SELECT count(*) FROM effects WHERE metric = 'throughput_ops' AND estimate IS NOT NULL")
        yield "No knob changes throughput beyond noise." if swept else "No effect of a single knob has been measured."
        return
    first = clear[0]
    # The default was the safe one where the changed value is the fast one.
    risk = ", but risks committed data" if first["durability"] and first["estimate"] > 0 else ""
    yield f"{first['knob']} matters most: {_effect_words(data, first)}{risk}."
    if first["durability"]:
        safe = next((row for row in clear if not row["durability"]), None)
        if safe is not None:
            words = f"{safe['knob']} matters most: {_effect_words(data, safe)}"
            yield f"Among knobs that do not put committed data at additional risk, {words}."
        elif data.value("SELECT count(*) FROM effects WHERE durability IS DISTINCT FROM true"):
            yield "Apart from knobs that put committed data at additional risk, no knob changes throughput beyond "
            "noise."
        yield from _unflushed(data, first)


def _unflushed(data: StudyData, row: Row) -> Iterator[str]:
    """Say that a default configuration that hardly ever flushes is not safe itself, where that is known."""
    rate = data.value(
        "SELECT any_value(reference) FROM effects WHERE metric = 'flushes_per_op' AND dbms = ? AND device = ? "
        "AND workload = ?",
        row["dbms"], row["device"], row["workload"],
    )  # fmt: skip
    if rate is not None and rate < _SELDOM_FLUSHED:
        words = f"flushes {format_number(rate)} times per operation" if rate > 0 else "never flushes"
        yield f"The default configuration itself {words}, so it can also lose committed data in a power cut."


def _clear_effects(data: StudyData) -> list[Row]:
    """Return the clear effects on throughput, the largest first."""
    rows = data.rows(
        "SELECT * FROM effects WHERE metric = 'throughput_ops' AND estimate IS NOT NULL ORDER BY abs(estimate) DESC"
    )
    return [row for row in rows if read_effect(data, row).clear]


def _effect_words(data: StudyData, row: Row) -> str:
    dbms = data.specs.dbms.get(row["dbms"])
    value = format_value(dbms, row["knob"], row["value"])
    reference = "the default" if row["baseline"] is None else format_value(dbms, row["knob"], row["baseline"])
    reference += describe_beside(dbms, None if row["beside"] is None else json.loads(row["beside"]))
    where = f"{row['dbms']} on {row['device']}, {row['workload']}"
    return f"{value} is {describe_change(row['estimate'])} than {reference} ({where})"


def _verdicts(data: StudyData, findings: FindingsSection) -> Iterator[str]:
    if findings.empty:
        yield findings.empty
        return
    if not findings.cards and not findings.sound.count and not findings.withdrawn.count:
        asked = plural(findings.unjudged.count, "question")
        yield f"None of {asked} about DBMS and device could be judged, {_example(findings)}."
        return
    devices = sorted({device for card in findings.cards for device in card.devices})
    words = plural(findings.mismatches, "mismatch", "mismatches") if findings.mismatches else "No mismatch"
    if findings.symptoms > findings.mismatches:
        words += f", seen in {plural(findings.symptoms, 'finding')},"
    words += f" between DBMS and device (on {join_words(devices)})" if devices else " between DBMS and device"
    if findings.withdrawn.count:
        count = findings.withdrawn.count
        words += f"; experiments refuted the effect or its cause for {plural(count, 'finding')}"
    if findings.unjudged.count:
        words += f"; {plural(findings.unjudged.count, 'question')} could not be judged, {_example(findings)}"
    yield f"{words}."


def _example(findings: FindingsSection) -> str:
    """Return a short reason why something could not be judged: of a knob, if there is one.

    That a study has one DBMS, or devices of one tier, its reader knows.
    """
    told = min(findings.unjudged.rows, key=lambda row: (not row.knob, len(row.sentence)))
    return f"for example: {told.sentence.rstrip('.')}"


def _false_alarms(controls: Controls | None) -> Iterator[str]:
    """Warn where knobs that can change nothing seem to change something."""
    if controls is not None and controls.alarms:
        are = "appears as a finding" if controls.alarms == 1 else "appear as findings"
        yield (
            f"⚠ Negative controls ({controls.names}) cannot change anything, yet {format_count(controls.alarms)} of "
            f"{plural(controls.comparisons, 'comparison')} with them {are}, up to {describe_change(controls.largest)}: "
            "noise is larger than the statistics of this study assume. Do not trust effects of that size."
        )


def _control_sureness(controls: Controls | None) -> Iterator[Sureness]:
    if controls is not None:
        alarms = format_count(controls.alarms) if controls.alarms else "none"
        are = "appears as a finding" if controls.alarms < 2 else "appear as findings"
        compared = plural(controls.comparisons, "comparison")
        meaning = f"knobs that cannot change anything ({controls.names}): {alarms} of {compared} {are}"
        level = "poor" if controls.alarms else "good"
        yield Sureness("Negative controls", format_count(len(controls.knobs)), meaning, level)


def _losses(data: StudyData) -> Iterator[str]:
    """Say which runs and cases the page is silent about."""
    set_aside = data.value("SELECT count(*) FROM set_aside_runs")
    failed = data.value(
        "SELECT count(*) FROM runs ANTI JOIN set_aside_runs USING (run_id) WHERE status IS DISTINCT FROM 'ok'"
    )
    total = data.value("SELECT count(*) FROM runs")
    lost = failed + set_aside
    if failed == lost and failed:
        yield f"{format_count(failed)} of {plural(total, 'run')} gave no result."
    elif lost:
        words = [f"{format_count(failed)} gave no result"] if failed else []
        words += name_set_aside(data)
        share = f"{format_count(lost)} of {plural(total, 'run')} ({format_share(lost / total)})"
        yield f"{share} were excluded: {join_words(words)}."
    if total and (missing := data.missing_cases):
        yield f"Not measured yet: {join_words([name_case(case) for case in missing])}."


def _sureness(data: StudyData) -> Iterator[Sureness]:
    noises = [noise for case in data.measured_cases if (noise := run_noise(data, case)) is not None]
    worst = max(noises, default=0.0)
    level = "good" if worst < 0.05 else "fair" if worst < 0.15 else "poor"
    if noises:
        spread = "" if len(noises) == 1 else f" (from {format_share(math.expm1(min(noises)))}, by case)"
        yield Sureness("Noise", f"± {format_share(math.expm1(worst))}", f"standard deviation of one run{spread}", level)
    yield from _count_operations(data)
    yield from _drift(data, worst, level)
    yield from _model_fit(data)
    yield from _watching(data)
    thresholds = data.specs.study.thresholds
    compared = data.value("SELECT count(*) FROM effects WHERE metric = 'throughput_ops' AND q_value IS NOT NULL")
    if compared:
        yield Sureness(
            "Comparisons",
            f"{compared:,}",
            f"at most {format_share(thresholds.fdr)} of the effects marked clear may be false (false discovery rate); "
            f"changes below {format_share(thresholds.min_effect)} are never marked clear",
            "",
        )


def _count_operations(data: StudyData) -> Iterator[Sureness]:
    """Say where runs are so short that their speed hangs on single operations; suites of queries have few, and long."""
    rows = data.rows(
        """
        SELECT dbms, device, workload, median(operations) AS operations
        FROM runs WHERE status = 'ok' AND operations > 0
        GROUP BY ALL
        HAVING median(operations) < ?
        ORDER BY operations
        """,
        _ENOUGH_OPERATIONS,
    )
    load = data.specs.workloads
    timed = [row for row in rows if row["workload"] in load and load[row["workload"]].generator not in (TPCH, TPCDS)]
    if timed and not data.is_imported:
        fewest = timed[0]["operations"]
        case = name_case(Case(timed[0]["dbms"], timed[0]["device"], timed[0]["workload"]))
        meaning = (
            f"median of {case}: one operation more or less is {format_share(1 / fewest)}; increase measure_s for more"
        )
        yield Sureness(
            "Operations of a run", format_count(fewest), meaning, "poor" if fewest < _FEW_OPERATIONS else "fair"
        )


def _drift(data: StudyData, noise: float, noise_level: str) -> Iterator[Sureness]:
    """Say in how many blocks the machine changed its speed; a change that noise can hide is not denied.

    Blocks without a default configuration to compare with, or with too few runs, say nothing about drift.
    """
    blocks = data.rows("SELECT * FROM blocks WHERE sentinels > 0 AND (drift_p IS NOT NULL OR bend_p IS NOT NULL)")
    total = data.value("SELECT count(*) FROM blocks")
    if not total:
        return
    if not blocks:
        yield Sureness("Drift", "not known", "no block has enough runs to tell a change of speed from noise", "")
        return
    corrected = sum(row["treatment"] == "position" for row in blocks)
    dropped = sum(row["treatment"] == "dropped" for row in blocks)
    words = [f"{corrected} corrected"] * bool(corrected) + [f"{dropped} excluded"] * bool(dropped)
    meaning = "blocks in which the machine changed its speed" + (f": {join_words(words)}" if words else "")
    level = "poor" if dropped else "fair" if corrected else noise_level
    if noise_level == "poor":
        meaning += f"; a noise of ± {format_share(math.expm1(noise))} hides all but large changes"
    if unjudged := total - len(blocks):
        meaning += f"; {plural(unjudged, 'block')} cannot be judged"
    yield Sureness("Drift", f"{corrected + dropped} of {len(blocks)}", meaning, level)


def _watching(data: StudyData) -> Iterator[Sureness]:
    """Say how much of the study the block-level rules could see."""
    row = data.rows(
        """
        SELECT count(*) AS runs,
            count(*) FILTER (monitor = 'bpf' AND coalesce(lost_events, 0) = 0) AS whole,
            count(*) FILTER (monitor = 'bpf' AND lost_events IS NULL) AS untold,
            median(unattributed_share) FILTER (monitor = 'bpf') AS unknown
        FROM runs WHERE status = 'ok'
        """
    )[0]
    if not row["runs"]:
        return
    if data.is_imported and row["untold"] == row["whole"]:
        share = format_share(row["whole"] / row["runs"])
        meaning = "of the imported runs come with I/O counts" + "; whether events were lost is unknown" * bool(
            row["whole"]
        )
        yield Sureness("Block layer", share, meaning, "")
        return
    share, unknown = row["whole"] / row["runs"], row["unknown"] or 0.0
    level = "good" if share > 0.95 and unknown < 0.05 else "fair" if share > 0.5 and unknown < 0.5 else "poor"
    meaning = "of the runs were monitored there without losing an event"
    if row["unknown"] is not None:
        meaning += f"; {format_share(unknown)} of the reads and writes are of unknown origin (median)"
    yield Sureness("Block layer", format_share(share), meaning, level)


def _model_fit(data: StudyData) -> Iterator[Sureness]:
    fits = data.rows(
        "SELECT * FROM fits QUALIFY row_number() OVER (PARTITION BY dbms, device, workload ORDER BY round DESC) = 1"
    )
    if not fits:
        return
    score = min((fit["holdout_r2"] for fit in fits if fit["holdout_r2"] is not None), default=None)
    shown = format_number(score, 2) if score is not None else "none"
    trusted = all(fit["trustworthy"] for fit in fits)
    if prior := fits[0]["prior"]:
        meaning = f"R² of the prior {prior}, which replaced screening, on runs that it had not seen"
        yield Sureness("Model", shown, meaning, "good" if trusted else "poor")
        return
    threshold = data.specs.study.screening.threshold
    lowest = min((fit["r2_min"] for fit in fits if fit["r2_min"] is not None), default=None)
    level = "good" if lowest is not None and lowest >= threshold else "fair" if trusted else "poor"
    worst = f"{format_number(lowest, 2)} in the worst split, " if lowest is not None else ""
    meaning = f"R² of the screening model on runs that it has not seen; {worst}the study requires {threshold:g}"
    if trusted and level != "good":
        meaning += "; the set of knobs that stand out can be trusted, the size of their effects is less certain"
    yield Sureness("Model", shown, meaning, level)


def _describe_workload(workload: Workload) -> str:
    return (
        f"{workload.generator}, {workload.records:,} records, {plural(workload.threads, 'thread')}, "
        f"{format_number(workload.measure_s)} s measured after {format_number(workload.warmup_s)} s of warm-up"
    )


def _facts(data: StudyData) -> Iterator[tuple[str, str]]:
    versions = data.rows(
        "SELECT dbms, list(DISTINCT dbms_version ORDER BY dbms_version) FILTER (dbms_version <> '') AS versions "
        "FROM runs GROUP BY dbms ORDER BY dbms"
    )
    yield "DBMS", "; ".join(f"{row['dbms']} {join_words(row['versions'] or [UNKNOWN])}" for row in versions) or UNKNOWN
    for profile in data.rows("SELECT * FROM device_profile ORDER BY tier_rank DESC, device"):
        known = [profile[name] for name in ("tier", "block_device", "filesystem") if profile[name]]
        yield f"Device {profile['device']}", ", ".join(known) or UNKNOWN
    for name, workload in data.specs.workloads.items():
        yield f"Workload {name}", "measured elsewhere" if data.is_imported else _describe_workload(workload)
    span = data.rows("SELECT min(started_at) AS first, max(started_at) AS last, count(*) AS n FROM runs")[0]
    if span["n"]:
        yield "Measured", f"{span['n']:,} runs from {format_time(span['first'])} to {format_time(span['last'])} (UTC)"
    machines = [
        row["machine"] for row in data.rows("SELECT DISTINCT machine FROM runs WHERE machine IS NOT NULL ORDER BY 1")
    ]
    yield "Machine", "; ".join(machines) or UNKNOWN
    yield from tell_client(data)
