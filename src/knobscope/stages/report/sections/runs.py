"""Section "Runs": whether the machine stayed the same, what was counted, and how much the watching can be trusted."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from markupsafe import Markup

from knobscope.figures import Figure, TimelineBlock, TimelineRun, choose_blocks, draw_timeline, slug
from knobscope.specs import Case
from knobscope.stages.report.sections.default_io import DefaultIo, build_default_io
from knobscope.stages.report.sections.failures import Failure, list_failures
from knobscope.stages.report.sections.guards import describe_level, name_set_aside
from knobscope.stages.report.sections.layout import tabulate_layout
from knobscope.statistics.steadiness import UNEVEN
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.formats import (
    UNKNOWN,
    format_count,
    format_number,
    format_seconds,
    format_share,
    format_time,
    join_words,
    plural,
)

STATUS_WORDS = {
    "ok": "measured",
    "failed_start": "did not start",
    "failed_run": "failed while running",
    "rejected_value": "value refused",
    "timeout": "timed out",
    "invalid": "invalid",
}


@dataclass(frozen=True)
class CaseRuns:
    """The runs of one case: order and drift, counts, overhead, monitor, I/O of the default configuration."""

    name: str
    timeline: Figure
    drift_notes: list[str]
    facts: list[tuple[str, str]]
    default_io: DefaultIo
    layout: Markup


@dataclass(frozen=True)
class RunsSection:
    """All runs; `statuses` are (status, words, count), `empty` says why there are none."""

    cases: list[CaseRuns]
    statuses: list[tuple[str, str, int]]
    failures: list[Failure]
    left_out: list[Row]
    knobs_left_out: list[Row]
    empty: str = ""


def build_runs(data: StudyData) -> RunsSection:
    """Return the section from tables `runs` and `blocks` and those of the block layer."""
    counts = data.rows("SELECT status, count(*) AS n FROM runs GROUP BY status ORDER BY status <> 'ok', n DESC, status")
    statuses = [
        (row["status"] or UNKNOWN, STATUS_WORDS.get(row["status"], "of unknown status"), row["n"]) for row in counts
    ]
    if not statuses:
        return RunsSection([], [], [], [], [], "Nothing has been measured yet.")
    cases = [_case_runs(data, case) for case in data.shown_cases]
    return RunsSection(cases, statuses, list_failures(data), _left_out(data), _knobs_left_out(data))


def _left_out(data: StudyData) -> list[Row]:
    """Return the values that the sweep left out, each once for a DBMS and a reason."""
    return data.rows(
        "SELECT DISTINCT dbms, knob, value, reason FROM left_out_values WHERE value IS NOT NULL ORDER BY ALL"
    )


def _knobs_left_out(data: StudyData) -> list[Row]:
    """Return the knobs that `all` left out, by DBMS and reason, the most frequent reason first."""
    return data.rows(
        "SELECT dbms, reason, list(DISTINCT knob ORDER BY knob) AS knobs, count(DISTINCT knob) AS count "
        "FROM left_out_values WHERE value IS NULL GROUP BY dbms, reason ORDER BY dbms, count DESC, reason"
    )


def run_noise(data: StudyData, case: Case) -> float | None:
    """Return the standard deviation of one run's throughput as a log ratio, None when nothing was repeated.

    That of the effects where there are some, else pooled over sentinels of the same block and session.
    """
    effect_noise = data.value(
        "SELECT median(noise) FROM effects "
        "WHERE metric = 'throughput_ops' AND dbms = ? AND device = ? AND workload = ?",
        *case,
    )
    if effect_noise is not None:
        return float(effect_noise)
    pooled = data.value(
        """
        WITH spread AS (
            SELECT var_samp(ln(throughput_ops)) * (count(*) - 1) AS squares, count(*) - 1 AS degrees
            FROM runs
            WHERE is_sentinel AND status = 'ok' AND throughput_ops > 0 AND dbms = ? AND device = ? AND workload = ?
            GROUP BY block_id, session
            HAVING count(*) > 1
        )
        SELECT sqrt(sum(squares) / sum(degrees)) FROM spread
        """,
        *case,
    )
    return None if pooled is None else float(pooled)


def _case_runs(data: StudyData, case: Case) -> CaseRuns:
    runs = data.rows(
        """
        SELECT run_id, config_id, block_id, session, phase, is_sentinel, status, first_failure, throughput_ops,
            started_at, overhead_s, window_s, window_change, window_steady, window_late_s, window_pause_s,
            window_halves, monitor, lost_events, unattributed_share
        FROM runs WHERE dbms = ? AND device = ? AND workload = ?
        ORDER BY min(started_at) OVER (PARTITION BY block_id), block_id, session, position
        """,
        *case,
    )
    blocks = data.of_case("blocks", case, "block_id, session")
    notes = [
        f"{_session_name(case, row)} {_TREATMENTS[row['treatment']]}: {row['reason']}."
        for row in blocks
        if row["treatment"] in _TREATMENTS
    ]
    notes += [
        f"{_session_name(case, row)} was {describe_level(row)} than the other sessions throughout."
        for row in blocks
        if row.get("other_level")
    ]
    return CaseRuns(
        name=name_case(case),
        timeline=_timeline(data, case, runs, blocks),
        drift_notes=notes,
        facts=[*_facts(runs), *_set_aside_facts(data, case)],
        default_io=build_default_io(data, case),
        layout=tabulate_layout(data, case),
    )


_TREATMENTS = {"position": "drifted and was corrected for it", "dropped": "was excluded from all comparisons"}


def _short_name(case: Case, block_id: str) -> str:
    return block_id.removeprefix(f"{case}/")


def _session_name(case: Case, row: Row) -> str:
    """Return the name of a block, with its session where it has several."""
    session = f" ({row['session']})" if row["sessions"] > 1 else ""
    return _short_name(case, row["block_id"]) + session


def _timeline(data: StudyData, case: Case, runs: list[Row], blocks: list[Row]) -> Figure:
    judged = {(row["block_id"], row["session"]): row for row in blocks if row["treatment"] != "none"}
    timeline_blocks = []
    for (block_id, session), members in groupby(runs, key=lambda row: (row["block_id"], row["session"])):
        rows = list(members)
        verdict = judged.get((block_id, session))
        timeline_blocks.append(
            TimelineBlock(
                name=_short_name(case, block_id),
                started=format_time(rows[0]["started_at"])[5:],
                runs=[
                    TimelineRun(
                        row["throughput_ops"] if row["status"] == "ok" else None,
                        row["is_sentinel"],
                        row["status"],
                        format_time(row["started_at"]),
                    )
                    for row in rows
                ],
                treatment=verdict["treatment"] if verdict else "none",
                note=verdict["reason"] if verdict else plural(len(rows), "run"),
            )
        )
    noise = run_noise(data, case)
    drifting = sum(block.treatment != "none" for block in timeline_blocks)
    drawn = choose_blocks(timeline_blocks)
    return Figure(
        name=slug("timeline", *case),
        title=name_case(case),
        description=f"Throughput of the default configuration over {plural(len(timeline_blocks), 'block')}. "
        f"{drifting} of them {'was' if drifting == 1 else 'were'} corrected or excluded.",
        draw=lambda width: draw_timeline(width, drawn, noise),
        caption=""
        if len(drawn) == len(timeline_blocks)
        else f"{len(drawn)} of {len(timeline_blocks)} blocks are shown.",
        data=[{key: row[key] for key in _TIMELINE_COLUMNS} for row in runs],
        wide=True,
    )


_TIMELINE_COLUMNS = ("run_id", "block_id", "started_at", "is_sentinel", "status", "throughput_ops")


def _facts(runs: list[Row]) -> Iterator[tuple[str, str]]:
    sentinels = sum(row["is_sentinel"] for row in runs)
    blocks = len({row["block_id"] for row in runs})
    yield (
        "Runs",
        f"{format_count(len(runs))} in {plural(blocks, 'block')}, {sentinels} of them the default configuration",
    )
    overheads = [row["overhead_s"] for row in runs if row["overhead_s"] is not None and row["status"] == "ok"]
    windows = [row["window_s"] for row in runs if row["window_s"] is not None]
    if overheads and windows:
        yield (
            "Overhead of a run",
            (f"{format_seconds(median(overheads))} around {format_seconds(median(windows))} of measurement (median)"),
        )
    ok = [row for row in runs if row["status"] == "ok"]
    yield from _repeated_facts(ok)
    monitors = sorted({row["monitor"] for row in ok if row["monitor"]})
    yield "Steady windows", _describe_windows(ok)
    yield from _stall_facts(ok)
    yield "Monitor", _describe_monitors(ok, monitors)
    watched = [row for row in ok if row["monitor"] == "bpf"]
    if watched:
        known = [row["lost_events"] for row in watched if row["lost_events"] is not None]
        yield "Lost events", UNKNOWN if not known else format_count(sum(known)) if sum(known) else "none"
        shares = [row["unattributed_share"] for row in watched if row["unattributed_share"] is not None]
        shown = f"{format_share(median(shares))} (median), at most {format_share(max(shares))}" if shares else UNKNOWN
        yield "Reads and writes of unknown origin", shown if any(shares) or not shares else "none"


def _repeated_facts(ok: list[Row]) -> Iterator[tuple[str, str]]:
    """Report runs that count and failed at first: their configurations may fail now and then."""
    repeated = [row for row in ok if row["first_failure"]]
    if repeated:
        words, count = Counter(row["first_failure"] for row in repeated).most_common(1)[0]
        configurations = plural(len({row["config_id"] for row in repeated}), "configuration")
        yield (
            "Second attempts",
            f"⚠ {plural(len(repeated), 'run')} of {configurations} failed at first and succeeded when repeated; "
            f"{'the reason' if count == len(repeated) else 'most often'}: {words}",
        )


#: A window that lasts this much longer is reported.
_LATE_S = 0.1


def _stall_facts(ok: list[Row]) -> Iterator[tuple[str, str]]:
    """Report windows in which the load stood still or changed its speed; these runs are part of the effects."""
    paused = [row["window_pause_s"] for row in ok if row["window_pause_s"]]
    if paused:
        yield (
            "Pauses",
            f"⚠ {plural(len(paused), 'window')} had an interval without any operation; the longest pause lasted "
            f"{format_seconds(max(paused))}",
        )
    halves = [row["window_halves"] for row in ok if row["window_halves"]]
    uneven = [max(ratio, 1 / ratio) for ratio in halves if not 1 / UNEVEN < ratio < UNEVEN]
    if uneven:
        yield (
            "Uneven windows",
            f"⚠ in {format_count(len(uneven))} of {plural(len(halves), 'window')} one half was {UNEVEN:g}x or more "
            f"faster than the other, up to {format_number(max(uneven))}x",
        )
    late = [row["window_late_s"] for row in ok if (row["window_late_s"] or 0) >= _LATE_S]
    if late:
        yield (
            "Late windows",
            f"{plural(len(late), 'window')} lasted longer than requested, by at most {format_seconds(max(late))}",
        )


def _set_aside_facts(data: StudyData, case: Case) -> Iterator[tuple[str, str]]:
    """Name the runs that were set aside, and operations that were tried again, where there were any."""
    if set_aside := name_set_aside(data, case):
        yield "Excluded", f"{join_words(set_aside)}; table set_aside_runs lists them"
    tried = data.rows(
        "SELECT sum(retried)::BIGINT AS again, sum(ok + failed)::BIGINT AS operations "
        "FROM operations JOIN runs USING (run_id) "
        "WHERE retried IS NOT NULL AND status = 'ok' AND dbms = ? AND device = ? AND workload = ?",
        *case,
    )[0]
    if tried["again"]:
        yield (
            "Attempts repeated",
            f"{format_count(tried['again'])} in {plural(tried['operations'], 'operation')} after conflicts",
        )


def _describe_windows(ok: list[Row]) -> str:
    """Warn of runs whose throughput still rose or fell; they count all the same."""
    judged = [row for row in ok if row["window_steady"] is not None]
    if not judged:
        return "not known: too few intervals in a window"
    unsteady = [row["window_change"] for row in judged if not row["window_steady"]]
    if not unsteady:
        return f"all of {format_count(len(judged))}"
    worst = max(unsteady, key=abs)
    return (
        f"⚠ {format_count(len(unsteady))} of {format_count(len(judged))} are not: throughput still "
        f"{'rose' if worst > 0 else 'fell'} by {format_share(abs(worst))} in one; consider a longer warm-up or window"
    )


def _describe_monitors(ok: list[Row], monitors: list[str]) -> str:
    if not ok:
        return "no run succeeded"
    counts = [f"{name} ({plural(sum(row['monitor'] == name for row in ok), 'run')})" for name in monitors]
    return join_words(counts) or UNKNOWN
