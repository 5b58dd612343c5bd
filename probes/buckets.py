"""Edges of the buckets that the programs sort times into: four per power of two from 4 ns on, one for all below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def list_buckets(counts: Sequence[int], name: str = "calls") -> list[dict[str, Any]]:
    """Return the buckets that are not empty: `low_us`, `high_us`, and what is counted by its name."""
    return [
        {"low_us": _edge(n) / 1e3, "high_us": _edge(n + 1) / 1e3, name: count}
        for n, count in enumerate(counts)
        if count
    ]


def _edge(bucket: int) -> int:
    power, quarter = divmod(bucket, 4)
    return (4 + quarter) << power >> 2 if bucket >= 8 else 4 * (bucket > 0)
