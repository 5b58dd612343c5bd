"""Mismatches of both studies: which are in both, and what the other study says where one is in only one of them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from knobscope.commands.compare.matching import CasePair
from knobscope.commands.compare.reading import StudyTables
from knobscope.specs import Case
from knobscope.study_data.study import Row

#: What a study says of a mismatch that the other one found.
Other = Literal["mismatch", "none", "insufficient", "withdrawn", "not_judged"]

#: What a finding is about, apart from a knob's value: the device that it compares with, a file and what is done to it.
_Subject = tuple[str | None, str | None, str | None]
_WHAT = ("lower_device", "file", "op")
_Key = tuple[str, str | None, str | None, _Subject]
_WHOLE_CASE: _Subject = (None, None, None)


@dataclass(frozen=True)
class MismatchPair:
    """A question of a rule that at least one study answers with a mismatch; sentences and penalties as it tells them.

    `a` and `b` are what each study says. A mismatch that an experiment refuted counts as `withdrawn`.
    """

    rule: str
    knob: str | None
    value: str | None
    a: Other
    b: Other
    sentence_a: str
    sentence_b: str
    penalty_a: float | None
    penalty_b: float | None


def compare_mismatches(
    a: StudyTables, b: StudyTables, pair: CasePair, devices: Mapping[str, str] | None = None
) -> list[MismatchPair]:
    """Return the mismatches of a pair of cases: those of both studies first, then those of A, then those of B.

    `devices` maps devices of A to those of B, for rules that compare two devices.
    """
    left = _judged(a, pair.a, devices or {})
    right = _judged(b, pair.b, {})
    candidates = [
        _join(key, _answer(left, key), _answer(right, key), (_asked(b, pair.b, key[0]), _asked(a, pair.a, key[0])))
        for key in {**left, **right}
    ]
    either = [candidate for candidate in candidates if "mismatch" in (candidate.a, candidate.b)]
    return sorted(either, key=_order)


def _judged(study: StudyTables, case: Case, devices: Mapping[str, str]) -> dict[_Key, Row]:
    """Return the findings of a case by what was asked; a value that two rows name keeps the graver one."""
    findings: dict[_Key, Row] = {}
    for row in study.of_case("findings", case):
        key = (row["rule"], row["knob"], row["value"], _read_subject(row, devices))
        if key not in findings or _verdict(row) == "mismatch":
            findings[key] = row
    return findings


def _answer(judged: Mapping[_Key, Row], key: _Key) -> Row | None:
    """Return what a study says to a question, or to that of the whole case: why no value could be judged, perhaps."""
    whole = judged.get((key[0], None, None, _WHOLE_CASE))
    return judged.get(key) or (whole if whole is not None and _verdict(whole) != "mismatch" else None)


def _read_subject(row: Row, devices: Mapping[str, str]) -> _Subject:
    evidence = json.loads(row["evidence"] or "{}")
    if not isinstance(evidence, dict):
        return _WHOLE_CASE
    lower, file, op = (None if (name := evidence.get(key)) is None else str(name) for key in _WHAT)
    return None if lower is None else devices.get(lower, lower), file, op


def _verdict(row: Row) -> Other:
    if row["verdict"] == "mismatch":
        return "withdrawn" if row["confirmed"] == "no" else "mismatch"
    return "none" if row["verdict"] == "none" else "insufficient"


def _asked(study: StudyTables, case: Case, rule: str) -> bool:
    return any(row["rule"] == rule for row in study.of_case("findings", case))


def _join(key: _Key, a: Row | None, b: Row | None, asked_other: tuple[bool, bool]) -> MismatchPair:
    rule, knob, value, _ = key
    asked_b, asked_a = asked_other
    return MismatchPair(
        rule,
        knob,
        value,
        "not_judged" if a is None else _verdict(a),
        "not_judged" if b is None else _verdict(b),
        _silence(asked_a, rule) if a is None else a["sentence"] or "",
        _silence(asked_b, rule) if b is None else b["sentence"] or "",
        None if a is None else a["penalty"],
        None if b is None else b["penalty"],
    )


def _silence(was_asked: bool, rule: str) -> str:
    """Say why a study has no verdict."""
    return "This value was not judged." if was_asked else f"The rule {rule} was not asked about this case."


def _order(mismatch: MismatchPair) -> tuple[int, float, str, str, str]:
    group = 0 if mismatch.a == mismatch.b else 1 if mismatch.a == "mismatch" else 2
    return (
        group,
        -max(mismatch.penalty_a or 0, mismatch.penalty_b or 0),
        mismatch.rule,
        mismatch.knob or "",
        mismatch.value or "",
    )


def count_kinds(mismatches: list[MismatchPair]) -> Iterator[tuple[str, Other, int]]:
    """Yield how many mismatches are in one study alone, by what the other one says: (letter, word, count)."""
    for letter in "AB":
        other_answers = [mismatch.b if letter == "A" else mismatch.a for mismatch in mismatches
                         if (mismatch.a if letter == "A" else mismatch.b) == "mismatch"]  # fmt: skip
        for word in ("none", "insufficient", "withdrawn", "not_judged"):
            if count := other_answers.count(word):
                yield letter, word, count
