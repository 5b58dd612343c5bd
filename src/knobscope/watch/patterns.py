"""Names the pattern of requests by their shares, as `probes/patterns.py` does: for sums made in user space."""

from typing import Literal

from knobscope.tables.block_layer import OrderColumns

Share = Literal["sequential_share", "append_share", "strided_share", "random_share"]

SHARES: tuple[Share, ...] = ("sequential_share", "append_share", "strided_share", "random_share")
_MIN_REQUESTS = 10  # of fewer nothing can be said
_DOMINANT_SHARE = 0.8


def name_pattern(requests: int, shares: OrderColumns) -> str | None:
    """Return the first name whose share is 0.8 or more, `mixed` where none has it, `few` below ten requests.

    None: none of the shares that are known is so high.
    """
    if requests < _MIN_REQUESTS:
        return "few"
    dominant = (name.removesuffix("_share") for name in SHARES if (shares[name] or 0) >= _DOMINANT_SHARE)
    return next(dominant, None if shares["random_share"] is None else "mixed")
