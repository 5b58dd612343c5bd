"""What an operation waits for: the time of client-serving threads by reason, a bar per swept value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from knobscope.figures import Figure, TimeBar, TimePart, draw_times, slug
from knobscope.specs import Case
from knobscope.stages.report.sections.effects import name_setting, read_effect
from knobscope.stages.report.sections.evidence import Comparison
from knobscope.study_data.budgets import read_budget, read_latency
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.budgets import (
    REASONS,
    WAIT_METRICS,
    Part,
    describe_budget,
    describe_budget_change,
    describe_changed_parts,
    in_server,
    sum_micros,
)
from knobscope.text.formats import (
    NO_CLEAR_EFFECT,
    UNKNOWN,
    describe_change,
    format_count,
    format_micros,
    format_share,
    keep_units,
    plural,
)

_MOST_BARS, _MOST_TOLD = 12, 4
_LEAST_SHARE = 0.001  # of an operation: less has no column, and no mark in the picture
#: Share of the latency below which a budget says little of it: most of an operation passes elsewhere. A choice.
_LEAST_COVERED = 0.5
#: More than all of it by less than this is noise.
_NOTICEABLE = 0.05
_WHAT = "Time of client-serving threads per operation, without waiting for the client."
_COVERED = "In brackets: the share of the latency that clients measured."
_MORE = "More than 100 %: these threads also work between operations."
_KEY = "paler: through another thread, which did this meanwhile"

_SETTINGS = """
    WITH settings AS (
        SELECT dbms, device, workload, knob, value, beside, list(DISTINCT run_id ORDER BY run_id) AS ids
        FROM sweep_runs
        WHERE (dbms, device, workload) = (?, ?, ?) AND status = 'ok' AND (is_sentinel OR knob IS NOT NULL)
            AND run_id IN (SELECT run_id FROM waits)
        GROUP BY ALL
    )
    SELECT s.*, e.metric, e.estimate, e.low, e.high, e.q_value
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
    covered: str  # the share of the latency that this is; empty where that is not known
    parts: list[tuple[str, str]]  # with the interval of its change against the default; empty where there is none


@dataclass(frozen=True)
class CaseBudget:
    """The budgets of a case; `note` says what the probe did not see, or why there is no figure."""

    name: str
    figure: Figure | None = None
    sentences: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    lines: list[BudgetLine] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class _Setting:
    """A setting with its budget; `changes` has rows of `effects` by metric.

    `is_against_first`: it is compared with the first of the settings, which is the default, and not with one that
    changes another knob, too.
    """

    name: str
    effect: str
    parts: list[Part]
    latency_us: float | None
    changes: Mapping[str, Row]
    is_against_first: bool = True

    @property
    def total(self) -> float:
        return sum_micros(self.parts)

    @property
    def covered(self) -> float | None:
        """The share of the latency that is known by the parts."""
        return self.total / self.latency_us if self.latency_us else None

    @property
    def covered_words(self) -> str:
        """The same in words; empty where it is not known."""
        return "" if self.covered is None else format_share(self.covered)

    def change_of(self, reason: str) -> Row:
        return self.changes.get(WAIT_METRICS[reason], {})


def build_budgets(data: StudyData) -> list[CaseBudget]:
    """Return the cases whose waits were watched."""
    return [budget for case in data.shown_cases if (budget := _build_case(data, case)) is not None]


def tell_change(data: StudyData, effect: Row) -> str:
    """Say what an operation waits for more or less with the value of a row of table `effects`; empty where unknown.

    Without the sum: findings have that by throughput, which differs a little from the time in the server.
    """
    rows = data.rows(_SETTINGS, *Case.of(effect))
    asked = [(None, None, None), (effect["knob"], effect["value"], None)]
    runs = {(row["knob"], row["value"], row["beside"]): row for row in rows}
    if effect["beside"] is not None or any(key not in runs for key in asked):
        return ""
    before, after = (read_budget(data, runs[key]["ids"]) for key in asked)
    if not before or not after or not (parts := describe_changed_parts(before, after)):
        return ""
    source = "" if effect.get("swept") is None else " in the sweep"
    return keep_units(f"Time per operation with {name_setting(data, runs[asked[1]])}{source}: {parts}.")


