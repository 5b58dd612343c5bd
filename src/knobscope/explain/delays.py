"""Devices of which nothing can be taken away: what a DBMS waits for is told by making their requests slower.

A program stands between the DBMS and a file on the same device, and answers reads, writes or flushes later. What a
configuration waits for grows by the delay each time. So the time per operation that it takes more, times the ratio of a
request's own time to the delay, is its time of waiting for such requests: an extrapolation along a line, as causal
profiling does it with code (Curtsinger and Berger, Coz, SOSP 2015).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, ClassVar

from knobscope.explain.causes import Answer, list_differences, list_usable, share_words, time_of
from knobscope.explain.experiment import OPERATIONS
from knobscope.explain.shares import Share, amount_of, ratio_share
from knobscope.formats import join_words
from knobscope.specs import RuleCause
from knobscope.specs.quantity import read_duration_ns
from knobscope.tables import SensitivityRow, WhatIfRunRow

__all__ = ["DELAYED", "NO_DELAY", "DelayedAnswer"]

#: Name of the device behind the program that delays nothing, beside those of properties.
NO_DELAY = "no_delay"
#: Property -> the requests that are delayed.
DELAYED = {f"{op}_delay": op for op in OPERATIONS}
_WORDS = {"read": "reads", "write": "writes", "flush": "flushes"}
#: A kind of request that does not occur is not waited for.
_NO_PART = Share(0.0, 0.0, 0.0)


@dataclass
class DelayedAnswer(Answer):
    """What is known of a question on a device that can only be made slower.

    Its shares are of the effect behind the program without a delay, which is what differs in the delay alone. What it
    cannot tell is left to fio.
    """

    untold: ClassVar[str | None] = None
    runs: dict[str, list[WhatIfRunRow]] = field(default_factory=dict)
    delays_us: dict[str, float] = field(default_factory=dict)  # by property

    def add(self, name: str, runs: Sequence[WhatIfRunRow], change: Mapping[str, Any] | None = None) -> None:
        """Take in all pairs of runs on a device, of which one kind of request may be delayed: the one itself first."""
        self.runs[name] = list_usable(runs)
        if name in DELAYED and change:
            self.delays_us[name] = read_duration_ns(change[DELAYED[name]]) / 1e3
        super().add(name, runs, change)

    @property
    def is_watched(self) -> bool:
        """Whether it is known how long requests take without a delay."""
        return all(row["flush_us"] is not None for row in self.runs.get(NO_DELAY, []))

    def longest_us(self, op: str) -> float:
        """Return the longer of the times that a kind of request takes with the two settings; 0 where there is none."""
        return max(request_us(self.runs[NO_DELAY], op, side) for side in (True, False))

    def note_unused(self, name: str) -> None:
        """Take in that a kind of request does not occur."""
        self.shares[name] = _NO_PART

    def _find_share(self, name: str) -> None:
        for delayed in DELAYED if name == NO_DELAY else (name,):
            if delayed in self.amounts and NO_DELAY in self.amounts:
                self.shares[delayed] = self._waiting_share(delayed)

    def _waiting_share(self, name: str) -> Share:
        """Return the share of waiting in the effect; where settings differ in a request's time, each has its own."""
        if self.question.is_level:
            return self._share_of_time(name, self.question.is_default, self.question.rest.mean)
        op, delay = DELAYED[name], self.delays_us[name]
        own = {side: request_us(self.runs[NO_DELAY], op, side) for side in (True, False)}

        def weighted(row: WhatIfRunRow) -> float:
            return time_of(row) * own[row["is_reference"]] / delay

        delayed = list(list_differences(self.runs[name], weighted))
        base = list(list_differences(self.runs[NO_DELAY], weighted))
        return _growth_share(delayed, base, list(list_differences(self.runs[NO_DELAY], time_of)))

    def _share_of_time(self, name: str, is_reference: bool, rest: float = 0.0) -> Share:
        """Return which share of the time per operation of a configuration is waiting; of what exceeds `rest`."""
        own = request_us(self.runs[NO_DELAY], DELAYED[name], is_reference)
        times = {
            one: [time_of(row) for row in self.runs[one] if row["is_reference"] == is_reference]
            for one in (name, NO_DELAY)
        }
        factor = own / self.delays_us[name]
        delayed, base = ([time * factor for time in times[one]] for one in (name, NO_DELAY))
        return _growth_share(delayed, base, [time - rest for time in times[NO_DELAY]])

    @property
    def whole(self) -> Share | None:
        """The share of all waiting together; ends of intervals are added, since the base is the same for all."""
        if any(name not in self.shares for name in DELAYED):
            return None
        parts = [self.shares[name] for name in DELAYED]
        return Share(*(math.fsum(getattr(one, end) for one in parts) for end in ("estimate", "low", "high")))

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
        """Whether delays can bear out a cause: that of flushes; units and parallelism they leave as they are."""
        return cause.factor == "flush" or cause.expected == "no_loss"

    def _describe_followed(self) -> str:
        said = f"behind a program that delays requests, and {self._effect()}. "
        if not self.is_open:
            why = self.failures.get(NO_DELAY)
            return said + (
                f"Behind the program there is no result: {why}." if why else "Behind the program it did not."
            )
        parts = [f"{_waiting(name)} makes up {share_words(share)}" for name, share in self.causes]
        said += f"Of that, {join_words(parts)}. " if parts else ""
        return f"{said}{self._conclude()}{self._describe_sensitivity()}"

    def _conclude(self) -> str:
        if self.conclusion == "cause":
            return f"The cause is {_waiting(self.causes[0][0])}."
        if self.conclusion == "not_the_device" and self.whole:
            return f"Waiting for the device is not the cause: all of it makes up {share_words(self.whole)}."
        if self.conclusion == "several":
            return "Waiting for no single kind of request explains it, for all together it does."
        return "What the cause is cannot be told from these runs."

    def _describe_sensitivity(self) -> str:
        """Say what the reference configuration waits for, whatever the effect comes from."""
        if self.question.is_level:
            return ""
        shares = {name: self._share_of_time(name, is_reference=True) for name in DELAYED if name in self.amounts}
        parts = [f"for {_WORDS[DELAYED[name]]} {share_words(one)}" for name, one in shares.items() if one.low > 0]
        return f" Of its time, the reference configuration waits {join_words(parts)}." if parts else ""

    def list_sensitivities(self) -> Iterator[SensitivityRow]:
        """Yield the rows of table `sensitivities`: of both settings, or of the configuration that is asked about."""
        case = self.question.case
        sides = [self.question.is_default] if self.question.is_level else [True, False]
        for name, op in DELAYED.items():
            for side in sides if name in self.amounts and NO_DELAY in self.amounts else []:
                own = request_us(self.runs[NO_DELAY], op, side)
                if own == 0:
                    continue
                share = self._share_of_time(name, side)
                yield {
                    "dbms": case.dbms, "device": case.device, "workload": case.workload,
                    "knob": self.question.knob, "value": self.question.value, "is_reference": side,
                    "op": op, "request_us": own, "delay_us": self.delays_us[name],
                    "runs": sum(row["is_reference"] == side for row in self.runs[name]),
                    "sensitivity": -share.estimate,
                    "sensitivity_low": -share.high if math.isfinite(share.high) else None,
                    "sensitivity_high": -share.low if math.isfinite(share.low) else None,
                }  # fmt: skip


def request_us(runs: Sequence[WhatIfRunRow], op: str, is_reference: bool) -> float:
    """Return the mean time of a kind of request over watched runs of one side, microseconds; 0 where there is none."""
    times = [_time_of_request(row, op) for row in runs if row["is_reference"] == is_reference]
    return fmean([time for time in times if time > 0] or [0.0])


def _time_of_request(row: WhatIfRunRow, op: str) -> float:
    return {"read": row["read_us"], "write": row["write_us"], "flush": row["flush_us"]}[op] or 0.0


def _growth_share(delayed: Sequence[float], base: Sequence[float], whole: Sequence[float]) -> Share:
    """Return by how much `delayed` exceeds `base`, as a share of `whole`; the last two are of the same runs."""
    first, second, below = amount_of(delayed), amount_of(base), amount_of(whole)
    count = len(base)
    both = (
        math.fsum((b - second.mean) * (w - below.mean) for b, w in zip(base, whole, strict=True)) / (count - 1) / count
    )
    return ratio_share(
        (first.mean - second.mean, below.mean),
        (first.error**2 + second.error**2, below.error**2, -both),
        min(first.degrees, second.degrees),
    )


def _waiting(name: str) -> str:
    return f"waiting for {_WORDS[DELAYED[name]]}"
