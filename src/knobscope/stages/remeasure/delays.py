"""Devices of which nothing can be taken away: what a DBMS waits for is told by making their requests slower.

A program stands between the DBMS and a file on the same device, and answers reads, writes or flushes later. What a
configuration waits for grows by the delay each time. With T the time per operation, and B that of all requests of a
kind per operation, it waits for the share (T' - T) / (B' - B) of their time, where ' marks the delayed device. On the
device itself, where the program does not take time of its own, it waits for that share of B there. This is an
extrapolation along a line, as causal profiling makes it with code (Curtsinger and Berger, Coz, SOSP 2015). B' is
measured and not reckoned from the delay, since a DBMS or its file system may ask for more or less when requests are
slower, and since the mix of operations differs from run to run.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from knobscope.specs import RuleCause
from knobscope.stages.remeasure.causes import Answer, share_words
from knobscope.stages.remeasure.experiment import ITSELF, OPERATIONS
from knobscope.stages.remeasure.pairs import list_usable, time_of
from knobscope.stages.remeasure.shares import NOTHING, Amount, Share, add_variances
from knobscope.tables import SensitivityRow, WhatIfRunRow
from knobscope.text.formats import join_words

#: Name of the device behind the program that delays nothing, in addition to those of properties.
NO_DELAY = "no_delay"
#: Property -> the requests that are delayed.
DELAYED = {f"{op}_delay": op for op in OPERATIONS}
_WORDS = {"read": "reads", "write": "writes", "flush": "flushes"}
#: Requests that take less than this part of the time in question are not what makes it up.
_NEGLIGIBLE = 0.01
_NO_PART = Share(0.0, 0.0, 0.0)
#: Run with the value (False) or of the reference (True) -> time per operation, and that of its requests of a kind.
_Pair = Mapping[bool, tuple[float, float]]


@dataclass
class DelayedAnswer(Answer):
    """What is known of a question on a device that can only be made slower.

    Its shares are of the effect on the device itself. What it cannot tell is left to fio.
    """

    runs: dict[str, list[WhatIfRunRow]] = field(default_factory=dict)
    delays_us: dict[str, float] = field(default_factory=dict)  # by property

    def add(self, name: str, runs: Sequence[WhatIfRunRow], change: Mapping[str, Any] | None = None) -> None:
        """Take in all pairs of runs on a device, of which one kind of request may be delayed: the one itself first."""
        self.runs[name] = list_usable(runs)
        if name in DELAYED and change:
            self.delays_us[name] = change[DELAYED[name]].us
        super().add(name, runs, change)

    @property
    def undecided(self) -> str | None:
        """Leave to fio the cause of a finding that the runs do not show, if its effect is there."""
        return None if self.is_reproduced else "not_tested"

    @property
    def is_watched(self) -> bool:
        """Whether it is known how long requests take, on the device itself and behind the program."""
        return all(row["flush_us"] is not None for name in (ITSELF, NO_DELAY) for row in self.runs.get(name, []))

    def longest_us(self, op: str) -> float:
        """Return the longer of the times that a kind of request takes with the two settings; 0 where it is negligible.

        What takes a hundredth of the time in question cannot make up half of it.
        """
        least = _NEGLIGIBLE * abs(self._whole_us(self._sides, self.question.remainder.mean))
        sides = [side for side in (True, False) if self._mean(NO_DELAY, op, side, _asked_us) > least]
        return max((self._mean(NO_DELAY, op, side, _time_of_request) for side in sides), default=0.0)

    def note_unused(self, name: str) -> None:
        """Take in that a kind of request does not occur, or as good as not."""
        self.shares[name] = _NO_PART

    @property
    def _sides(self) -> dict[bool, int]:
        """Return how runs of the reference (True) and of the value count in the time in question."""
        return {self.question.is_default: 1} if self.question.is_level else {False: 1, True: -1}

    def _mean(self, name: str, op: str, side: bool, of: Callable[[WhatIfRunRow, str], float]) -> float:
        values = [of(row, op) for row in self.runs[name] if row["is_reference"] == side]
        return fmean([value for value in values if value > 0] or [0.0])

    def _whole_us(self, sides: Mapping[bool, int], remainder_us: float) -> float:
        return _whole(_pairs(self.runs[ITSELF], "flush", sides), sides) - remainder_us

    def _find_share(self, name: str) -> None:
        for delayed in DELAYED if name == NO_DELAY else (name,):
            if delayed in self.amounts and NO_DELAY in self.amounts:
                self.shares[delayed] = self._waiting_share(delayed, self._sides, self.question.remainder)

    def _waiting_share(self, name: str, sides: Mapping[bool, int], remainder: Amount = NOTHING) -> Share:
        """Return which share of a time, or of a difference of times, is waiting; of what exceeds `remainder`."""
        samples = [_pairs(self.runs[variant], DELAYED[name], sides) for variant in (ITSELF, NO_DELAY, name)]
        excess_us = _whole(samples[0], sides) - remainder.mean
        least = _NEGLIGIBLE * abs(excess_us)

        def estimate(own: Sequence[_Pair], base: Sequence[_Pair], delayed: Sequence[_Pair]) -> float:
            waits = 0.0
            for side, sign in sides.items():
                requests_us = _asked(own, side)
                waits += sign * requests_us * _waited_share(base, delayed, side) if requests_us > least else 0.0
            return waits / (_whole(own, sides) - remainder.mean)

        return _jackknife(estimate, samples, Amount(0.0, remainder.error / excess_us, remainder.degrees))

    @property
    def whole(self) -> Share | None:
        """The share of all waiting together; ends of intervals are added, since the base is the same for all."""
        if any(name not in self.shares for name in DELAYED):
            return None
        parts = [self.shares[name] for name in DELAYED]
        return Share(*(math.fsum(getattr(share, end) for share in parts) for end in ("estimate", "low", "high")))

    @property
    def is_open(self) -> bool:
        """Whether it is worth a test: the effect is there, behind the program as well."""
        behind = self.amounts.get(NO_DELAY)
        is_there = NO_DELAY not in self.runs or (behind is not None and (self.question.is_level or behind.is_clear()))
        return self.question.followed and self.is_reproduced and not self.is_gone and is_there

    @property
    def _is_not_the_device(self) -> bool:
        return self.whole is not None and self.whole.is_less_than_half

    def can_judge(self, cause: RuleCause) -> bool:
        """Whether delays can confirm a cause: flushes or reads; units and parallelism they leave as they are."""
        return cause.factor in ("flush", "reads") or cause.expected == "no_loss"

    def _describe_followed(self) -> str:
        count = max((self.pairs[name] for name in DELAYED if name in self.pairs), default=0)
        slower = f", and {count} with each kind of request delayed by a program" if count else ""
        text = f"{slower}: {self.tell_effect()}. "
        if not self.is_open:
            why = self.failures.get(NO_DELAY)
            return text + (
                f"Behind the program there is no result: {why}."
                if why
                else "Behind the program the difference is not clear."
            )
        parts = [f"{_waiting_for(name)} accounts for {share_words(share)}" for name, share in self.causes]
        text += f"Of this, {join_words(parts)}. " if parts else ""
        return f"{text}{self._conclude()}{self._describe_sensitivity()}"

    def _conclude(self) -> str:
        if self.conclusion == "cause":
            return f"The cause is {_waiting_for(self.causes[0][0])}."
        if self.conclusion == "not_the_device" and self.whole:
            return f"Waiting for the device is not the cause: all of it accounts for {share_words(self.whole)}."
        if self.conclusion == "several":
            return "Waiting for no single kind of request explains it, but waiting for all of them together does."
        if self.conclusion == "device":
            return "Waiting for the device explains most of it; these runs cannot tell waiting for what."
        return "These runs cannot tell what the cause is."

    def _describe_sensitivity(self) -> str:
        """Say what the reference configuration waits for, whatever the effect comes from."""
        if self.question.is_level:
            return ""
        shares = {name: self._waiting_share(name, {True: 1}) for name in DELAYED if name in self.amounts}
        parts = [f"for {_WORDS[DELAYED[name]]} {share_words(share)}" for name, share in shares.items() if share.low > 0]
        return f" Of its time, the reference configuration waits {join_words(parts)}." if parts else ""

    def list_sensitivities(self) -> Iterator[SensitivityRow]:
        """Yield the rows of table `sensitivities`: of both settings, or of the configuration that is asked about."""
        case = self.question.case
        for name, op in DELAYED.items():
            for side in sorted(self._sides) if name in self.amounts and NO_DELAY in self.amounts else []:
                own, requests_us = (self._mean(ITSELF, op, side, of) for of in (_time_of_request, _asked_us))
                whole = self._whole_us({side: 1}, 0.0)
                if requests_us <= _NEGLIGIBLE * whole:
                    continue
                share = self._waiting_share(name, {side: 1})
                yield {
                    "dbms": case.dbms, "device": case.device, "workload": case.workload,
                    "knob": self.question.knob, "value": self.question.value, "is_reference": side,
                    "op": op, "request_us": own, "delay_us": self.delays_us[name],
                    "waited_share": share.estimate * whole / requests_us,
                    "runs": sum(row["is_reference"] == side for row in self.runs[name]),
                    "sensitivity": -share.estimate,
                    "sensitivity_low": -share.high if math.isfinite(share.high) else None,
                    "sensitivity_high": -share.low if math.isfinite(share.low) else None,
                }  # fmt: skip


def _time_of_request(row: WhatIfRunRow, op: str) -> float:
    return {"read": row["read_us"], "write": row["write_us"], "flush": row["flush_us"]}[op] or 0.0


def _asked_us(row: WhatIfRunRow, op: str) -> float:
    """Return the time of all requests of a kind, per operation of the DBMS."""
    count = {"read": row["reads_per_op"], "write": row["writes_per_op"], "flush": row["flushes_per_op"]}[op] or 0.0
    return count * _time_of_request(row, op)


def _pairs(runs: Sequence[WhatIfRunRow], op: str, sides: Mapping[bool, int]) -> list[_Pair]:
    """Return pairs of which all sides are there."""
    pairs: dict[int, dict[bool, tuple[float, float]]] = {}
    for row in runs:
        pairs.setdefault(row["pair"], {})[row["is_reference"]] = (time_of(row), _asked_us(row, op))
    return [pair for pair in pairs.values() if set(sides) <= set(pair)]


def _whole(pairs: Sequence[_Pair], sides: Mapping[bool, int]) -> float:
    """Return the time per operation in question: of a side, or the difference of two."""
    return sum(sign * fmean(pair[side][0] for pair in pairs) for side, sign in sides.items())


def _asked(pairs: Sequence[_Pair], side: bool) -> float:
    """Return the time of all requests of the kind in question, per operation."""
    return fmean(pair[side][1] for pair in pairs)


def _waited_share(base: Sequence[_Pair], delayed: Sequence[_Pair], side: bool) -> float:
    """Return which share of the time of requests a side waits for; not a number where they did not take longer."""
    longer = _asked(delayed, side) - _asked(base, side)
    return (_whole(delayed, {side: 1}) - _whole(base, {side: 1})) / longer if longer > 0 else math.nan


def _jackknife(estimate: Callable[..., float], samples: Sequence[Sequence[_Pair]], divisor: Amount) -> Share:
    """Return an estimate from some samples with a 95 % interval, from how it moves without each pair (Efron 1982).

    `divisor` is the relative error of what it is divided by that is not in the samples.
    """
    from scipy.special import stdtrit

    variance = 0.0
    for which, pairs in enumerate(samples):
        values = [
            estimate(*samples[:which], _without(pairs, number), *samples[which + 1 :]) for number in range(len(pairs))
        ]
        mean = fmean(values)
        variance += (len(pairs) - 1) / len(pairs) * math.fsum((value - mean) ** 2 for value in values)
    share = estimate(*samples)
    if not math.isfinite(share) or not math.isfinite(variance):
        return Share(share, -math.inf, math.inf)
    sampled = Amount(share, math.sqrt(variance), min(map(len, samples)) - 1)
    error, degrees = add_variances((sampled, Amount(0.0, share * divisor.error, divisor.degrees)))
    margin = float(stdtrit(degrees, 0.975)) * error
    return Share(share, share - margin, share + margin)


def _without(pairs: Sequence[_Pair], number: int) -> list[_Pair]:
    return [*pairs[:number], *pairs[number + 1 :]]


def _waiting_for(name: str) -> str:
    return f"waiting for {_WORDS[DELAYED[name]]}"
