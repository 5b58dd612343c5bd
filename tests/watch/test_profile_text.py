"""What an I/O profile says in a terminal."""

import pytest

from knobscope.watch.text import format_losses


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        ({"starts_without_completion": 1}, "1 request issued and not seen to end"),
        ({"starts_without_completion": 1200}, "1,200 requests issued and not seen to end"),
        ({"passthrough_requests": 1}, "1 command went to the device past the block layer"),
        ({"missed_events": 2}, "2 events, of any device, found the kernel side busy"),
    ],
)
def test_what_was_not_counted_is_said_of_one_and_of_many(lost: dict[str, int], text: str) -> None:
    assert text in format_losses(lost)
