"""Section "Findings": mismatches as cards with evidence, then what is sound, then what could not be judged.

A card is a mismatch with all its findings, whatever rule, device, workload and value they are of.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from knobscope.figures import Figure, slug
from knobscope.specs import Case
from knobscope.stages.detect import Mismatch, merge_findings
from knobscope.stages.report.sections.budgets import picture_budget
from knobscope.stages.report.sections.effects import forest_figure
from knobscope.stages.report.sections.evidence import (
    Comparison,
    compare_runs,
    picture_depth,
    picture_shares,
    picture_sizes,
    picture_tail,
    picture_throughput,
)
from knobscope.stages.report.sections.judged import (
    FindingEffect,
    JudgedTable,
    about_rule,
    read_evidence,
    tabulate_judged,
)
from knobscope.study_data.study import Row, StudyData
from knobscope.tables.detection import FindingRow
from knobscope.text.answers import describe_answer, names_cause
from knobscope.text.formats import (
    UNKNOWN,
    format_fold,
    format_number,
    format_value,
    join_words,
    keep_units,
)
from knobscope.text.settings import describe_knob

#: More findings of a card than this are counted, and not shown.
_MOST_VALUES = 40
#: More cards than this get no pictures: the page stays small enough to be sent around.
_MOST_PICTURED = 24


@dataclass(frozen=True)
class CardValue:
    """One finding of a card: what it costs, how sure that is, and why."""

    rule: str  # its title; empty where the card has one rule
    where: str  # device and workload; empty where the card has one of each
    value: str
    effect_label: str
    effect: str
    interval: str
    penalty: str
    sentence: str
    has_cause: bool  # whether an experiment says what the cause is
    answer: str  # what it says of that, in words
    confirmation: str
    evidence: list[tuple[str, str]]


@dataclass(frozen=True)
class Card:
    """A mismatch: one knob of one DBMS, and one cause; the costliest finding comes first."""

    number: int
    anchor: str
    rules: str
    title: str
    description: str  # of the knob
    question: str
    case: str
    devices: list[str]
    knob: str
    subject: str  # what it is about, where it has no knob
    durability: bool
    values: list[CardValue]
    omitted: int  # findings that are not among the values
    pictures: list[Figure]
    more: list[Figure]
    no_pictures: str


@dataclass(frozen=True)
class Tally:
    """How often each verdict was given to a case, by rule: rule -> verdict (or `withdrawn`, `unasked`) -> count."""

    case: str
    counts: dict[str, dict[str, int]]


@dataclass(frozen=True)
class FindingsSection:
    """All findings; `empty` says why there are none."""

    cards: list[Card]
    withdrawn: JudgedTable  # an experiment refuted their effect, or the cause that they name
    sound: JudgedTable
    unjudged: JudgedTable
    unasked: str  # what the study would need to ask the questions of some rules, in a sentence
    rules: list[str]
    tallies: list[Tally]
    empty: str = ""

    @property
    def mismatches(self) -> int:
        """Number of mismatches; each may have several findings."""
        return len(self.cards)

    @property
    def symptoms(self) -> int:
        """Number of findings that these mismatches consist of."""
        return sum(len(card.values) + card.omitted for card in self.cards)

    @property
    def figures(self) -> Iterator[Figure]:
        """All pictures, in order."""
        for card in self.cards:
            yield from card.pictures
            yield from card.more


def build_findings(data: StudyData) -> FindingsSection:
    """Return the section from table `findings`."""
    rows = data.table(
        FindingRow, "SELECT * FROM findings ORDER BY penalty DESC NULLS LAST, rule, dbms, device, workload, knob, value"
    )
    order = list(data.specs.rules)
    unjudged = [row for row in rows if row["verdict"] not in ("mismatch", "none")]
    return FindingsSection(
        cards=[_card(data, mismatch) for mismatch in merge_findings(rows)],
        withdrawn=tabulate_judged(data, [row for row in rows if _is_withdrawn(row)]),
        sound=tabulate_judged(data, [row for row in rows if row["verdict"] == "none"]),
        unjudged=tabulate_judged(data, [row for row in unjudged if not _find_lack(data, row)]),
        unasked=_tell_unasked(data, unjudged),
        rules=sorted({row["rule"] for row in rows}, key=lambda rule: (rule not in order, rule)),
        tallies=list(_tallies(data, rows)),
        empty="" if rows else _why_empty(data),
    )


def _why_empty(data: StudyData) -> str:
    if not data.specs.rules:
        return "The study requests no rule (`rules` is empty)."
    if not data.value("SELECT count(*) FROM runs WHERE phase = 'sweep' AND status = 'ok'"):
        return "There is no successful run that changes one knob alone, so there was nothing to judge."
    return "The rules returned nothing; `knobscope detect` writes the findings."


def _is_withdrawn(row: FindingRow) -> bool:
    return row["verdict"] == "mismatch" and row["confirmed"] == "no"


def _find_lack(data: StudyData, row: FindingRow) -> str:
    """Return what the study lacks to ask the question of a finding; empty where it asked, or nobody knows."""
    evidence = read_evidence(row)
    return about_rule(data, row["rule"]).unasked.get(str(evidence.get("obstacle")), "")


def _tell_unasked(data: StudyData, unjudged: Sequence[FindingRow]) -> str:
    """Say which rules the study's design gives nothing to judge in some case, and what they would need."""
    rules: dict[str, dict[str, None]] = {}
    for row in unjudged:
        if lack := _find_lack(data, row):
            rules.setdefault(lack, {})[row["rule"]] = None
    needs = [f"{lack} ({', '.join(names)})" for lack, names in rules.items()]
    return (
        f"The design of this study leaves some rules nothing to judge. To use them, add {join_words(needs)}."
        if needs
        else ""
    )


