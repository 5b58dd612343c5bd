"""What an operation waits for: the time of client-serving threads by reason, a bar per swept value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knobscope.figures import Figure, TimeBar, TimePart, draw_times, slug
from knobscope.specs import Case
from knobscope.stages.report.sections.effects import name_setting
from knobscope.stages.report.sections.evidence import Comparison
from knobscope.study_data.budgets import read_budget
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.budgets import (
    REASONS,
    WAIT_METRICS,
    Part,
    describe_budget,
    describe_budget_change,
    in_server,
)
from knobscope.text.formats import UNKNOWN, describe_effect, format_count, format_micros, keep_units, plural

__all__ = ["BudgetLine", "CaseBudget", "build_budgets", "picture_budget"]

_MOST_BARS = 12
_KEY = "paler: through another thread, which did this meanwhile"

_SETTINGS = """
    WITH asked AS (
        SELECT ? AS dbms, ? AS device, ? AS workload
    ), settings AS (
        SELECT r.dbms, r.device, r.workload, r.knob, r.value, r.beside, list(DISTINCT r.run_id ORDER BY r.run_id) AS ids
        FROM sweep_runs r JOIN asked USING (dbms, device, workload)
        WHERE status = 'ok' AND (is_sentinel OR knob IS NOT NULL)
            AND EXISTS (FROM waits w WHERE w.run_id = r.run_id)
        GROUP BY ALL
    )
    SELECT s.*, e.estimate, e.low, e.high
    FROM settings s
    LEFT JOIN effects e
        ON (e.dbms, e.device, e.workload, e.knob, e.value) = (s.dbms, s.device, s.workload, s.knob, s.value)
        AND e.beside IS NOT DISTINCT FROM s.beside AND e.metric = 'throughput_ops'
    ORDER BY s.knob IS NOT NULL, abs(e.estimate) DESC NULLS LAST, s.knob, s.value
"""
_CHANGES = """
    SELECT knob, value, beside, metric, estimate, low, high FROM effects
    WHERE (dbms, device, workload) = (?, ?, ?) AND list_contains(?, metric) AND estimate IS NOT NULL
