"""Pairs of knobs that the sweep measured together: what both do against what each does alone."""

import math

from markupsafe import Markup

from knobscope.specs import Case
from knobscope.stages.report.sections.html_table import CODE, NUMBER, TEXT, Cells, render_table, strengthen
from knobscope.study_data.study import Row, StudyData
from knobscope.text.formats import describe_change, describe_interval, format_value

_COLUMNS = (
    ("Value", CODE),
    ("and", CODE),
    ("The first alone", NUMBER),
    ("The second alone", NUMBER),
    ("Both", NUMBER),
    ("Interaction", TEXT),
)


def tabulate_pairs(data: StudyData, case: Case) -> Markup:
    """Return what table `pair_effects` holds of a case, the largest clear interactions first."""
    thresholds, rows = (
        data.specs.study.thresholds,
        data.of_case("pair_effects", case, "knob, other, value, other_value"),
    )
    least = math.log1p(thresholds.min_effect)
    judged = [
        (row["q_value"] is not None and row["q_value"] <= thresholds.fdr and abs(row["estimate"]) >= least, row)
        for row in rows
    ]
    ordered = sorted(judged, key=lambda entry: (not entry[0], -abs(entry[1]["estimate"])))
    return render_table(_COLUMNS, [_tell(data, case, row, is_clear) for is_clear, row in ordered])


def _tell(data: StudyData, case: Case, row: Row, is_clear: bool) -> Cells:
    spec = data.specs.dbms.get(case.dbms)
    return (
        f"{row['knob']} = {format_value(spec, row['knob'], row['value'])}",
        f"{row['other']} = {format_value(spec, row['other'], row['other_value'])}",
        *(describe_change(row[name]) for name in ("alone", "other_alone", "together")),
        strengthen(_tell_interaction(row, is_clear=is_clear), is_clear),
    )


def _tell_interaction(row: Row, *, is_clear: bool) -> str:
    if row["low"] is None or math.isnan(row["low"]):
        return "one block is not enough" if row["blocks"] < 2 else "too few runs for an interval"
    interval = f"95 % interval {describe_interval(row['estimate'], row['low'], row['high'])}"
    if is_clear:
        return f"{describe_change(row['estimate'])} than the two separate effects predict ({interval})"
    return f"no clear interaction ({interval})"