def _tallies(data: StudyData, rows: Sequence[FindingRow]) -> Iterator[Tally]:
    def key(row: FindingRow) -> tuple[str, str, str]:
        return row["dbms"] or UNKNOWN, row["device"] or UNKNOWN, row["workload"] or UNKNOWN

    for case, members in groupby(sorted(rows, key=key), key=key):
        counts: dict[str, dict[str, int]] = {}
        for row in members:
            verdict = "withdrawn" if _is_withdrawn(row) else "unasked" if _find_lack(data, row) else row["verdict"]
            of_rule = counts.setdefault(row["rule"], {})
            of_rule[verdict] = of_rule.get(verdict, 0) + 1
        yield Tally(" · ".join(case), counts)


def _card(data: StudyData, mismatch: Mismatch) -> Card:
    worst = mismatch.worst
    about = about_rule(data, worst["rule"])
    anchor = slug("finding", mismatch.number, worst["rule"], mismatch.knob or "")
    is_pictured = mismatch.number <= _MOST_PICTURED
    pictures = list(draw_pictures(data, worst, anchor)) if is_pictured else []
    return Card(
        number=mismatch.number,
        anchor=anchor,
        rules=", ".join(mismatch.names("rule")),
        title=about.title,
        description=describe_knob(data.specs.dbms.get(worst["dbms"] or ""), mismatch.knob or ""),
        question=about.question if len(mismatch.names("rule")) == 1 else "",
        case=" · ".join(", ".join(mismatch.names(column)) for column in ("dbms", "device", "workload")),
        devices=mismatch.names("device"),
        knob=mismatch.knob or "",
        subject="" if mismatch.knob else about.subject,
        durability=any(_risks(data, row) for row in mismatch.findings),
        values=[_card_value(data, mismatch, row) for row in mismatch.findings[:_MOST_VALUES]],
        omitted=max(len(mismatch.findings) - _MOST_VALUES, 0),
        pictures=pictures[:2],
        more=pictures[2:],
        no_pictures="" if is_pictured else f"Pictures are drawn for the {_MOST_PICTURED} costliest mismatches.",
    )


def _risks(data: StudyData, row: FindingRow) -> bool:
    """Whether the value of a finding risks committed data, all other knobs at their defaults."""
    dbms, name = data.specs.dbms.get(row["dbms"] or ""), row["knob"] or ""
    if dbms is None or name not in dbms.knobs or not row["value"]:
        return False
    changed = {**data.specs.study.baseline.get(dbms.name, {}), name: dbms.knobs[name].read(row["value"])}
    return bool(dbms.list_risks(changed, [name]))


