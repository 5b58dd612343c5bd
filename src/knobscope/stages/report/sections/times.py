"""Where the time goes: what the device does while an operation takes its time, by setting."""

from knobscope.figures import Figure, TimeBar, TimePart, draw_times, slug
from knobscope.specs import Case, factor_knob
from knobscope.stages.report.sections.effects import name_setting, read_effect
from knobscope.study_data.study import Row, Rows, StudyData, name_case
from knobscope.text.formats import format_micros, join_words

_MOST_BARS = 12
#: Part -> its words and its look in the picture.
_PARTS = {"flush_us": ("flush", "line-c"), "transfer_us": ("read, write", "line-d"), "idle_us": ("no request", "soft")}
#: What the device does meanwhile; below this share of the change it is not told.
_WORDS = {"flush_us": "flushes for", "transfer_us": "reads or writes for", "idle_us": "has no request for"}
_WORTH_TELLING = 0.02
#: Whether a case sent requests to other devices of its layout.
_OTHERS = """
    SELECT count(*) FROM layout_io l JOIN runs r USING (run_id)
    WHERE l.device <> r.device AND (r.dbms, r.device, r.workload) = (?, ?, ?)
"""


def time_figures(data: StudyData) -> list[Figure]:
    """Return a figure for each case in which a swept value has a clear effect on throughput."""
    return [figure for case in data.shown_cases if (figure := _time_figure(data, case)) is not None]


def _read_times(data: StudyData, case: Case) -> Rows:
    """Return times per operation, microseconds: the default configuration first, then by effect.

    The whole time is that of the effects, so that a finding says the same; its parts have the medians of their shares.
    Flushes may overlap with other requests and with each other; the time in which the device had any is not counted
    twice for that.
    """
    return data.rows(
        """
        WITH asked AS (
            SELECT ? AS dbms, ? AS device, ? AS workload
        ), times AS (
            SELECT r.knob, r.value, r.beside,
                1e6 / throughput_ops AS total_us,
                busy_share * total_us AS busy_us,
                least(coalesce(f.flushes * f.mean_us / operations, 0), busy_us) AS flushing_us,
                1e6 * cpu_s / operations AS cpu_us
            FROM sweep_runs r
            JOIN asked USING (dbms, device, workload)
            JOIN run_depths USING (run_id)
            LEFT JOIN run_flushes f USING (run_id)
            WHERE status = 'ok' AND throughput_ops > 0 AND (is_sentinel OR knob IS NOT NULL)
        ), medians AS (
            SELECT knob, value, beside, count(*) AS runs, median(total_us) AS median_us,
                median(flushing_us / total_us) AS flushing, median((busy_us - flushing_us) / total_us) AS transfers,
                median(cpu_us) AS cpu_us
            FROM times GROUP BY ALL
        ), fitted AS (
            SELECT * FROM effects JOIN asked USING (dbms, device, workload) WHERE metric = 'throughput_ops'
        ), usual AS (
            SELECT any_value(reference) AS usual_ops FROM fitted WHERE beside IS NULL
        )
        SELECT m.knob, m.value, m.beside, m.runs,
            coalesce(
                1e6 / if(m.knob IS NULL, usual_ops, t.reference * exp(coalesce(t.swept, t.estimate))),
                median_us
            ) AS total_us,
            flushing * total_us AS flush_us, transfers * total_us AS transfer_us,
            greatest(total_us - flush_us - transfer_us, 0) AS idle_us, cpu_us,
            t.dbms, t.device, t.workload, t.metric, t.estimate, t.low, t.high, t.q_value
        FROM medians m, usual
        LEFT JOIN fitted t
            ON (t.knob, t.value) = (m.knob, m.value) AND t.beside IS NOT DISTINCT FROM m.beside
        WHERE m.knob IS NULL OR t.estimate IS NOT NULL
        ORDER BY m.knob IS NULL DESC, abs(t.estimate) DESC, m.knob, m.value
        """,
        *case,
    )


def _time_figure(data: StudyData, case: Case) -> Figure | None:
    rows = _read_times(data, case)
    if not rows or rows[0]["knob"] is not None:
        return None
    default, *alternatives = rows
    clear = [row for row in alternatives if read_effect(data, row).clear]
    if not clear:
        return None
    shown = clear[: _MOST_BARS - 1]
    bars = [_bar("default", default), *(_bar(name_setting(data, row), row) for row in shown)]
    is_one = not data.is_imported and all(_count_clients(data, case, row) == 1 for row in (default, *shown))
    who = "the client takes" if is_one else "all clients together take"
    sentences = [_tell(data, row, default, who) for row in shown if row["beside"] is None]
    omitted = f" The {len(shown)} largest of {len(clear)} clear effects." if len(clear) > len(shown) else ""
    unit = "Time per operation in the sweep" + ("" if is_one else ", over all clients")
    summary = f"{unit}, by what the device does meanwhile."
    if data.value(_OTHERS, *case):
        summary += " Other devices of the layout are not included: while they serve requests, it may have none."
    return Figure(
        name=slug("times", *case),
        title=f"{name_case(case)}: where the time goes",
        description=" ".join([summary, *sentences[:4]]),
        draw=lambda width: draw_times(width, bars),
        data=[default, *shown],
        query=rows.query,
        caption=" ".join([summary, *sentences[:1]]) + omitted,
    )


def _bar(name: str, row: Row) -> TimeBar:
    note = "" if row["cpu_us"] is None else f"CPU {format_micros(row['cpu_us'])}"
    return TimeBar(name, note, [TimePart(label, look, row[part]) for part, (label, look) in _PARTS.items()])


def _count_clients(data: StudyData, case: Case, row: Row) -> int:
    return int(row["value"]) if row["knob"] == factor_knob("threads") else data.specs.workloads[case.workload].threads


def _tell(data: StudyData, row: Row, default: Row, who: str) -> str:
    """Say what the time that a value saves or costs consists of."""
    change = row["total_us"] - default["total_us"]
    parts = {part: row[part] - default[part] for part in _PARTS}
    contributions = [
        f"{_WORDS[part]} {_more(amount)}"
        for part, amount in parts.items()
        if abs(amount) >= _WORTH_TELLING * abs(change)
    ]
    cpu = None if row["cpu_us"] is None or default["cpu_us"] is None else row["cpu_us"] - default["cpu_us"]
    computing = "" if cpu is None or not cpu else f"; the DBMS takes {_more(cpu)} of CPU time"
    return (
        f"With {name_setting(data, row)} {who} {_more(change)} per operation: "
        f"the device {join_words(contributions)}{computing}."
    )


def _more(micros: float) -> str:
    return f"{format_micros(abs(micros))} {'more' if micros > 0 else 'less'}"
