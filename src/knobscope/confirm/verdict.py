"""When fio's replicas bear out the cause that a rule names.

A rule that compares two settings says that one is slower because of one property of its I/O. Three things follow, and
each can fail: fio, repeating the I/O of both, shows the direction and most of the size of the difference; the I/O of
the slower one with that property taken from the faster one, and nothing else, makes up most of it; and a device that
minds partly filled units is slower across their limits than on them at equal size.
"""

import math
from dataclasses import dataclass

from knobscope.confirm.experiment import Ratio

__all__ = ["Comparison", "is_worthwhile", "loses_nothing"]

_WORTHWHILE = 1.05  # less would not explain a finding
_NO_LOSS = 0.9  # within 10 %, as for the preferred write size
_MOST = 0.5  # share of a difference, of its logarithm


@dataclass(frozen=True)
class Comparison:
    """What replicas of two settings showed: operations per second, always against the slower one.

    `measured` is the ratio of throughput that the DBMS had. `replayed` is None where the faster setting does no I/O;
    `exchanged`, the slower one with the blamed property of the faster one, where the rule blames none that fio can
    exchange.
    """

    measured: float
    replayed: Ratio | None
    exchanged: Ratio | None = None

    @property
    def is_reproduced(self) -> bool:
        """Whether the I/O alone shows direction and most of the size of the difference."""
        return self.replayed is None or _explains(self.replayed, math.log(self.measured))

    @property
    def is_due_to_exchanged(self) -> bool:
        """Whether the exchanged property makes up most of it."""
        if self.exchanged is None:
            return False
        known = math.log(self.measured)
        wanted = known if self.replayed is None else min(known, math.log(max(self.replayed.estimate, 1.0)))
        return _explains(self.exchanged, wanted)


def _explains(ratio: Ratio, wanted: float) -> bool:
    return ratio.low > 1 and math.log(ratio.estimate) >= _MOST * wanted


def is_worthwhile(ratio: Ratio) -> bool:
    """Whether the changed I/O is faster, beyond noise and by an amount that matters."""
    return ratio.low > 1 and ratio.estimate >= _WORTHWHILE


def loses_nothing(ratio: Ratio) -> bool:
    """Whether the changed I/O is as fast as the original one, or faster."""
    return ratio.low >= _NO_LOSS