"""


@dataclass(frozen=True)
class BudgetLine:
    """A setting as a line of a table: its effect, the time of an operation in the server, and the parts of it."""

    setting: str
    effect: str
    total: str
    parts: list[tuple[str, str]]  # with the interval of its change against the default, where there is one


@dataclass(frozen=True)
class CaseBudget:
    """The budgets of a case; `note` says what the probe did not see, or why there is no figure."""

    name: str
    figure: Figure | None
    sentences: list[str]
    reasons: list[str]
    lines: list[BudgetLine]
    note: str = ""


@dataclass(frozen=True)
class _Setting:
    """A setting of a case: row of `_SETTINGS`, its budget, and the changes of the parts, by reason."""

    name: str
    effect: str
    row: Row
    parts: list[Part]
    changes: Mapping[str, Row]

    def part_of(self, reason: str) -> Part:
        return next(part for part in self.parts if part.reason == reason)


def build_budgets(data: StudyData) -> list[CaseBudget]:
    """Return the cases whose waits were watched."""
    return [budget for case in data.shown_cases if (budget := _build_case(data, case)) is not None]


def _build_case(data: StudyData, case: Case) -> CaseBudget | None:
    rows = data.rows(_SETTINGS, case.dbms, case.device, case.workload)
    if not rows:
        return None
    changes: dict[tuple[str | None, ...], dict[str, Row]] = {}
    for row in data.rows(_CHANGES, case.dbms, case.device, case.workload, list(WAIT_METRICS.values())):
        changes.setdefault((row["knob"], row["value"], row["beside"]), {})[row["metric"]] = row
    settings = [_read_setting(data, row, changes) for row in rows[:_MOST_BARS]]
    settings = [setting for setting in settings if setting.parts]
    if not settings:
        note = (
            f"No thread is known to serve clients: name them as `session` under `threads` in the spec of {case.dbms}."
        )
        return CaseBudget(name_case(case), None, [], [], [], note)
    shown = [
        reason
        for reason in REASONS
        if any(
            round(part.micros, 1) for setting in settings for part in in_server(setting.parts) if part.reason == reason
        )
    ]
    left_out = f"The {_MOST_BARS - 1} largest of {len(rows) - 1} effects." if len(rows) > _MOST_BARS else ""
    return CaseBudget(
        name_case(case),
        _draw(
            slug("waits", *str(case).split("/")), f"{name_case(case)}: what an operation waits for", settings, left_out
        ),
        [keep_units(sentence) for sentence in _tell(settings)],
        [REASONS[reason] for reason in shown],
        [_line(setting, shown) for setting in settings],
        _tell_losses(data, [run for row in rows for run in row["ids"]]),
    )


def _read_setting(data: StudyData, row: Row, changes: Mapping[tuple[str | None, ...], Mapping[str, Row]]) -> _Setting:
    is_default = row["knob"] is None
    effect = "" if row["estimate"] is None else describe_effect(row["estimate"], row["low"], row["high"])
    name = "default" if is_default else name_setting(data, row)
    key = row["knob"], row["value"], row["beside"]
    return _Setting(name, effect, row, read_budget(data, row["ids"]), changes.get(key, {}))


def _tell(settings: Sequence[_Setting]) -> list[str]:
    """Say what the first setting, the default, waits for, and what others change; not of what has another reference."""
    default, *others = settings
    if default.row["knob"] is not None:
        return []
    told = [f"With the default configuration an operation takes, {describe_budget(default.parts)}."]
    told += [
        f"With {other.name} it {describe_budget_change(default.parts, other.parts)}; {describe_budget(other.parts)}."
        for other in others[:4]
        if other.row["beside"] is None
    ]
    return told


def _line(setting: _Setting, reasons: Sequence[str]) -> BudgetLine:
    total = sum(part.micros for part in in_server(setting.parts))
    cells = [
        (format_micros(setting.part_of(reason).micros), _tell_interval(setting.changes.get(WAIT_METRICS[reason])))
        for reason in reasons
    ]
    return BudgetLine(setting.name, setting.effect or UNKNOWN, format_micros(total), cells)


def _tell_interval(change: Row | None) -> str:
    if change is None or change["low"] is None:
        return ""
    low, high = (f"{'−' if end < 0 else '+'}{format_micros(abs(end))}" for end in (change["low"], change["high"]))
    return f"{low} to {high}"


def _tell_losses(data: StudyData, runs: Sequence[str]) -> str:
    row = data.rows(
        "SELECT sum(lost_waits) AS lost, count(*) AS runs FROM runs WHERE lost_waits > 0 AND list_contains(?, run_id)",
        list(runs),
    )[0]
    if not row["lost"]:
        return ""
    return f"In {plural(row['runs'], 'run')} the probe missed {format_count(row['lost'])} waits, or parts of them."


def _draw(name: str, title: str, settings: Sequence[_Setting], caption: str = "") -> Figure:
    bars = [TimeBar(setting.name, setting.effect, _bar_parts(setting.parts)) for setting in settings]
    what = "Time of client-serving threads per operation, without waiting for the client."
    is_through = any(part.through for setting in settings for part in in_server(setting.parts))
    return Figure(
        name=name,
        title=title,
        description=" ".join([what, *_tell(settings)]),
        draw=lambda width: draw_times(width, bars, _KEY if is_through else ""),
        data=[
            {
                "setting": setting.name,
                "reason": part.reason,
                "us_per_op": part.micros,
                "through_us_per_op": part.through,
                "via": part.via,
                **{
                    end: setting.changes.get(WAIT_METRICS[part.reason], {}).get(end)
                    for end in ("estimate", "low", "high")
                },
            }
            for setting in settings
            for part in setting.parts
        ],
        caption=" ".join(filter(None, [what, caption])),
        wide=True,
    )


def _bar_parts(parts: Sequence[Part]) -> list[TimePart]:
    """Return what is drawn: of each reason first what a thread waited for itself, then what it did through others."""
    drawn = []
    for part in in_server(parts):
        if part.micros:
            look, name = f"wait wait-{part.reason}", REASONS[part.reason]
            drawn.append(TimePart(name, look, part.micros - part.through, is_written=True))
            if part.through:
                drawn.append(TimePart(name, f"{look} through", part.through, "through another thread", is_written=True))
    return drawn


def picture_budget(data: StudyData, compared: Comparison) -> Figure | None:
    """Show the budgets of the runs behind a finding; None where their waits were not watched."""
    effect = compared.effect
    told = (
        ""
        if effect is None or effect["estimate"] is None
        else describe_effect(effect["estimate"], effect["low"], effect["high"])
    )
    settings = [
        _Setting(setting.name, told if number else "", {"knob": number or None, "beside": None}, parts, {})
        for number, setting in enumerate(compared.settings)
        if (parts := read_budget(data, [run["run_id"] for run in setting.runs]))
    ]
    if len(settings) < len(compared.settings):
        return None
    return _draw(slug(compared.name, "waits"), "What an operation waits for", settings)
