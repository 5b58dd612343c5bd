"""Several causes of one effect: their shares together, which add up to no more than all of it."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from knobscope.specs import Case
from knobscope.tables.detection import FindingRow
from knobscope.text.formats import format_share, loosen_units

#: What a cause is called in a list of shares.
_NAMES = {"flush": "flushes", "write_size": "filling units", "sequentiality": "CPU time for order"}
#: Key of the evidence with the shares that a sentence states.
STATED = "stated_shares"


def add_shares(findings: Sequence[FindingRow], measured: Collection[tuple[str | None, ...]]) -> None:
    """Say in the sentences of mismatches that explain the same effect how much each of them explains of it.

    They are those whose evidence has a `share` with `sure` and `high`. Ranges that overlap are scaled down to a whole.
    Not where an experiment refuted one of them, or measured shares: `measured` are such effects, by dbms, device,
    workload, knob and value. What an earlier call stated, which the evidence has, is taken back.
    """
    groups: dict[tuple[str | None, ...], list[tuple[FindingRow, float]]] = defaultdict(list)
    for row in findings:
        evidence = json.loads(row["evidence"] or "{}")
        if (stated := evidence.pop(STATED, None)) is not None:
            row["sentence"] = row["sentence"].replace(_say(stated), "", 1)
            row["evidence"] = json.dumps(evidence)
        share = find_share(evidence) if row["verdict"] == "mismatch" else None
        if share is not None:
            groups[_name_effect(row)].append((row, _middle(share)))
    for effect, causes in groups.items():
        is_refuted = any(row["confirmed"] == "no" for row, _ in causes)
        if len(causes) > 1 and not is_refuted and effect not in measured:
            stated = [{"cause": _name(row), "share": share} for row, share in causes]
            for row, _ in causes:
                row["sentence"] += _say(stated)
                row["evidence"] = json.dumps({**json.loads(row["evidence"] or "{}"), STATED: stated})


def _say(stated: Sequence[Mapping[str, Any]]) -> str:
    total = sum(part["share"] for part in stated)
    whole = max(1.0, total)
    scaled = ", scaled to a whole" if total > 1 else ""
    parts = [f"{part['cause']} {format_share(part['share'] / whole)}" for part in stated]
    unexplained = format_share(1 - total / whole)
    return loosen_units(f" Shares of the difference{scaled}: {', '.join(parts)}, not explained {unexplained}.")


def leave_open_excluded(findings: Sequence[FindingRow], gone: Collection[tuple[str | None, ...]]) -> None:
    """Leave open what rules excluded because flushes explain the effect, where an experiment refuted that they do.

    `gone` are the effects that did not reproduce, of which nothing is left to explain.
    """
    refuted = {_name_effect(row) for row in findings if (row["cause"], row["confirmed"]) == ("flush", "no")}
    for row in findings:
        evidence = json.loads(row["evidence"] or "{}")
        is_excluded = evidence.get("explained_by") == "flushes" or evidence.get("by_flushes")
        if row["verdict"] == "none" and is_excluded and _name_effect(row) in refuted.difference(gone):
            row["verdict"] = "insufficient"
            row["sentence"] += " An experiment refuted that flushes explain it, so this remains open."


def find_share(evidence: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the share of a cause in the evidence of a finding; None where a rule calls something else a share."""
    share = evidence.get("share")
    is_one = isinstance(share, Mapping) and all(isinstance(share.get(end), int | float) for end in ("sure", "high"))
    return share if is_one else None


def _name_effect(row: FindingRow) -> tuple[str | None, ...]:
    return (*Case.of(row), row["knob"], row["value"])


def _name(row: FindingRow) -> str:
    cause = row["cause"] or row["rule"]
    return _NAMES.get(cause, cause)


def _middle(share: Mapping[str, Any]) -> float:
    """Return the share where it was timed; the middle of what counts leave possible elsewhere."""
    sure = min(max(float(share["sure"]), 0.0), 1.0)
    return sure if share.get("by_time") else (sure + min(max(float(share["high"]), sure), 1.0)) / 2
