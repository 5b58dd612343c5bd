"""Labels of patterns."""

from types import SimpleNamespace

import pytest
from patterns import PATTERNS, summarise_pattern


@pytest.mark.parametrize(
    ("requests", "sequential", "appended", "alone", "strided", "pattern"),
    [
        (100, 80, 0, 0, 0, "sequential"),
        (100, 79, 0, 0, 21, "mixed"),
        (100, 79, 100, 21, 0, "append"),
        (100, 80, 100, 20, 0, "sequential"),
        (100, 0, 80, 80, 0, "append"),
        (100, 98, 100, 4, 4, "sequential"),
        (100, 0, 0, 0, 80, "strided"),
        (100, 10, 0, 0, 10, "random"),
        (100, 10, 0, 0, 11, "mixed"),
        (10, 2, 0, 0, 0, "random"),
        (9, 9, 0, 0, 0, "few"),
        (0, 0, 0, 0, 0, "few"),
    ],
)
def test_label(requests: int, sequential: int, appended: int, alone: int, strided: int, pattern: str) -> None:
    counts = SimpleNamespace(
        judged=requests, sequential=sequential, appended=appended, appended_alone=alone, strided=strided
    )
    described = summarise_pattern(counts, is_write=True)
    assert described["pattern"] == pattern
    assert pattern in PATTERNS
    shares = [described[f"{name}_share"] for name in ("sequential", "append", "strided", "random")]
    if not requests:
        assert shares == [None] * 4
        return
    assert min(shares) >= 0
    alone_share = min(alone, requests - sequential) / requests
    assert shares[0] + alone_share + shares[2] + shares[3] == pytest.approx(1)


def test_reads_are_no_appends() -> None:
    counts = SimpleNamespace(judged=100, sequential=0, appended=0, appended_alone=0, strided=0)
    assert summarise_pattern(counts, is_write=False)["append_share"] is None
