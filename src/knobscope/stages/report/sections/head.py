"""Top of the page: the answer in a sentence, how sure it is, and where it was measured."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import log1p, log10, prod

from knobscope.specs import Case, Workload
from knobscope.stages.detect import is_own_knob
from knobscope.stages.plan import case_space
from knobscope.stages.report.sections.budgets import tell_change
from knobscope.stages.report.sections.client import tell_client
from knobscope.stages.report.sections.effects import read_effect
from knobscope.stages.report.sections.fastest import find_again
from knobscope.stages.report.sections.findings import FindingsSection
from knobscope.stages.report.sections.guards import (
    Controls,
    describe_levels,
    find_controls,
    name_set_aside,
    tell_missing_blocks,
)
from knobscope.stages.report.sections.judged import Judged
from knobscope.stages.report.sections.sureness import Sureness, list_sureness
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.tables.responses import RESPONSES
from knobscope.text.formats import (
    UNKNOWN,
    describe_beside,
    describe_change,
    describe_window,
    format_count,
    format_number,
    format_seconds,
    format_share,
    format_time,
    format_value,
    join_words,
    plural,
)

#: Flushes per operation below which a default configuration cannot make each commit durable: read-mostly workloads
#: write one in twenty operations.
_SELDOM_FLUSHED = 0.01
#: Runs of a full grid from which on their order of magnitude says enough.
_COUNTABLE = 1e9


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
    sentences = [
        *_strongest_knobs(data),
        *_verdicts(findings),
        *_visible(data, findings),
        *_false_alarms(controls),
        *_losses(data),
    ]
    return Head(
        title=study.name,
        description=study.description,
        answer=[*sentences, *describe_levels(data), *tell_missing_blocks(data)],
        sureness=list_sureness(data, controls),
        facts=list(_facts(data)),
    )


def _strongest_knobs(data: StudyData) -> Iterator[str]:
    """Say which knob decides, and which one where no committed data is at risk."""
    clear = _clear_effects(data)
    if not clear:
        yield _without_clear_effect(data)
        return
    first = clear[0]
    yield f"{first['knob']} matters most: {_effect_words(data, first)}{_risk_of_faster(data, first)}."
    if waits := tell_change(data, first):
        yield waits
    yield from _other_leader(data, first)
    if first["durability"]:
        safe = next((row for row in clear if not row["durability"]), None)
        if safe is not None:
            yield (
                "Among settings that put committed data at no additional risk, the largest effect is that of "
                f"{safe['knob']}: {_effect_words(data, safe)}."
            )
        elif data.value(
            "SELECT count(q_value) FROM effects WHERE metric = 'throughput_ops' AND durability IS DISTINCT FROM true"
        ):
            yield (
                "Of the settings without additional risk for committed data, none changes throughput by "
                f"{_least_effect(data)} or more, beyond noise."
            )
        yield from _unflushed(data, first)


def _risk_of_faster(data: StudyData, row: Row) -> str:
    """Say that the faster one of two settings risks committed data, if the other one does not."""
    if row["durability"]:
        return ", but risks committed data" if row["estimate"] > 0 else ""
    dbms = data.specs.dbms.get(row["dbms"])
    if dbms is None or row["baseline"] is None or row["estimate"] > 0:
        return ""
    beside = {} if row["beside"] is None else json.loads(row["beside"])
    changed = {name: dbms.knobs[name].read(text) for name, text in beside.items() if name in dbms.knobs}
    if not dbms.list_risks(data.specs.study.baseline.get(dbms.name, {}) | changed, [row["knob"]]):
        return ""
    return f", but {format_value(dbms, row['knob'], row['baseline'])} risks committed data"


def _without_clear_effect(data: StudyData) -> str:
    ((measured, known),) = data.connection.execute(
        "SELECT count(estimate), count(q_value) FROM effects WHERE metric = 'throughput_ops'"
    ).fetchall()
    if known:
        return f"No knob changes throughput by {_least_effect(data)} or more, beyond noise."
    if measured:
        return "No effect of a knob can be told from noise: none has an interval, for which two blocks are needed."
    return "No effect of a single knob has been measured."


def _least_effect(data: StudyData) -> str:
    return format_share(data.specs.study.thresholds.min_effect)


def _other_leader(data: StudyData, first: Row) -> Iterator[str]:
    """Say why the ranking of the case puts another knob first, where it does."""
    ranked = data.value(
        "SELECT knob FROM importance WHERE dbms = ? AND device = ? AND workload = ? AND above_noise ORDER BY rank",
        *Case.of(first),
    )
    if ranked is None or ranked == first["knob"]:
        return
    case = (*Case.of(first), ranked)
    is_there = any((*Case.of(row), row["knob"]) == case for row in _clear_effects(data))
    if not is_there and any(effect[:-1] == case for effect in data.gone_effects):
        yield f"The ranking puts {ranked} first, but its effect did not reproduce in new runs."
    elif prior := data.value(
        "SELECT any_value(prior) FROM fits WHERE dbms = ? AND device = ? AND workload = ?", *Case.of(first)
    ):
        yield f"The ranking puts {ranked} first: it is that of prior {prior}, from runs of another study."
    elif (response := RESPONSES[data.specs.study.screening.response]).is_latency:
        yield f"The ranking puts {ranked} first: it ranks knobs by {response.words}, not by throughput."
    else:
        yield (
            f"The ranking puts {ranked} first: it weighs all values of a knob, together with all values of the others, "
            "and not the largest change from the default configuration."
        )


def _unflushed(data: StudyData, row: Row) -> Iterator[str]:
    """Say that a default configuration that hardly ever flushes is not safe itself, where that is known.

    A device that keeps nothing in a cache is sent no flushes, and what only reads commits nothing.
    """
    needs_flushes = (
        "SELECT count(*) FROM device_property WHERE property = 'flush' AND device = ? AND contains(kernel, ?)"
    )
    if not data.value(needs_flushes, row["device"], "write back") or not _writes(data.specs.workloads[row["workload"]]):
        return
    rate = data.value(
        "SELECT any_value(reference) FROM effects WHERE metric = 'flushes_per_op' AND beside IS NULL "
        "AND dbms = ? AND device = ? AND workload = ?",
        *Case.of(row),
    )
    if rate is not None and rate < _SELDOM_FLUSHED:
        frequency = f"flushes once in {format_number(1 / rate)} operations" if rate > 0 else "never flushes"
        yield f"The default configuration itself {frequency}, so it can also lose committed data in a power cut."


def _writes(workload: Workload) -> bool:
    """Whether a load writes, mostly or now and then."""
    shares = (workload.parameters.get(f"{kind}proportion", 0) for kind in ("update", "insert", "readmodifywrite"))
    return workload.class_ == "write" or any(float(share) > 0 for share in shares)


def _clear_effects(data: StudyData) -> list[Row]:
    """Return the clear effects on throughput, the largest first."""
    rows = data.rows(
        "SELECT * FROM effects WHERE metric = 'throughput_ops' AND estimate IS NOT NULL ORDER BY abs(estimate) DESC"
    )
    return [row for row in rows if is_own_knob(data.specs, row["dbms"], row["knob"]) and read_effect(data, row).clear]


def _effect_words(data: StudyData, row: Row) -> str:
    dbms = data.specs.dbms.get(row["dbms"])
    value = format_value(dbms, row["knob"], row["value"])
    reference = "the default" if row["baseline"] is None else format_value(dbms, row["knob"], row["baseline"])
    reference += describe_beside(dbms, None if row["beside"] is None else json.loads(row["beside"]))
    where = f"{row['dbms']} on {row['device']}, {row['workload']}"
    return f"{value} is {describe_change(row['estimate'])} than {reference} ({where}{_tell_again(data, row)})"


def _tell_again(data: StudyData, row: Row) -> str:
    """Say what new pairs of runs of an effect show, where it is not their figure."""
    again = find_again(data, row)
    if row.get("swept", 0.0) is not None:
        is_proved = again is None or again["again_low"] is None or again["again_low"] > 0
        return "" if is_proved else "; together with the sweep: the new pairs above alone do not prove it"
    if not data.value("SELECT count(swept) > 0 FROM effects"):
        return ""
    if again is not None and (ratio := again["again"]) is not None:
        return f"; {describe_change(ratio)} in the new pairs of runs above"
    return "; not measured again, so it may be smaller"


def _verdicts(findings: FindingsSection) -> Iterator[str]:
    if findings.empty:
        yield findings.empty
        return
    if not findings.cards and not findings.sound.count and not findings.withdrawn.count:
        questions = plural(findings.unjudged.count, "question")
        if findings.unjudged.count:
            reason = _choose_example(findings).sentence.split(". ")[0].rstrip(".")
            yield f"None of {questions} about DBMS and device could be judged, for example: {reason}."
        else:
            yield findings.unasked
        return
    devices = sorted({device for card in findings.cards for device in card.devices})
    summary = plural(findings.mismatches, "mismatch", "mismatches") if findings.mismatches else "No mismatch"
    if findings.symptoms > findings.mismatches:
        summary += f", seen in {plural(findings.symptoms, 'finding')},"
    summary += f" between DBMS and device (on {join_words(devices)})" if devices else " between DBMS and device"
    if findings.withdrawn.count:
        count = findings.withdrawn.count
        summary += f"; experiments refuted the effect or its cause for {plural(count, 'finding')}"
    if findings.unjudged.count:
        example = _choose_example(findings)
        effect = "" if example.effect == UNKNOWN else f"{example.effect}; "
        setting = f" for {example.knob} = {example.value}" if example.value else ""
        summary += f"; {plural(findings.unjudged.count, 'question')} could not be judged, such as "
        summary += f"{example.rules}{setting} ({effect}{example.case})"
    yield f"{summary}."


def _visible(data: StudyData, findings: FindingsSection) -> Iterator[str]:
    """Say how large an effect has to be to be seen, where nothing was: noise hides mismatches, too."""
    width = data.value("SELECT median(high - low) / 2 FROM effects WHERE metric = 'throughput_ops' AND low IS NOT NULL")
    if width is not None and not findings.mismatches:
        least = log1p(data.specs.study.thresholds.min_effect)
        hidden = "could not be seen (half of a typical 95 % interval)"
        limit = hidden if width > least else "do not count (threshold `min_effect`)"
        size = describe_change(max(width, least), "", "").strip()
        yield f"Effects on throughput of less than {size} {limit}."


def _choose_example(findings: FindingsSection) -> Judged:
    """Return something that could not be judged: of a knob, if there is one, and of the largest effect.

    That a study has one DBMS, or devices of one tier, its reader knows.
    """

    def rank(row: Judged) -> tuple[bool, float, int]:
        return not row.knob, -abs(float(row.order or 0)), len(row.sentence)

    return min(findings.unjudged.rows, key=rank)


def _false_alarms(controls: Controls | None) -> Iterator[str]:
    """Warn where knobs that can change nothing seem to change something."""
    if controls is not None and controls.alarms:
        predicate = "appears as a finding" if controls.alarms == 1 else "appear as findings"
        # An alarm of another metric has no effect on throughput.
        largest = f", up to {describe_change(controls.largest)}" if controls.largest else ""
        yield (
            f"⚠ Negative controls ({controls.names}) cannot change anything, yet {format_count(controls.alarms)} of "
            f"{plural(controls.comparisons, 'comparison')} with them {predicate}{largest}: noise is larger than the "
            "statistics of this study assume. Do not trust effects of that size."
        )


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
        losses = [f"{format_count(failed)} gave no result"] if failed else []
        losses += name_set_aside(data)
        share = f"{format_count(lost)} of {plural(total, 'run')} ({format_share(lost / total)})"
        yield f"{share} {'was' if lost == 1 else 'were'} excluded: {join_words(losses)}."
    if total and (missing := data.missing_cases):
        yield f"Not measured yet: {join_words([name_case(case) for case in missing])}."


def _describe_workload(workload: Workload) -> str:
    window = describe_window(workload.measure_s, workload.measure_operations)
    return (
        f"{workload.generator}, {workload.size}, {plural(workload.threads, 'thread')}, "
        f"{window} measured after {format_number(workload.warmup_s)} s of warm-up"
    )


def _describe_account(data: StudyData) -> str:
    """Say what the runs cost, and what each combination of the same values, measured once, would have cost."""
    (spent,) = data.rows(
        "SELECT count(*) AS runs, coalesce(sum(overhead_s), 0) AS around_s, "
        "coalesce(sum(window_s), 0) + around_s AS all_s FROM runs"
    )
    workloads = data.specs.workloads
    by_load = data.rows("SELECT workload, count(overhead_s) AS runs FROM runs GROUP BY workload")
    warm_up_s = sum(
        row["runs"] * workloads[row["workload"]].warmup_s for row in by_load if row["workload"] in workloads
    )
    spent = {**spent, "around_s": spent["around_s"] + warm_up_s, "all_s": spent["all_s"] + warm_up_s}
    spaces = [case_space(data.specs, case).levels for case in data.specs.cases]
    grid = sum(prod(len(levels) for levels in space.values()) for space in spaces)
    if grid < _COUNTABLE:
        size = f"{plural(grid, 'run')}, {format_seconds(grid * spent['all_s'] / spent['runs'])}"
    else:
        size = f"about 10^{log10(grid):.0f} runs"
    return (
        f"{plural(spent['runs'], 'run')} took {format_seconds(spent['all_s'])}, {format_seconds(spent['around_s'])} of "
        f"it outside the measured windows; a full grid of the values that screening draws from has {size}"
    )


def _facts(data: StudyData) -> Iterator[tuple[str, str]]:
    versions = data.rows(
        "SELECT dbms, list(DISTINCT dbms_version ORDER BY dbms_version) FILTER (dbms_version <> '') AS versions "
        "FROM runs GROUP BY dbms ORDER BY dbms"
    )
    yield "DBMS", "; ".join(f"{row['dbms']} {join_words(row['versions'] or [UNKNOWN])}" for row in versions) or UNKNOWN
    for name, dbms in data.specs.dbms.items():
        if chosen := dbms.list_chosen(data.specs.study.baseline.get(name, {})):
            yield f"Default configuration of {name}", f"not as built in: {join_words(chosen)}"
    for profile in data.rows("SELECT * FROM device_profile ORDER BY tier_rank DESC, device"):
        properties = [profile[name] for name in ("tier", "block_device", "filesystem") if profile[name]]
        yield f"Device {profile['device']}", ", ".join(properties) or UNKNOWN
    for name, workload in data.specs.workloads.items():
        yield f"Workload {name}", "measured elsewhere" if data.is_imported else _describe_workload(workload)
    span = data.rows("SELECT min(started_at) AS first, max(started_at) AS last, count(*) AS n FROM runs")[0]
    if span["n"]:
        times = f"from {format_time(span['first'])} to {format_time(span['last'])} (UTC)"
        yield "Measured", f"{plural(span['n'], 'run')} {times if span['first'] else 'at times that are not known'}"
        if not data.is_imported:
            yield "This study's account", _describe_account(data)
    machines = [
        row["machine"] for row in data.rows("SELECT DISTINCT machine FROM runs WHERE machine IS NOT NULL ORDER BY 1")
    ]
    yield "Machine", "; ".join(machines) or UNKNOWN
    yield from tell_client(data)
