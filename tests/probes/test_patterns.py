"""Labels of patterns."""

import pytest
from patterns import PATTERNS, describe_pattern


@pytest.mark.parametrize(
    ("requests", "sequential", "strided", "pattern"),
    [
        (100, 80, 0, "sequential"),
        (100, 79, 21, "mixed"),
        (100, 0, 80, "strided"),
        (100, 10, 10, "random"),
        (100, 10, 11, "mixed"),
        (10, 2, 0, "random"),
        (9, 9, 0, "few"),
        (0, 0, 0, "few"),
    ],
)
def test_label(requests: int, sequential: int, strided: int, pattern: str) -> None:
    described = describe_pattern(requests, sequential, strided)
    assert described["pattern"] == pattern
    assert pattern in PATTERNS
    shares = [described[f"{name}_share"] for name in ("sequential", "strided", "random")]
    assert shares == [None] * 3 if not requests else sum(shares) == pytest.approx(1)
