"""Which factor each root-cause rule blames, and what fio must show to bear it out."""

from collections.abc import Callable
from dataclasses import dataclass

from knobscope.confirm.experiment import Figure, Ratio
from knobscope.confirm.pattern import Pattern, change_parallelism, change_sequentiality, change_size

__all__ = ["CAUSES", "Cause"]

_WORTHWHILE = 1.05  # less would not explain a finding
_NO_LOSS = 0.9  # within 10 %, as for the preferred write size


@dataclass(frozen=True)
class Cause:
    """A factor that can be changed alone, and how the change is judged."""

    figure: Figure
    change: Callable[[Pattern, int], tuple[Pattern, Pattern]]  # pattern, preferred write size -> as it was, changed
    words: Callable[[int], str]
    figure_words: str
    holds: Callable[[Ratio], bool]
    yes: str
    no: str


def _is_gain(ratio: Ratio) -> bool:
    return ratio.low > 1 and ratio.estimate >= _WORTHWHILE


def _is_no_loss(ratio: Ratio) -> bool:
    return ratio.low >= _NO_LOSS


#: Rule -> the factor it blames. Other rules name no factor of the I/O.
CAUSES = {
    "io_size": Cause(
        figure="written_bytes",
        change=change_size,
        words=lambda preferred: f"the same bytes written in pieces of {preferred / 1024:g} KiB",
        figure_words="bytes per second",
        holds=_is_gain,
        yes="the device is slower because of the size of the writes",
        no="the size of the writes does not explain it",
    ),
    "io_parallelism": Cause(
        figure="requests",
        change=lambda pattern, _: change_parallelism(pattern),
        words=lambda _: "32 requests in flight from 8 submitters",
        figure_words="requests per second",
        holds=_is_gain,
        yes="the device could do more than it is asked for at a time",
        no="more requests at a time would not make this device faster",
    ),
    "io_sequentiality": Cause(
        figure="requests",
        change=lambda pattern, _: change_sequentiality(pattern),
        words=lambda _: "the same requests at random places",
        figure_words="requests per second",
        holds=_is_no_loss,
        yes="the device gains next to nothing from sequential requests, so the work to make them so is wasted here",
        no="it is not shown that sequential requests are useless on this device",
    ),
}
