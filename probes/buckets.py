"""Edges of the buckets that the programs sort times into: four per power of two from 4 ns on, one for all below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def list_buckets(counts: Sequence[int]) -> list[dict[str, Any]]:
    """Return the buckets that are not empty: `low_us`, `high_us`, `calls`."""
    return [
        {"low_us": _edge(n) / 1e3, "high_us": _edge(n + 1) / 1e3, "calls": calls}
        for n, calls in enumerate(counts)
        if calls
    ]


def _edge(bucket: int) -> int:
    power, quarter = divmod(bucket, 4)
    return (4 + quarter) << power >> 2 if bucket >= 8 else 4 * (bucket > 0)
