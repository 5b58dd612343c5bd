"""Shares of the time that was watched, as shares of the window that was measured."""

from typing import cast

import pytest

from knobscope.stages.measure.window import share_of_window
from knobscope.watch import Profile


@pytest.mark.parametrize(
    ("share", "watched_s", "expected"),
    [
        (0.4, 2.0, 0.4),
        (0.4, 2.5, 0.5),  # the generator took half a second to start and end
        (0.9, 2.5, 1.0),  # and was busy then
        (0.4, 1.9, 0.4),  # a part of the window stands for all of it
        (None, 2.5, None),
    ],
)
def test_time_beyond_the_window_makes_no_share_smaller(
    share: float | None, watched_s: float, expected: float | None
) -> None:
    profile = cast("Profile", {"duration_s": watched_s})
    assert share_of_window(share, profile, window_s=2.0) == pytest.approx(expected)
