"""What setting one knob alone would gain, by the model of screening, compared with what the sweep measured of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from knobscope.specs import Case
from knobscope.stages.report.sections.effects import read_effect
from knobscope.stages.report.sections.html_table import CODE, NUMBER, TEXT, Cells, render_table
from knobscope.study_data.study import Row, StudyData
from knobscope.tables.responses import RESPONSES, Response
from knobscope.text.formats import (
    describe_change,
    describe_effect,
    describe_interval,
    format_number,
    format_value,
    plural,
)

#: So many knobs are listed; table `tunability` has all.
_MOST = 8
_COLUMNS = (
    ("Knob", CODE),
    ("Rank by importance", NUMBER),
    ("Best value", NUMBER),
    ("Expected", TEXT),
    ("Measured alone", TEXT),
)


@dataclass(frozen=True)
class TunabilityPart:
    """Knobs whose gain is beyond noise, and sentences about the others and about how far the halves agree."""

    gains: Markup
    rest: str
    agreement: str


def tell_tunability(data: StudyData, case: Case, fit: Row) -> TunabilityPart | None:
    """Return what table `tunability` holds of a case; None where it holds nothing, or its model cannot be trusted."""
    response = RESPONSES[data.specs.study.screening.response]
    rows = data.rows(
        """
        SELECT t.*, i.rank, e.metric, e.estimate, e.low, e.high, e.q_value
        FROM tunability t
        LEFT JOIN importance i USING (dbms, device, workload, knob)
        LEFT JOIN effects e
            ON e.metric = ? AND e.beside IS NULL
            AND (e.dbms, e.device, e.workload, e.knob, e.value) = (t.dbms, t.device, t.workload, t.knob, t.value)
        WHERE t.dbms = ? AND t.device = ? AND t.workload = ?
        ORDER BY t.gain DESC, t.knob
        """,
        response.column,
        *case,
    )
    if not rows or not fit["trustworthy"]:
        return None
    clear = [row for row in rows if row["gain_low"] > math.log1p(data.specs.study.thresholds.min_effect)]
    gains = render_table(_COLUMNS, [_tell(data, case, row, response) for row in clear[:_MOST]])
    return TunabilityPart(gains, _rest(clear, len(rows)), _agreement(fit, len(rows)))


def _tell(data: StudyData, case: Case, row: Row, response: Response) -> Cells:
    gain, words = response.sign * row["gain"], response.words_of_column
    low, high = sorted(response.sign * row[name] for name in ("gain_low", "gain_high"))
    interval = describe_interval(gain, low, high, *words)
    return (
        row["knob"],
        row["rank"],
        format_value(data.specs.dbms.get(case.dbms), row["knob"], row["value"]),
        f"{describe_change(gain, *words)} ({interval})",
        _tell_swept(data, row, response),
    )


def _tell_swept(data: StudyData, row: Row, response: Response) -> str:
    """Say the effect in the sweep; `effects` has that on the latency itself, of which less is better."""
    if row["estimate"] is None:
        return "not measured alone"
    has_interval = row["low"] is not None and not math.isnan(row["low"])
    low, high = (row["low"], row["high"]) if has_interval else (None, None)
    is_clear = read_effect(data, row).clear
    return describe_effect(row["estimate"], low, high, *response.words_of_column, is_clear=is_clear)


def _rest(clear: Sequence[Row], knobs: int) -> str:
    remaining_count = knobs - min(len(clear), _MOST)
    if not clear:
        return (
            f"According to the model, none of {knobs} knobs gains clearly when set alone and without a risk to "
            "committed data."
        )
    if len(clear) > _MOST:
        return f"{len(clear) - _MOST} more also gain clearly; see table tunability."
    return f"The model sees no clear gain from {plural(remaining_count, 'other knob')}." if remaining_count else ""


def _agreement(fit: Row, knobs: int) -> str:
    """Say how many of the first knobs two halves agree on; not where the first ones are most of all knobs."""
    if fit["common_by_importance"] is None or 2 * fit["leaders"] > knobs:
        return ""
    common = (
        f"{format_number(fit['common_by_importance'])} by importance and {format_number(fit['common_by_gain'])} by gain"
    )
    return f"Of the first {fit['leaders']} of {knobs} knobs, two halves of the runs agree on {common}."
