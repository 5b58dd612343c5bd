"""Pairs of knobs that the sweep measured together: what both do against what each does alone."""

import math
from dataclasses import dataclass

from knobscope.specs import Case
from knobscope.study_data.study import Row, StudyData
from knobscope.text.formats import describe_change, describe_interval, format_value


@dataclass(frozen=True)
class PairEffect:
    """A value of one knob and one of another, in words."""

    one: str
    other: str
    one_alone: str
    other_alone: str
    together: str
    interaction: str
    is_clear: bool


def pair_effects(data: StudyData, case: Case) -> list[PairEffect]:
    """Return what table `pair_effects` holds of a case, the largest clear interactions first."""
    rows = data.of_case("pair_effects", case, "knob, other, value, other_value")
    effects = [(_tell(data, case, row), abs(row["estimate"])) for row in rows]
    return [effect for effect, _ in sorted(effects, key=lambda pair: (not pair[0].is_clear, -pair[1]))]


def _tell(data: StudyData, case: Case, row: Row) -> PairEffect:
    spec, thresholds = data.specs.dbms.get(case.dbms), data.specs.study.thresholds
    is_sure = row["q_value"] is not None and row["q_value"] <= thresholds.fdr
    is_clear = is_sure and abs(row["estimate"]) >= math.log1p(thresholds.min_effect)
    return PairEffect(
        one=f"{row['knob']} = {format_value(spec, row['knob'], row['value'])}",
        other=f"{row['other']} = {format_value(spec, row['other'], row['other_value'])}",
        one_alone=describe_change(row["alone"]),
        other_alone=describe_change(row["other_alone"]),
        together=describe_change(row["together"]),
        interaction=_tell_interaction(row, is_clear=is_clear),
        is_clear=is_clear,
    )


def _tell_interaction(row: Row, *, is_clear: bool) -> str:
    if row["low"] is None or math.isnan(row["low"]):
        return "one block is not enough" if row["blocks"] < 2 else "too few runs for an interval"
    interval = f"95 % interval {describe_interval(row['estimate'], row['low'], row['high'])}"
    if is_clear:
        return f"{describe_change(row['estimate'])} than the two separate effects predict ({interval})"
    return f"no clear interaction ({interval})"
