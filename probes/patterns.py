"""Names the pattern in which a file is read or written; the same definition for system calls, page faults and requests.

Per file and direction, in order. A request is sequential when it is one of three or more that follow on each other in
one of the file's open streams. Else it is strided when it is one of three or more whose distances from the start of the
request before them are equal, neither 0 nor the length of that request. Else it is random.
"""

from __future__ import annotations

from typing import Any

__all__ = ["PATTERNS", "describe_pattern"]

PATTERNS = ("sequential", "strided", "random", "mixed", "few")
_MIN_REQUESTS = 10  # of fewer nothing can be said
_DOMINANT_SHARE = 0.8


def describe_pattern(requests: int, sequential: int, strided: int) -> dict[str, Any]:
    """Return `sequential_share`, `strided_share`, `random_share` (None without requests) and the label `pattern`.

    The label is that of a share of 0.8 or more (random: of what is neither sequential nor strided), `mixed` when there
    is none, and `few` below ten requests.
    """
    if not requests:
        return {"sequential_share": None, "strided_share": None, "random_share": None, "pattern": "few"}
    strided = min(strided, requests - sequential)  # the first ones of a stream are known to be sequential by the third
    shares = {
        "sequential": sequential / requests,
        "strided": strided / requests,
        "random": (requests - sequential - strided) / requests,
    }
    dominant = (name for name, share in shares.items() if share >= _DOMINANT_SHARE)
    pattern = next(dominant, "mixed") if requests >= _MIN_REQUESTS else "few"
    return {f"{name}_share": share for name, share in shares.items()} | {"pattern": pattern}
