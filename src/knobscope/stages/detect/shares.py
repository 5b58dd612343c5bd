"""Several causes of one effect: their shares together, which add up to no more than all of it."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.specs import Case
from knobscope.tables.detection import FindingRow
from knobscope.text.formats import format_share, loosen_units

#: What a cause is called in a list of shares.
_NAMES = {"flush": "flushes", "write_size": "filling units", "sequentiality": "CPU time for order"}


def add_shares(findings: Sequence[FindingRow]) -> None:
    """Say in the sentences of mismatches that explain the same effect how much each of them explains of it.

    They are those whose evidence has a `share` with `sure` and `high`. Ranges that overlap are scaled down to a whole.
    """
    groups: dict[tuple[str | None, ...], list[tuple[FindingRow, float]]] = defaultdict(list)
    for row in findings:
        share = json.loads(row["evidence"] or "{}").get("share") if row["verdict"] == "mismatch" else None
        if share:
            swept = (*Case.of(row), row["knob"], row["value"])
            groups[swept].append((row, _middle(share)))
    for causes in groups.values():
        if len(causes) > 1:
            whole = max(1.0, sum(share for _, share in causes))
            parts = [f"{_name(row)} {format_share(share / whole)}" for row, share in causes]
            unexplained = 1 - sum(share for _, share in causes) / whole
            sentence = loosen_units(
                f" Shares of the difference: {', '.join(parts)}, not explained {format_share(unexplained)}."
            )
            for row, _ in causes:
                row["sentence"] += sentence


def _name(row: FindingRow) -> str:
    cause = row["cause"] or row["rule"]
    return _NAMES.get(cause, cause)


def _middle(share: Mapping[str, Any]) -> float:
    """Return the share where it was timed; the middle of what counts leave possible elsewhere."""
    sure = min(max(float(share["sure"]), 0.0), 1.0)
    return sure if share.get("by_time") else (sure + min(max(float(share["high"]), sure), 1.0)) / 2
