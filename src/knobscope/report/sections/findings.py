"""Section "Findings": mismatches as cards with evidence, then what is sound, then what could not be judged."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from knobscope.report.figures import Figure, slug
from knobscope.report.sections.effects import forest_figure
from knobscope.report.sections.evidence import (
    Comparison,
    compare_runs,
    default_only,
    picture_depth,
    picture_shares,
    picture_sizes,
    picture_throughput,
)
from knobscope.report.study_data import Row, StudyData, name_case
from knobscope.report.words import UNKNOWN, describe_change, format_fold, format_number, format_value, keep_units
from knobscope.specs import Case

__all__ = ["RULE_TITLES", "Card", "CardValue", "FindingsSection", "Judged", "Tally", "build_findings"]

#: Rule -> (title, what it asks).
RULE_TITLES = {
    "tier": ("Not the same on a faster device", "Does the same change do the same on a device of another tier?"),
    "io_size": ("Writes miss the preferred size", "Do slower settings write in sizes that the device does not like?"),
    "io_parallelism": ("One request at a time", "Does the I/O use the parallelism that the device offers?"),
    "io_sequentiality": (
        "CPU spent on order that does not pay",
        "Is I/O made sequential at a price, on a device that gains nothing?",
    ),
    "intuition": ("Against the intuition", "Does the knob do what its documentation lets people expect?"),
    "read_write_interference": (
        "Reads wait for writes",
        "Do files that are only read share the device with files that are written to, at their cost?",
    ),
    "access_pattern": ("Order is not kept", "Does a file reach the device in the order in which it is asked for?"),
    "cross_check": (
        "Guilty elsewhere",
        "Was a mechanism that is at fault in another DBMS tested here, and found innocent?",
    ),
}
#: Pictures that speak for a rule, the most telling ones first; the first two are shown, the rest on demand.
_PICTURES = {
    "tier": ("devices", "throughput", "sizes", "depth", "shares"),
    "io_size": ("sizes", "throughput", "depth", "shares"),
    "io_parallelism": ("depth", "shares", "sizes"),
    "io_sequentiality": ("shares", "throughput", "sizes", "depth"),
    "intuition": ("values", "throughput", "sizes", "depth", "shares"),
    "read_write_interference": ("depth", "sizes"),
    "access_pattern": ("sizes", "depth"),
    "cross_check": (),
}
_USUAL_PICTURES = ("throughput", "sizes", "depth", "shares")
#: More cards than this get no pictures: the page stays small enough to be sent around.
_MOST_PICTURED = 24
_CONFIRMED = {"yes": "confirmed by fio", "no": "fio does not reproduce it", "not_tested": "not tested with fio"}


@dataclass(frozen=True)
class CardValue:
    """One value of the knob of a card: what it costs, how sure that is, and why."""

    value: str
    effect: str
    interval: str
    penalty: str
    sentence: str
    confirmed: str  # yes | no | not_tested
    confirmed_words: str
    confirmation: str
    evidence: list[tuple[str, str]]


@dataclass(frozen=True)
class Card:
    """A mismatch: one rule, one knob, one case; the costliest value comes first."""

    anchor: str
    rule: str
    title: str
    question: str
    case: str
    device: str
    knob: str
    durability: bool
    values: list[CardValue]
    pictures: list[Figure]
    more: list[Figure]
    no_pictures: str


@dataclass(frozen=True)
class Judged:
    """A finding that is no mismatch, as a line of a table."""

    rule: str
    case: str
    knob: str
    value: str
    effect: str
    sentence: str


@dataclass(frozen=True)
class Tally:
    """How often each verdict was given to a case, by rule: rule -> verdict -> count."""

    case: str
    counts: dict[str, dict[str, int]]


@dataclass(frozen=True)
class FindingsSection:
    """All findings; `empty` says why there are none."""

    cards: list[Card]
    sound: list[Judged]
    unjudged: list[Judged]
    rules: list[str]
    tallies: list[Tally]
    empty: str = ""

    @property
    def mismatches(self) -> int:
        """Number of mismatches, values counted one by one."""
        return sum(len(card.values) for card in self.cards)

    @property
    def figures(self) -> Iterator[Figure]:
        """All pictures, in order."""
        for card in self.cards:
            yield from card.pictures
            yield from card.more


def build_findings(data: StudyData) -> FindingsSection:
    """Return the section from table `findings`."""
    rows = data.rows(
        "SELECT * FROM findings ORDER BY penalty DESC NULLS LAST, rule, dbms, device, workload, knob, value"
    )
    rules = sorted({row["rule"] for row in rows}, key=lambda rule: (rule not in RULE_TITLES, rule))
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["verdict"] == "mismatch":
            groups.setdefault(tuple(row[key] for key in ("rule", "dbms", "device", "workload", "knob")), []).append(row)
    return FindingsSection(
        cards=[_card(data, members, index) for index, members in enumerate(groups.values())],
        sound=[_judged(data, row) for row in rows if row["verdict"] == "none"],
        unjudged=[_judged(data, row) for row in rows if row["verdict"] not in ("mismatch", "none")],
        rules=rules,
        tallies=list(_tallies(rows)),
        empty="" if rows else _why_empty(data),
    )


def _why_empty(data: StudyData) -> str:
    if not data.specs.study.rules:
        return "The study asks for no mismatch rule (`rules` is empty)."
    if not data.value("SELECT count(*) FROM runs WHERE phase = 'sweep' AND status = 'ok'"):
        return "No run of the one-at-a-time round succeeded, so there was nothing to judge."
    return "The rules returned nothing; `knobscope detect` writes the findings."


def _tallies(rows: list[Row]) -> Iterator[Tally]:
    def key(row: Row) -> tuple[str, str, str]:
        return tuple(row[name] or UNKNOWN for name in ("dbms", "device", "workload"))  # type: ignore[return-value]

    for case, members in groupby(sorted(rows, key=key), key=key):
        counts: dict[str, dict[str, int]] = {}
        for row in members:
            of_rule = counts.setdefault(row["rule"], {})
            of_rule[row["verdict"]] = of_rule.get(row["verdict"], 0) + 1
        yield Tally(" · ".join(case), counts)


def _case_of(row: Row) -> Case:
    return Case(row["dbms"], row["device"], row["workload"])


def _judged(data: StudyData, row: Row) -> Judged:
    case = _case_of(row)
    return Judged(
        rule=row["rule"],
        case=name_case(case),
        knob=row["knob"] or "",
        value=format_value(data.specs.dbms.get(case.dbms), row["knob"], row["value"]) if row["value"] else "",
        effect=_effect_words(row),
        sentence=keep_units(row["sentence"] or ""),
    )


def _log_ratio(change: float | None) -> float | None:
    """Return a relative change (-0.5: half) as a natural-log ratio."""
    return None if change is None or change <= -1 else math.log1p(change)


def _effect_words(row: Row) -> str:
    ratio = _log_ratio(row["effect"])
    if ratio is None:
        return UNKNOWN
    if row["rule"] == "tier":
        return describe_change(ratio, "ahead", "behind")
    return describe_change(ratio)


def _card(data: StudyData, rows: list[Row], index: int) -> Card:
    worst, case = rows[0], _case_of(rows[0])
    title, question = RULE_TITLES.get(worst["rule"], (worst["rule"], ""))
    anchor = slug("finding", index + 1, worst["rule"], worst["knob"] or "")
    pictures = list(_pictures(data, worst, anchor)) if index < _MOST_PICTURED else []
    knob = data.knob(case.dbms, worst["knob"])
    return Card(
        anchor=anchor,
        rule=worst["rule"],
        title=title,
        question=question,
        case=name_case(case),
        device=case.device,
        knob=worst["knob"] or "",
        durability=knob is not None and any(knob.risks(row["value"]) for row in rows if row["value"]),
        values=[_card_value(data, row) for row in rows],
        pictures=pictures[:2],
        more=pictures[2:],
        no_pictures=""
        if pictures or index < _MOST_PICTURED
        else f"Pictures are drawn for the {_MOST_PICTURED} costliest mismatches.",
    )


def _card_value(data: StudyData, row: Row) -> CardValue:
    ends = [format_fold(_log_ratio(row[name])) for name in ("effect_low", "effect_high")]
    confirmed = row["confirmed"] or "not_tested"
    return CardValue(
        value=format_value(data.specs.dbms.get(row["dbms"]), row["knob"], row["value"]) if row["value"] else "",
        effect=_effect_words(row),
        interval="" if UNKNOWN in ends else f"{ends[0]} to {ends[1]}",
        penalty="" if row["penalty"] is None else f"{format_number(row['penalty'])}x",
        sentence=keep_units(row["sentence"] or ""),
        confirmed=confirmed,
        confirmed_words=_CONFIRMED.get(confirmed, confirmed),
        confirmation=keep_units(row["confirmation"] or ""),
        evidence=list(_flatten(_read_json(row["evidence"]))),
    )


def _read_json(text: str | None) -> Any:
    """Return the content of the evidence; what is no JSON is shown as it is."""
    try:
        return json.loads(text or "{}")
    except json.JSONDecodeError:
        return {"evidence": text}


def _flatten(content: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _flatten(value, f"{name}, {key}" if name else str(key))
    elif isinstance(content, bool):
        yield name.replace("_", " "), "yes" if content else "no"
    elif content is not None:
        yield name.replace("_", " "), format_number(content, 4) if isinstance(content, int | float) else str(content)


def _pictures(data: StudyData, row: Row, anchor: str) -> Iterator[Figure]:
    case, knob, value = _case_of(row), row["knob"], row["value"]
    compared = compare_runs(data, case, knob, value, anchor) if knob and value else default_only(data, case, anchor)
    if not all(setting.runs for setting in compared.settings):
        return
    for kind in _PICTURES.get(row["rule"], _USUAL_PICTURES):
        figure = _picture(data, kind, row, compared)
        if figure is not None:
            yield figure


def _picture(data: StudyData, kind: str, row: Row, compared: Comparison) -> Figure | None:
    if kind == "throughput":
        return picture_throughput(compared)
    if kind == "shares":
        return picture_shares(data, compared)
    if kind in ("devices", "values"):
        return _effect_picture(data, kind, row, compared.name)
    if not compared.is_watched:
        return None
    return picture_sizes(data, compared) if kind == "sizes" else picture_depth(data, compared)


def _effect_picture(data: StudyData, kind: str, row: Row, anchor: str) -> Figure | None:
    """Show the effect of the same change on all devices, or of all values of the knob on this device."""
    where = "value = ?" if kind == "devices" else "device = ?"
    found = data.rows(
        "SELECT * FROM effects WHERE metric = 'throughput_ops' AND estimate IS NOT NULL "  # noqa: S608
        f"AND dbms = ? AND workload = ? AND knob = ? AND {where} "
        "ORDER BY tier_rank NULLS FIRST, device, step NULLS FIRST, try_cast(value AS DOUBLE), value",
        row["dbms"], row["workload"], row["knob"], row["value" if kind == "devices" else "device"],
    )  # fmt: skip
    if not found:
        return None
    if kind == "devices":
        value = format_value(data.specs.dbms.get(row["dbms"]), row["knob"], row["value"])
        title = f"{row['knob']} = {value}, device by device"
    else:
        title = f"All values of {row['knob']} on {row['device']}"
    return forest_figure(
        data, _case_of(row), found, title, slug(anchor, kind), label="device" if kind == "devices" else "value"
    )