def _build_case(data: StudyData, case: Case) -> CaseBudget | None:
    rows = data.rows(_SETTINGS, *case)
    if not rows:
        return None
    changes: dict[tuple[str | None, ...], dict[str, Row]] = {}
    for row in data.rows(_CHANGES, *case, list(WAIT_METRICS.values())):
        changes.setdefault((row["knob"], row["value"], row["beside"]), {})[row["metric"]] = row
    has_default = rows[0]["knob"] is None and bool(read_budget(data, rows[0]["ids"]))
    read = [_read_setting(data, row, changes, has_default) for row in rows[:_MOST_BARS]]
    settings = [setting for setting in read if setting.parts]
    if not settings:
        remedy = f"if there are such threads, name them as `session` under `threads` in the spec of {case.dbms}"
        note = f"No thread is known to serve a client through a whole operation: {remedy}."
        return CaseBudget(name_case(case), note=note)
    limit = f"The {_MOST_BARS - 1} largest of {len(rows) - 1} effects." if len(rows) > _MOST_BARS else ""
    notes = [_tell_uncovered(case, settings[0]), _tell_losses(data, [run for row in rows for run in row["ids"]])]
    if not has_default:
        notes.insert(0, "No run of the default configuration has waits, so no setting is compared with it.")
    title = f"{name_case(case)}: what an operation waits for"
    reasons = _find_reasons(settings)
    return CaseBudget(
        name_case(case),
        _draw(slug("waits", *case), title, settings, limit),
        [keep_units(sentence) for sentence in _tell(settings)],
        [REASONS[reason] for reason in reasons],
        [_line(setting, reasons) for setting in settings],
        " ".join(filter(None, notes)),
    )


def _read_setting(
    data: StudyData, row: Row, changes: Mapping[tuple[str | None, ...], Mapping[str, Row]], has_default: bool
) -> _Setting:
    name = "default" if row["knob"] is None else name_setting(data, row)
    key = row["knob"], row["value"], row["beside"]
    parts, latency_us = read_budget(data, row["ids"]), read_latency(data, row["ids"])
    is_against_first = has_default and row["beside"] is None
    return _Setting(name, _tell_effect(data, row), parts, latency_us, changes.get(key, {}), is_against_first)


def _tell_effect(data: StudyData, row: Row | None) -> str:
    if row is None or row["estimate"] is None:
        return ""
    return describe_change(row["estimate"]) if read_effect(data, row).clear else NO_CLEAR_EFFECT


def _find_reasons(settings: Sequence[_Setting]) -> list[str]:
    """Return the reasons that have time worth a column in any of the settings, in their order."""
    reasons = {
        part.reason
        for setting in settings
        for part in in_server(setting.parts)
        if part.micros >= _LEAST_SHARE * setting.total
    }
    return [reason for reason in REASONS if reason in reasons]


def _tell(settings: Sequence[_Setting]) -> list[str]:
    """Say what an operation with the first setting waits for, and how that of others with a clear effect differs."""
    first, *alternatives = settings
    budget = describe_budget(first.parts, first.latency_us)
    sentences = [f"{first.name[:1].upper()}{first.name[1:]}: an operation takes {budget}."]
    compared = [
        setting for setting in alternatives if setting.is_against_first and setting.effect not in ("", NO_CLEAR_EFFECT)
    ]
    return sentences + [
        f"With {setting.name} an operation {describe_budget_change(first.parts, setting.parts)} "
        f"({describe_budget(setting.parts)})."
        for setting in compared[:_MOST_TOLD]
    ]


def _line(setting: _Setting, reasons: Sequence[str]) -> BudgetLine:
    micros = {part.reason: part.micros for part in setting.parts}
    cells = [(format_micros(micros[reason]), _tell_interval(setting.change_of(reason))) for reason in reasons]
    return BudgetLine(
        setting.name, setting.effect or UNKNOWN, format_micros(setting.total), setting.covered_words, cells
    )


