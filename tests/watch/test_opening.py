"""Which mode is chosen."""

from pathlib import Path

import pytest

from knobscope.devices import BlockDevice
from knobscope.watch import opening


@pytest.mark.parametrize(("rate", "is_light"), [(250_000, True), (150_000, False)])
def test_light_mode_is_chosen_by_the_rate_of_all_requests(
    monkeypatch: pytest.MonkeyPatch, rate: int, is_light: bool
) -> None:
    """Reads, writes, discards and flushes count alike; merges, sectors and times do not."""
    moments = iter([10.0, 10.2])
    more = rate // 20
    texts = iter([f"{n} 9 9 9 {n} 9 9 9 0 9 9 {n} 9 9 9 {n} 9" for n in (100, 100 + more)])
    monkeypatch.setattr(opening.time, "monotonic", lambda: next(moments))
    monkeypatch.setattr(opening.time, "sleep", lambda _: None)
    monkeypatch.setattr(Path, "read_text", lambda _: next(texts))
    assert opening._is_busy(BlockDevice("made-up", 7, 0)) is is_light
