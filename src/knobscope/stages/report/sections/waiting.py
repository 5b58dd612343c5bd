"""What configurations wait for on a device without a model: how sensitive throughput is to the time of requests."""

from dataclasses import dataclass

from knobscope.specs import Case
from knobscope.study_data.study import Row, StudyData, name_case
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
_WORDS = {"read": "reads", "write": "writes", "flush": "flushes"}


@dataclass(frozen=True)
class Waiting:
    """A configuration and a kind of request, in words; `matters`: whether it is surely waited for."""

    setting: str
    requests: str
    time: str
    delay: str
    runs: int
    sensitivity: str
    matters: bool


@dataclass(frozen=True)
class CaseWaiting:
    """All that was delayed of one case, reference configurations first."""

    name: str
    rows: list[Waiting]


def build_waiting(data: StudyData) -> list[CaseWaiting]:
    """Return the cases whose device was made slower, from table `sensitivities`."""
    cases = [
        CaseWaiting(
            name_case(case),
            [_tell(data, case, row) for row in data.rows(_SENSITIVITIES, *case)],
        )
        for case in data.shown_cases
    ]
    return [case for case in cases if case.rows]


def _tell(data: StudyData, case: Case, row: Row) -> Waiting:
    value = format_value(data.specs.dbms.get(case.dbms), row["changed"], row["new_value"])
    low, high = (None if row[end] is None else format_number(row[end]) for end in ("low", "high"))
    interval = "no interval" if low is None or high is None else f"{low} to {high}"
    return Waiting(
        setting="reference" if row["changed"] is None else f"{row['changed']} = {value}",
        requests=_WORDS[row["op"]],
        time=format_micros(row["request_us"]),
        delay=format_micros(row["delay_us"]),
        runs=row["runs"],
        sensitivity=f"{format_number(row['sensitivity'])} ({interval})",
        matters=row["high"] is not None and row["high"] < 0,
    )