def _tell_interval(change: Row) -> str:
    if change.get("low") is None:
        return ""
    return " to ".join(f"{'−' if end < 0 else '+'}{format_micros(abs(end))}" for end in (change["low"], change["high"]))


def _tell_uncovered(case: Case, setting: _Setting) -> str:
    """Say that most of an operation passes outside the threads of its budget: in their queue, or in other threads.

    A listener that passes operations on waits for their results as it waits for clients, so it seems to be idle.
    """
    if setting.covered is None or setting.covered >= _LEAST_COVERED:
        return ""
    idle_us = sum(part.micros for part in setting.parts) - setting.total
    share = f"{setting.covered_words} of an operation's latency ({format_micros(setting.latency_us)})"
    if idle_us < setting.total:
        return f"Serving a client takes only {share}: these threads are busy, so most of it passes in their queue."
    return (
        f"⚠ The threads that serve clients account for only {share}, and are idle for most of the time. The rest "
        "passes on the way to the client, or in threads to which they pass operations on. If they do that, this budget "
        "does not show what clients wait for; give all these threads one class of their own (`threads` in the spec of "
        f"{case.dbms})."
    )


def _tell_losses(data: StudyData, runs: Sequence[str]) -> str:
    query = (
        "SELECT count(*) AS runs, sum(lost_waits) AS lost FROM runs WHERE lost_waits > 0 AND list_contains(?, run_id)"
    )
    row = data.rows(query, list(runs))[0]
    if not row["runs"]:
        return ""
    return f"In {plural(row['runs'], 'run')} the probe missed {format_count(row['lost'])} waits, or parts of them."


def _draw(name: str, title: str, settings: Sequence[_Setting], more: str = "") -> Figure:
    bars = [TimeBar(s.name, s.effect, _bar_parts(s.parts), s.covered_words) for s in settings]
    covered = [setting.covered for setting in settings if setting.covered is not None]
    is_more = any(share > 1 + _NOTICEABLE for share in covered)
    is_through = any(part.through for setting in settings for part in in_server(setting.parts))
    return Figure(
        name=name,
        title=title,
        description=" ".join([_WHAT, *_tell(settings)]),
        draw=lambda width: draw_times(width, bars, _KEY if is_through else ""),
        data=[_data_row(setting, part) for setting in settings for part in setting.parts],
        caption=" ".join(filter(None, [_WHAT, _COVERED if covered else "", _MORE if is_more else "", more])),
        wide=True,
    )


def _data_row(setting: _Setting, part: Part) -> dict[str, object]:
    change = setting.change_of(part.reason)
    times = {"us_per_op": part.micros, "through_us_per_op": part.through, "via": part.via}
    ends = {f"change_{name}": change.get(name) for name in ("estimate", "low", "high")}
    return {"setting": setting.name, "reason": part.reason, **times, **ends}


def _bar_parts(parts: Sequence[Part]) -> list[TimePart]:
    """Return what is drawn: of each reason first what a thread waited for itself, then what it did through others."""
    drawn = []
    total = sum(part.micros for part in in_server(parts))
    for part in in_server(parts):
        look, name = f"wait wait-{part.reason}", REASONS[part.reason]
        pieces = (part.micros - part.through, "", ""), (part.through, " through", "through another thread")
        drawn += [
            TimePart(name, look + shade, micros, more, True)
            for micros, shade, more in pieces
            if micros > _LEAST_SHARE * total
        ]
    return drawn


def picture_budget(data: StudyData, compared: Comparison) -> Figure | None:
    """Show the budgets of the runs behind a finding; None where the waits of a setting were not watched."""
    settings = []
    for number, setting in enumerate(compared.settings):
        effect = _tell_effect(data, compared.effect) if number else ""
        runs = [run["run_id"] for run in setting.runs]
        parts = read_budget(data, runs)
        if not parts:
            return None
        settings.append(_Setting(setting.name, effect, parts, read_latency(data, runs), {}))
    return _draw(slug(compared.name, "waits"), "What an operation waits for", settings)
