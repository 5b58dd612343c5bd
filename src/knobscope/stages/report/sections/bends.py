"""Curves of knobs with an important point: the effects of their values, and the slopes on both sides of the point."""

import math
from collections.abc import Sequence

import numpy as np

from knobscope.figures import BendPoint, Figure, Side, draw_bend, slug
from knobscope.specs import Case
from knobscope.study_data.study import Row, Rows, StudyData
from knobscope.tables.responses import RESPONSES, Response
from knobscope.text.formats import describe_change, format_value

_MOST_FIGURES = 4


def bend_figures(data: StudyData, case: Case, points: Sequence[Row]) -> list[Figure]:
    """Return a figure for each important point (rows of `important_points`) whose knob has three numbers or more.

    The curve is that of the sweep where it has them, one knob being changed at a time; else the mean response of the
    screening runs with each value, the other knobs being as they came. Slopes are regressions on both sides, as in the
    turn ratio of Hui et al. (SIGMOD 2024); the label next to each is the change from end to end of a side.
    """
    figures = [_bend_figure(data, case, point) for point in points]
    return [figure for figure in figures if figure is not None][:_MOST_FIGURES]


def _read_curve(data: StudyData, case: Case, knob: str) -> tuple[Rows, str]:
    """Return rows (value, number, estimate, low, high), a natural-log ratio each, and what they are, in words."""
    names, response = (*case, knob), RESPONSES[data.specs.study.screening.response]
    swept = data.rows(
        """
        WITH found AS (
            SELECT value, estimate, low, high, baseline FROM effects
            WHERE metric = ? AND effects.estimate IS NOT NULL
                AND dbms = ? AND device = ? AND workload = ? AND knob = ? AND beside IS NULL
        )
        SELECT value, try_cast(value AS DOUBLE) AS number, estimate, low, high FROM found
        UNION SELECT baseline, try_cast(baseline AS DOUBLE), 0, 0, 0 FROM found
        ORDER BY number
        """,
        response.column,
        *names,
    )
    if sum(row["number"] is not None for row in swept) >= 3:
        return swept, "one knob changed at a time, against the default"
    screened = data.rows(
        f"""
        WITH found AS (
            SELECT value, ln({response.column}) AS response FROM runs JOIN knob_values USING (config_id, dbms)
            WHERE status = 'ok' AND phase = 'screen' AND {response.column} > 0
                AND dbms = ? AND device = ? AND workload = ? AND knob = ?
        ), means AS (
            SELECT value, try_cast(value AS DOUBLE) AS number, avg(response) AS mean,
                1.96 * stddev_samp(response) / sqrt(count(*)) AS half
            FROM found GROUP BY value
        )
        SELECT value, number, mean - first(mean ORDER BY number) OVER () AS estimate,
            estimate - half AS low, estimate + half AS high
        FROM means WHERE number IS NOT NULL ORDER BY number
        """,  # noqa: S608 - names of ours
        *names,
    )
    return screened, "means of the screening runs, all other knobs changing too, against the lowest value"


def _bend_figure(data: StudyData, case: Case, point: Row) -> Figure | None:
    knob, kind = point["knob"], point["type"]
    rows, origin = _read_curve(data, case, knob)
    spec = data.knob(case.dbms, knob)
    is_log = spec is not None and spec.scale == "log"
    special = set(spec.special) if spec else set()
    shown = [
        row
        for row in rows
        if row["number"] is not None and row["number"] not in special and (row["number"] > 0 or not is_log)
    ]
    at = float(point["value"])
    if len(shown) < 3 or at not in [row["number"] for row in shown]:
        return None
    position = math.log2 if is_log else float
    x, y = [position(row["number"]) for row in shown], [row["estimate"] for row in shown]
    split = [row["number"] for row in shown].index(at)
    if kind == "cliff" and not split:  # what lies below it was not measured
        return None
    # A cliff lies between two values; a knee or turning point belongs to both sides.
    ends = (split if kind == "cliff" else split + 1, split)
    names = [format_value(data.specs.dbms.get(case.dbms), knob, row["value"]) for row in shown]
    response = RESPONSES[data.specs.study.screening.response]
    sides = [
        _side("line-a", x[: ends[0]], y[: ends[0]], names[: ends[0]], response),
        _side("line-b", x[ends[1] :], y[ends[1] :], names[ends[1] :], response),
    ]
    marks = [
        BendPoint(a, name, row["estimate"], None if row["low"] is None else (row["low"], row["high"]))
        for a, name, row in zip(x, names, shown, strict=True)
    ]
    subject = f"{response.words[0].upper()}{response.words[1:]}"
    title = f"{knob}: {'turning point' if kind == 'turning' else kind} at {names[split]}"
    return Figure(
        name=slug("bend", *case, knob, kind, names[split]),
        title=title,
        description=f"{subject} by value of {knob}. {' '.join(side.words + '.' for side in sides)}",
        draw=lambda width: draw_bend(width, marks, sides, x[split], kind, knob),
        data=rows,
        caption=f"{subject}, {origin}.",
    )


def _side(look: str, x: Sequence[float], y: Sequence[float], names: Sequence[str], response: Response) -> Side:
    if len(x) == 1:
        return Side(look, (x[0], y[0]), (x[0], y[0]), f"{names[0]} alone")
    slope, height = (float(part) for part in np.polyfit(x, y, 1))
    start, end = slope * x[0] + height, slope * x[-1] + height
    change = describe_change(end - start, *response.words_of_column)
    return Side(look, (x[0], start), (x[-1], end), f"{names[0]} to {names[-1]}: {change}")
