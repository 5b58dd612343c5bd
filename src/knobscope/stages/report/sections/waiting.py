"""What configurations wait for on a device without a model: how sensitive throughput is to the time of requests."""

from collections.abc import Iterator

from markupsafe import Markup

from knobscope.specs import Case
from knobscope.stages.report.sections.html_table import CODE, NUMBER, TEXT, Cells, strengthen, tables_by_case
from knobscope.study_data.study import StudyData
from knobscope.text.formats import format_micros, format_number, format_value

# Effects that share a reference configuration have a row of it each, of the same runs.
_SENSITIVITIES = """
    SELECT DISTINCT CASE WHEN NOT is_reference THEN knob END AS changed,
        CASE WHEN NOT is_reference THEN value END AS new_value, op, request_us, delay_us, runs,
        sensitivity, sensitivity_low AS low, sensitivity_high AS high
    FROM sensitivities
    WHERE (dbms, device, workload) = (?, ?, ?)
    ORDER BY changed NULLS FIRST, try_cast(new_value AS DOUBLE), new_value, op
"""
_COLUMNS = (
    ("Configuration", CODE),
    ("Requests", TEXT),
    ("One takes", NUMBER),
    ("Delayed by", NUMBER),
    ("Runs", NUMBER),
    ("Sensitivity (95 % interval)", NUMBER),
)
_WORDS = {"read": "reads", "write": "writes", "flush": "flushes"}


def build_waiting(data: StudyData) -> list[tuple[str, Markup]]:
    """Return the cases whose device was made slower, each with a table of what was delayed, the reference first."""
    return tables_by_case(data, _COLUMNS, _list_rows)


def _list_rows(data: StudyData, case: Case) -> Iterator[Cells]:
    for row in data.rows(_SENSITIVITIES, *case):
        value = format_value(data.specs.dbms.get(case.dbms), row["changed"], row["new_value"])
        low, high = (None if row[end] is None else format_number(row[end]) for end in ("low", "high"))
        interval = "no interval" if low is None or high is None else f"{low} to {high}"
        is_waited_for = row["high"] is not None and row["high"] < 0
        yield (
            "reference" if row["changed"] is None else f"{row['changed']} = {value}",
            _WORDS[row["op"]],
            format_micros(row["request_us"]),
            format_micros(row["delay_us"]),
            row["runs"],
            strengthen(f"{format_number(row['sensitivity'])} ({interval})", is_waited_for),
        )
