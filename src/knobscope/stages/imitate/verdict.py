"""When fio's replicas confirm the cause that a rule names.

A rule that compares two settings says that one is slower because of one property of its I/O. Three things follow, and
each can fail: fio, repeating the I/O of both, shows the direction and most of the size of the difference; the I/O of
the slower one with that property taken from the faster one, and nothing else, makes up most of it; and a device that
minds partly filled units is slower across their limits than on them at equal size, by enough to make up most of it.

Where clients were not seen waiting for that I/O, the device has to be busy for long enough with the slower setting
(`knobscope.stages.detect.penalties`): replicas do nothing but I/O.

Answers have three values. Yes: a ratio is above 1 beyond noise, and its estimate is as large as asked for; no: its
whole interval is below that; None: nothing can be determined.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from knobscope.stages.detect import most_gain
from knobscope.stages.imitate.experiment import Ratio

Answer = bool | None

_WORTHWHILE = 1.05  # less would not explain a finding
_NO_LOSS = 0.9  # within 10 %, as for the preferred write size
_MOST = 0.5  # share of a difference: of its logarithm where it is replayed, of its time where something is exchanged


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
    def is_reproduced(self) -> Answer:
        """Whether the I/O alone shows direction and most of the size of the difference."""
        return True if self.replayed is None else _reaches(self.replayed, self.measured**_MOST)

    @property
    def is_due_to_exchanged(self) -> Answer:
        """Whether most of the time per operation that the slower one takes more is gone with the exchange.

        Times add up over causes, ratios do not: of a setting 100 times as fast, what does 10 times as much alone has
        saved 91 % of the time.
        """
        if self.exchanged is None:
            return False
        ratio = self.measured if self.replayed is None else min(self.measured, max(self.replayed.estimate, 1.0))
        return _reaches(self.exchanged, _most_of(ratio))


@dataclass(frozen=True)
class PartlyFilled:
    """What filling units in part can cost: a write across their limits fills at least one more than a whole one.

    `limits` is how many times as fast whole writes are on the limits of units as across them, `write_s` how long one
    takes on them. The slower setting fills `units` in part per operation, at most, and takes `difference_s` more.
    """

    limits: Ratio
    write_s: float
    units: float
    difference_s: float

    @property
    def most_s(self) -> float:
        """Seconds per operation that they cost at most, by the upper end of the interval."""
        return max(self.limits.high - 1, 0.0) * self.write_s * self.units

    @property
    def may_be_most(self) -> bool:
        """Whether they may cost half of the difference or more; no where they surely cost less."""
        return self.most_s >= _MOST * self.difference_s


def _most_of(ratio: float) -> float:
    """Return the ratio of throughput that saves most of the time per operation that another one saves."""
    return 1 / (1 - _MOST * (1 - 1 / ratio))


def may_be_io(measured: float, busy_share: float) -> bool:
    """Whether the device is busy for so long that its I/O can be most of the difference that the DBMS showed."""
    return most_gain(busy_share) >= _most_of(measured)


def gain_of_dbms(io: Ratio, busy_share: float) -> Ratio:
    """Return what the DBMS gains at most when the requests of a device that is busy for a share of the time gain that.

    Throughput rises less than they do: the rest of the time stays.
    """
    estimate, low, high = (most_gain(busy_share, ratio) for ratio in (io.estimate, io.low, io.high))
    return Ratio(estimate, low, high, io.rounds)


def _reaches(ratio: Ratio, least: float) -> Answer:
    """Whether a ratio is above 1 beyond noise and so large; no where its whole interval is below that."""
    if ratio.low > 1 and ratio.estimate >= least:
        return True
    return False if ratio.high < max(least, 1) else None


def is_worthwhile(ratio: Ratio) -> Answer:
    """Whether the changed I/O is faster, beyond noise and by an amount that matters."""
    return _reaches(ratio, _WORTHWHILE)


def loses_nothing(ratio: Ratio) -> Answer:
    """Whether the changed I/O is as fast as the original one, or faster."""
    return True if ratio.low >= _NO_LOSS else False if ratio.high < _NO_LOSS else None


def all_hold(answers: Iterable[Answer]) -> Answer:
    """Whether all answers are yes; no where one is no, whatever is not known of others."""
    values = list(answers)
    return False if False in values else None if None in values else True


def deny(answer: Answer) -> Answer:
    """Return the opposite answer."""
    return None if answer is None else not answer
