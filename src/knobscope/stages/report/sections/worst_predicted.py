"""The configurations that the model of screening predicts worst: where something may count that it does not know."""

import json
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from knobscope.specs import Case, value_text
from knobscope.stages.report.sections.html_table import NUMBER, TEXT, Cells, annotate, format_code, render_table
from knobscope.study_data.study import StudyData
from knobscope.tables.responses import RESPONSES
from knobscope.text.formats import format_micros, format_number, format_rate, format_value, plural

#: How many times too much or too little a prediction has to be to be told.
_FAR_OFF = 1.1
_MOST_KNOBS = 6
_COLUMNS = (("Configuration", TEXT), ("Measured", NUMBER), ("Predicted", NUMBER), ("The prediction is", TEXT))


def tabulate_worst(data: StudyData, case: Case, ranked: Sequence[str]) -> Markup:
    """Return those that are off by a tenth or more, by their settings of the knobs that matter most.

    `ranked` are the knobs, those that matter most first.
    """
    return render_table(_COLUMNS, _list_rows(data, case, ranked))


def _list_rows(data: StudyData, case: Case, ranked: Sequence[str]) -> Iterator[Cells]:
    dbms = data.specs.dbms.get(case.dbms)
    form = format_micros if RESPONSES[data.specs.study.screening.response].is_latency else format_rate
    for row in data.of_case("worst_predicted", case, "abs(ln(measured / predicted)) DESC"):
        off = max(row["measured"], row["predicted"]) / min(row["measured"], row["predicted"])
        if off < _FAR_OFF:
            continue
        configuration = json.loads(row["configuration"])
        shown = [knob for knob in ranked if knob in configuration][:_MOST_KNOBS]
        settings = (f"{knob} = {format_value(dbms, knob, value_text(configuration[knob]))}" for knob in shown)
        omitted_count = len(configuration) - len(shown)
        yield (
            annotate(format_code(", ".join(settings)), omitted_count and f"and {plural(omitted_count, 'other')}"),
            form(row["measured"]),
            form(row["predicted"]),
            f"{format_number(off)}x too {'low' if row['measured'] > row['predicted'] else 'high'}",
        )