def _card_value(data: StudyData, mismatch: Mismatch, row: Row) -> CardValue:
    about = about_rule(data, row["rule"])
    effect = FindingEffect.of(row, about.effect)
    has_one_case = all(len(mismatch.names(column)) == 1 for column in ("device", "workload"))
    return CardValue(
        rule=about.title if len(mismatch.names("rule")) > 1 else "",
        where="" if has_one_case else f"{row['device']} · {row['workload']}",
        effect_label=about.effect.label,
        value=format_value(data.specs.dbms.get(row["dbms"]), row["knob"], row["value"]) if row["value"] else "",
        effect=effect.words,
        interval=effect.interval,
        penalty="" if row["penalty"] is None else format_fold(math.log(row["penalty"])),
        sentence=keep_units(row["sentence"] or ""),
        has_cause=names_cause(row["confirmed"]),
        answer=describe_answer(row["confirmed"]),
        confirmation=keep_units(row["confirmation"] or ""),
        evidence=list(_flatten(read_evidence(row))),
    )


def _flatten(content: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _flatten(value, f"{name}, {key}" if name else str(key))
    elif isinstance(content, list):
        yield name.replace("_", " "), ", ".join(" ".join(text for _, text in _flatten(item, "")) for item in content)
    elif isinstance(content, bool):
        yield name.replace("_", " "), "yes" if content else "no"
    elif content is not None:
        yield name.replace("_", " "), format_number(content, 4) if isinstance(content, int | float) else str(content)


def draw_pictures(data: StudyData, row: Row, anchor: str) -> Iterator[Figure]:
    """Yield the pictures of the runs behind a finding, the most telling ones first; names begin with `anchor`."""
    compared = compare_runs(data, row, anchor)
    if not all(setting.runs for setting in compared.settings):
        return
    if (budget := picture_budget(data, compared)) is not None:
        yield budget
    for kind in about_rule(data, row["rule"]).figures:
        figure = _picture(data, kind, row, compared)
        if figure is not None:
            yield figure


def _picture(data: StudyData, kind: str, row: Row, compared: Comparison) -> Figure | None:
    if kind in ("sizes", "read_sizes", "depth") and not compared.is_watched:
        return None
    percentile = 95 if read_evidence(row).get("percentile") == 95 else 99
    draw: dict[str, Callable[[], Figure | None]] = {
        "throughput": partial(picture_throughput, compared),
        "tail": partial(picture_tail, compared, percentile),
        "sizes": partial(picture_sizes, data, compared, "write"),
        "read_sizes": partial(picture_sizes, data, compared, "read"),
        "depth": partial(picture_depth, data, compared),
        "shares": partial(picture_shares, data, compared),
        "values": partial(_effect_picture, data, kind, row, compared.name),
        "devices": partial(_effect_picture, data, kind, row, compared.name),
    }
    return draw[kind]()


def _effect_picture(data: StudyData, kind: str, row: Row, anchor: str) -> Figure | None:
    """Show the effect of the same change on all devices, or of all values of the knob on this device."""
    where = "value = ?" if kind == "devices" else "device = ?"
    effects = data.rows(
        "SELECT * FROM effects WHERE metric = 'throughput_ops' AND estimate IS NOT NULL "  # noqa: S608
        f"AND dbms = ? AND workload = ? AND knob = ? AND {where} "
        "ORDER BY tier_rank NULLS FIRST, device, step NULLS FIRST, try_cast(value AS DOUBLE), value",
        row["dbms"], row["workload"], row["knob"], row["value" if kind == "devices" else "device"],
    )  # fmt: skip
    if not effects:
        return None
    if kind == "devices":
        value = format_value(data.specs.dbms.get(row["dbms"]), row["knob"], row["value"])
        title = f"{row['knob']} = {value}, device by device"
    else:
        title = f"All values of {row['knob']} on {row['device']}"
    return forest_figure(
        data, Case.of(row), effects, title, slug(anchor, kind), label="device" if kind == "devices" else "value"
    )
