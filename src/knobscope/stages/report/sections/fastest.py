"""The answer: the fastest configuration of each case, with and without a risk to committed data, as blocks to copy."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from knobscope.specs import Case, Value, value_text
from knobscope.stages.plan import case_space
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.tables import CutColumns, FastestRow
from knobscope.text.formats import describe_effect, describe_interval, format_value, join_words, plural
from knobscope.text.settings import describe_knob, describe_settings

_TITLES = {"none": "Fastest safe configuration", "any": "Fastest at any risk"}
#: A table of runs says which values are a risk, and not which are none.
_IMPORTED = {"none": "Fastest configuration without values that are marked as a risk", "any": "Fastest at any risk"}
#: Where the default configuration is itself marked as a risk.
_NO_SAFER = "Fastest configuration without additional risk"
_UNPROVEN = {"none": "The fastest safe configuration did not prove faster", "any": "At any risk: not proved faster"}
_NOT_AGAIN = "gain unknown, since it was not measured again and the best of many noisy runs looks faster than it is"


@dataclass(frozen=True)
class Fastest:
    """A configuration in words and as its DBMS takes it; `risk` names what risks committed data, if anything does."""

    title: str
    case: str  # empty where the study has one case
    settings: str
    gain: str
    is_certain: bool  # whether it was measured again, and was faster
    risk: str
    cuts: str  # what power cuts said of one that is called safe
    lines: list[str]
    descriptions: list[tuple[str, str]]  # of its knobs that have one, and that no earlier block describes


def list_fastest(data: StudyData) -> list[Fastest]:
    """Return the configurations of table `fastest` for the cases that are shown; no figure that chance has chosen."""
    described: set[tuple[str, str]] = set()
    blocks = []
    for block in (_tell(data, case, row) for case in data.shown_cases for row in _read(data, case)):
        blocks.append(replace(block, descriptions=[pair for pair in block.descriptions if pair not in described]))
        described.update(block.descriptions)
    return blocks


def _read(data: StudyData, case: Case) -> list[FastestRow]:
    query = "SELECT * FROM fastest WHERE dbms = ? AND device = ? AND workload = ? ORDER BY risk DESC"  # `none` first
    return data.table(FastestRow, query, *case)


def find_again(data: StudyData, effect: Row) -> FastestRow | None:
    """Return what new pairs of runs of a value show, where it alone is a fastest configuration of its case."""
    if effect["beside"] is not None:
        return None
    alone = {effect["knob"]: effect["value"]}
    for row in _read(data, Case.of(effect)):
        if {name: value_text(value) for name, value in json.loads(row["changes"]).items()} == alone:
            return row
    return None


def _tell(data: StudyData, case: Case, row: FastestRow) -> Fastest:
    dbms, changes = data.specs.dbms[case.dbms], json.loads(row["changes"])
    configuration = json.loads(row["configuration"])
    risky = dbms.list_risks(configuration, changes)
    is_certain = bool(row["pairs"]) and (row["again_low"] or 0.0) > 0
    inherited = [] if data.is_imported else list_inherited_risks(data, case, configuration, changes)
    risks = [f"{join_words(risky)} {'risks' if len(risky) == 1 else 'risk'} committed data"] if risky else []
    risks += [f"the default configuration risks committed data itself ({join_words(inherited)})"] if inherited else []
    cuts = row["risk"] == "none" and not data.is_imported and (row.get("cuts") or not inherited)
    settings = (f"{name} = {format_value(dbms, name, value_text(value))}" for name, value in changes.items())
    return Fastest(
        title=_IMPORTED[row["risk"]]
        if data.is_imported
        else _title_of(row, is_certain=is_certain, is_safe=not inherited),
        case=name_case(case) if len(data.measured_cases) > 1 else "",
        settings=", ".join(settings),
        gain=_tell_gain(row),
        is_certain=is_certain,
        risk="; ".join(risks),
        cuts=tell_cuts(row) if cuts else "",
        lines=describe_settings(dbms, changes) if (is_certain or not row["pairs"]) and not data.is_imported else [],
        descriptions=[(name, text) for name in changes if (text := describe_knob(dbms, name))],
    )


def list_inherited_risks(
    data: StudyData, case: Case, configuration: Mapping[str, Value], changes: Collection[str]
) -> list[str]:
    """Return settings of the default configuration that remain and are marked as a risk, and count as it is.

    `configuration`: values of knobs, also of some only; `changes`: knobs that differ from the default.
    """
    dbms, space = data.specs.dbms[case.dbms], case_space(data.specs, case)
    defaults = {name: knob.default for name, knob in dbms.knobs.items()}
    whole = {**defaults, **data.specs.study.baseline.get(case.dbms, {}), **configuration}
    marked = [name for name, knob in dbms.knobs.items() if name not in changes and knob.risky_values]
    return [
        f"{name} = {format_value(dbms, name, value_text(whole[name]))}"
        for name in dbms.list_risks(whole, marked)
        if space.counts(name, whole)
    ]


def _title_of(row: FastestRow, *, is_certain: bool, is_safe: bool) -> str:
    if row.get("loses_more"):
        return "Fastest configuration that is called safe and is not"
    title = _TITLES[row["risk"]] if is_safe or row["risk"] == "any" else _NO_SAFER
    if row["pairs"] and not is_certain:
        return (
            _UNPROVEN[row["risk"]]
            if title != _NO_SAFER
            else "The fastest configuration without additional risk did not prove faster"
        )
    return f"{title} measured" if row["pairs"] else title


def tell_cuts(row: CutColumns) -> str:
    """Return what power cuts showed; old studies have none."""
    cuts, lost = row.get("cuts"), row.get("cuts_lost")
    if not cuts:
        reason = f": {row.get('uncut')}" if row.get("uncut") else ""
        return f"Safe by its spec; no power was cut to see{reason}"
    number = plural(cuts, "power cut")
    if row.get("uncut"):
        number = f"{number} ({row['uncut']})"
    if not lost:
        return f"Kept all acknowledged rows in {number}"
    text = f"Lost acknowledged rows in {lost} of {number}, {row['rows_lost']} at most"
    if not row["rows_lost"]:
        text = f"Did not come back after one, or lost acknowledged rows, in {lost} of {number}"
    if row.get("default_cuts_lost") is None:
        return text
    text += f"; the default configuration in {row['default_cuts_lost']} of {cuts}"
    return f"⚠ {text}: its spec is wrong to call it safe" if row["loses_more"] else text


def _tell_gain(row: FastestRow) -> str:
    estimate, low, high = row["again"], row["again_low"], row["again_high"]
    if not row["pairs"] or estimate is None or low is None or high is None:
        return _NOT_AGAIN
    if low <= 0 <= high:
        interval = describe_interval(estimate, low, high)
        return f"did not prove faster than the default in {plural(row['pairs'], 'new pair')} of runs ({interval})"
    effect = describe_effect(estimate, low, high)  # also one that is surely slower
    gain = f"{effect} than the default in {plural(row['pairs'], 'new pair')} of runs"
    return f"{gain}; a tuner found it, and which of its changes matter was not tested" if row.get("tuner") else gain
