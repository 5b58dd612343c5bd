"""The configurations that the model of screening predicts worst: where something may count that it does not know."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.specs import Case, value_text
from knobscope.study_data.study import StudyData
from knobscope.tables.responses import RESPONSES
from knobscope.text.formats import format_micros, format_number, format_rate, format_value, plural

#: How many times too much or too little a prediction has to be to be told.
_FAR_OFF = 1.1
_MOST_KNOBS = 6


@dataclass(frozen=True)
class WorstPredicted:
    """A configuration by its settings of the knobs that matter most, what it did, and what the model predicted."""

    settings: str
    others: str
    measured: str
    predicted: str
    off: str


def worst_predicted(data: StudyData, case: Case, ranked: Sequence[str]) -> list[WorstPredicted]:
    """Return those that are off by a tenth or more; `ranked` are the knobs, those that matter most first."""
    rows = data.of_case("worst_predicted", case, "abs(ln(measured / predicted)) DESC")
    dbms, predictions = data.specs.dbms.get(case.dbms), []
    form = format_micros if RESPONSES[data.specs.study.screening.response].is_latency else format_rate
    for row in rows:
        off = max(row["measured"], row["predicted"]) / min(row["measured"], row["predicted"])
        if off < _FAR_OFF:
            continue
        configuration = json.loads(row["configuration"])
        shown = [knob for knob in ranked if knob in configuration][:_MOST_KNOBS]
        texts = {knob: value_text(configuration[knob]) for knob in shown}
        omitted_count = len(configuration) - len(shown)
        predictions.append(
            WorstPredicted(
                ", ".join(f"{knob} = {format_value(dbms, knob, text)}" for knob, text in texts.items()),
                f"and {plural(omitted_count, 'other')}" if omitted_count else "",
                form(row["measured"]),
                form(row["predicted"]),
                f"{format_number(off)}x too {'low' if row['measured'] > row['predicted'] else 'high'}",
            )
        )
    return predictions
