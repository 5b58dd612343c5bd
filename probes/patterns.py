"""Names the pattern in which a file is read or written; the same definition for system calls, page faults and requests.

Per file and direction, in order. A request is sequential when it is one of three or more that follow on each other in
one of the file's open streams. A write is an append, sequential or not, when it begins at the end of what was written,
or in the last block before, and reaches it. What is neither is strided when it is one of three or more whose distances
from the start of the request before them are equal, neither 0 nor the length of that request. The rest is random.
"""

from __future__ import annotations

from typing import Any, Protocol

PATTERNS = ("sequential", "append", "strided", "random", "mixed", "few")
_MIN_REQUESTS = 10  # of fewer nothing can be said
_DOMINANT_SHARE = 0.8


class Counts(Protocol):
    """What the kernel side counts of an order (struct pattern_t); `appended_alone`: appends that are not sequential."""

    judged: int
    sequential: int
    appended: int
    appended_alone: int
    strided: int


def summarise_pattern(counts: Counts, *, is_write: bool) -> dict[str, Any]:
    """Return the shares `sequential_share`, `append_share`, `strided_share`, `random_share` and the label `pattern`.

    Shares are None without requests, `append_share` also of reads. Appends may be sequential too; all else excludes
    each other. The label is the first of these names with a share of 0.8 or more, `mixed` when there is none, and `few`
    below ten requests.
    """
    requests = counts.judged
    if not requests:
        return {**dict.fromkeys(f"{name}_share" for name in PATTERNS[:4]), "pattern": "few"}
    # The first ones of a stream are known to be sequential by the third.
    alone = min(counts.appended_alone, requests - counts.sequential)
    strided = min(counts.strided, requests - counts.sequential - alone)
    shares = {
        "sequential": counts.sequential / requests,
        "append": min(counts.appended / requests, 1.0) if is_write else None,
        "strided": strided / requests,
        "random": (requests - counts.sequential - alone - strided) / requests,
    }
    dominant = (name for name, share in shares.items() if share is not None and share >= _DOMINANT_SHARE)
    pattern = next(dominant, "mixed") if requests >= _MIN_REQUESTS else "few"
    return {f"{name}_share": share for name, share in shares.items()} | {"pattern": pattern}
