"""What the runs on what-if devices say: the cause of an effect, and whether it is the one that a rule names."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from knobscope.specs import RuleCause
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.gains import Gain, find_gain
from knobscope.stages.remeasure.pairs import (
    list_differences,
    list_usable,
    log_throughput,
    micros_off_device,
    micros_without_way,
    time_of,
)
from knobscope.stages.remeasure.properties import EVERYTHING, LAYERS, PROPERTY_WORDS
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import NOTHING, Amount, Share, amount_of, remaining_share
from knobscope.statistics.looks import SIGNIFICANCE
from knobscope.tables import WhatIfRow, WhatIfRunRow
from knobscope.text.formats import (
    describe_change,
    describe_effect,
    format_fold,
    format_micros,
    format_share,
    join_words,
    loosen_units,
    plural,
)

_FEWEST_PAIRS = 3
HALF = 0.5
#: What-if devices on which the way is all the time that a flush takes: it goes with the cost of flushes.
_FREE_FLUSHES = ("flush", EVERYTHING)
#: `several`: each property explains less than half; `device`: what the largest one explains is not known.
Conclusion = Literal["cause", "several", "device", "not_the_device", "not_as_blamed", "undecided", "gone"]


@dataclass
class Answer:
    """What is known of a question so far: property -> amount of the effect, and its share."""

    question: Question
    amounts: dict[str, Amount] = field(default_factory=dict)
    pairs: dict[str, int] = field(default_factory=dict)
    shares: dict[str, Share] = field(default_factory=dict)
    #: What `everything` would come to if all that still takes time at that device were the way to it.
    most_of_everything: Share | None = None
    failures: dict[str, str] = field(default_factory=dict)
    changes: dict[str, str] = field(default_factory=dict)  # parameters of the device that differ, as JSON
    #: The effect (or gap) in the pairs of runs on the device itself, natural-log ratio of throughput; None of a level.
    repeated_effect: Amount | None = None
    own_effect: Amount = NOTHING  # the same on this device alone
    #: What the slower of the two configurations gains on each other device.
    gains: dict[str, Gain] = field(default_factory=dict)
    _own: list[WhatIfRunRow] = field(default_factory=list)

    def add(self, name: str, runs: Sequence[WhatIfRunRow], change: Mapping[str, Any] | None = None) -> None:
        """Take in all pairs of runs on a device, of which some parameters differ: the one itself first."""
        self.changes[name] = json.dumps(change or {}, sort_keys=True, default=str)
        values = list(self._amounts(runs, micros_without_way if name in _FREE_FLUSHES else time_of))
        self.pairs[name] = len(values)
        if len(values) < _FEWEST_PAIRS:
            reasons = [row["reason"] for row in runs if row["status"] != "ok"]
            self.failures[name] = str(reasons[0]) if reasons else "too few runs"
            return
        self.failures.pop(name, None)
        self.amounts[name] = amount_of(values)
        if name == ITSELF:
            self._own = list(runs)
        elif (gain := find_gain(self.question, self._own, runs)) is not None:
            self.gains[name] = gain
        if name == ITSELF and not self.question.is_level:
            self.own_effect = amount_of(list(list_differences(list_usable(runs), log_throughput)))
            self.repeated_effect = self.own_effect.minus(self.question.remainder)
        if name not in (ITSELF, *LAYERS) and ITSELF in self.amounts:
            self._find_share(name)
        if name == EVERYTHING and ITSELF in self.amounts:
            self.most_of_everything = self._share(amount_of(list(self._amounts(runs, micros_off_device))))

    def _find_share(self, name: str) -> None:
        """Note which share of the effect is gone on a what-if device."""
        self.shares[name] = self._share(self.amounts[name])

    def _share(self, changed: Amount) -> Share:
        return remaining_share(changed, self.amounts[ITSELF], self.question.remainder)

    def _amounts(self, runs: Iterable[WhatIfRunRow], time_of_run: Callable[[WhatIfRunRow], float]) -> Iterator[float]:
        ok = list_usable(runs)
        if self.question.is_level:
            return (time_of_run(row) for row in ok if row["is_reference"] == self.question.is_default)
        return list_differences(ok, time_of_run if self.question.other_device is None else log_throughput)

    @property
    def undecided(self) -> str | None:
        """`confirmed` of a finding whose cause the runs do not show; None leaves it to fio."""
        return None if self.question.blamed and self.is_reproduced else "not_tested"

    @property
    def is_reproduced(self) -> bool:
        """Whether the effect (or gap) shows again on the device itself, beyond noise.

        A configuration that takes less time than on the lower tier has no gap of time, whatever its latencies are.
        """
        if self.repeated_effect is not None:
            return self.repeated_effect.is_clear(SIGNIFICANCE)
        amount, remainder = self.amounts.get(ITSELF), self.question.remainder
        return amount is not None and amount.mean > remainder.mean and amount.minus(remainder).is_clear()

    @property
    def is_smaller(self) -> bool:
        """Whether the effect (or gap) is surely less than half as large in new pairs of runs as in the sweep."""
        return self.question.swept_effect is not None and self._most_again < abs(self.question.swept_effect.mean) / 2

    @property
    def is_refuted(self) -> bool:
        """Whether it is smaller, and in new pairs of runs there is none in that direction, or none that matters."""
        if not self.is_smaller or self.repeated_effect is None:
            return False
        is_there = self.repeated_effect.is_clear(SIGNIFICANCE) and self._most_again > 0
        return not is_there or self._most_again < self.question.least

    @property
    def is_gone(self) -> bool:
        """Whether it is refuted, or does not show again, and is no clear effect with the runs of the sweep, either.

        The sweep found it among many comparisons, so that its runs speak for it: what is not clear even with them is
        not established.
        """
        if self.repeated_effect is None or self.question.swept_effect is None or self.is_reproduced:
            return self.is_refuted
        return self.is_refuted or not self.question.with_sweep(self.own_effect).is_clear(SIGNIFICANCE)

    @property
    def _most_again(self) -> float:
        """The end of its interval in new pairs that lies in the direction of what the sweep saw; positive there."""
        if self.repeated_effect is None or self.question.swept_effect is None:
            return math.inf
        return max(
            math.copysign(1.0, self.question.swept_effect.mean) * end
            for end in self.repeated_effect.interval(SIGNIFICANCE)
        )

    @property
    def is_settled(self) -> bool:
        """Whether more pairs of runs on the device itself would tell nothing new about whether the effect is there."""
        return (
            self.is_reproduced or self.is_refuted or (self.question.swept_effect is None and self.question.risk is None)
        )

    @property
    def is_open(self) -> bool:
        """Whether single properties are worth a test: the effect is there, and the device has a part in it."""
        return self.question.followed and self.is_reproduced and not self.is_gone and not self._is_not_the_device

    @property
    def whole(self) -> Share | None:
        """The share of all costs of the device together; None where it is not known."""
        return self.shares.get(EVERYTHING)

    @property
    def _is_not_the_device(self) -> bool:
        """Whether less than half goes with all costs of the device, also if the way to it counts as one of them."""
        shares = (self.whole, self.most_of_everything)
        return all(share is not None and share.is_less_than_half for share in shares)

    def can_judge(self, cause: RuleCause) -> bool:
        """Whether the experiment can confirm what a rule names; that the device is no cause it always can."""
        del cause
        return True

    @property
    def causes(self) -> list[tuple[str, Share]]:
        """Properties that surely have a part in the effect, the largest first."""
        causes = [(name, share) for name, share in self.shares.items() if name != EVERYTHING and share.low > 0]
        return sorted(causes, key=lambda cause: -cause[1].estimate)

    @property
    def _is_shared(self) -> bool:
        """Whether each property was measured, and surely explains less than half."""
        single = [share for name, share in self.shares.items() if name != EVERYTHING]
        return not self.failures.keys() - set(LAYERS) and all(share.is_less_than_half for share in single)

    @property
    def conclusion(self) -> Conclusion:
        """What it comes to."""
        if self.is_gone:
            return "gone"
        if not self.is_reproduced or not self.shares:
            return "undecided"
        if self.causes and self.causes[0][1].is_most:
            return "cause"
        if self._is_not_the_device:
            return "not_the_device"
        if self.whole is not None and self.whole.is_most:
            return "several" if self._is_shared else "device"
        blamed = self.question.blamed  # of `everything` that which remains may be the way to a modelled device
        is_tested = blamed and EVERYTHING not in blamed and blamed <= self.shares.keys()
        return "not_as_blamed" if is_tested and all(share.is_minor for share in self.shares.values()) else "undecided"

    def rows(self) -> list[WhatIfRow]:
        """Return its rows of table `what_ifs`."""
        case, rows = self.question.case, []
        for name, amount in self.amounts.items():
            share = self.shares.get(name)
            row: WhatIfRow = {
                "dbms": case.dbms, "device": case.device, "workload": case.workload,
                "knob": self.question.knob, "value": self.question.value, "other_device": self.question.other_device,
                "is_level": self.question.is_level, "property": name, "change": self.changes[name],
                "pairs": self.pairs[name], "amount": amount.mean, "amount_error": amount.error,
            }  # fmt: skip
            if name == ITSELF and self.repeated_effect is not None:
                low, high = self.repeated_effect.interval(SIGNIFICANCE)
                row |= {
                    "again": self.repeated_effect.mean,
                    "again_low": low,
                    "again_high": high,
                    "is_gone": self.is_gone,
                }
            if share is not None:
                row |= {"share": share.estimate, "share_low": _end(share.low), "share_high": _end(share.high)}
            if name in self.gains:
                row |= self.gains[name].columns()
            rows.append(row)
        return rows

    @property
    def slower(self) -> str:
        """The configuration that its gains are of, and its case; empty where there are none."""
        if (gain := next(iter(self.gains.values()), None)) is None:
            return ""
        return json.dumps([*self.question.case, gain.configuration], sort_keys=True, default=str)

    def describe_gains(self) -> str:
        """Say what layers between DBMS and drive would gain, each in a sentence; nothing where none surely does."""
        sentences = [gain.describe(name, self.changes[name]) for name, gain in self.gains.items()]
        return "".join(f" {sentence}" for sentence in sentences if sentence)

    def describe(self) -> str:
        """Say what the experiment showed, with the shares of all that has a part."""
        case, question = self.question.case, self.question
        count = plural(self.pairs.get(ITSELF, 0), "run" if question.is_level else "pair")
        begin = f"{case.dbms} ran again on {case.device}, {count}{'' if question.is_level else ' of runs'}"
        if ITSELF in self.failures:
            return f"{begin}, without a result: {self.failures[ITSELF]}."
        if self.repeated_effect is not None and (self.is_gone or not self.is_reproduced):
            return f"{begin}: {self._describe_again(self.repeated_effect)}"
        if not self.is_reproduced:
            return f"{begin}: no gap in throughput, so there is no cause of it to test; latencies are not compared."
        if not question.followed:
            return f"{begin}: {self._describe_shown()}{self._describe_smaller()}."
        return f"{begin}{self._describe_followed()}"

    def _describe_followed(self) -> str:
        """Say what the what-if devices showed."""
        text = f" each there and on what-if devices, and {self.tell_effect()}. "
        shares = (
            [entry for entry in self.shares.items() if math.isfinite(entry[1].low)]
            if self.question.blamed
            else self.causes
        )
        parts = [f"{share_words(share)} with {PROPERTY_WORDS[name]}" for name, share in shares]
        is_concluded = self.conclusion == "cause" and len(self.shares) == 1  # and said there, in one sentence
        text += f"The share of it that disappears is {join_words(parts)}. " if parts and not is_concluded else ""
        for name, reason in self.failures.items():
            text += f"With {PROPERTY_WORDS[name]} there is no result: {reason.rstrip('.')}. "
        return text + self._conclude()

    def _describe_again(self, repeated_effect: Amount) -> str:
        noun, swept_effect = "gap" if self.question.other_device else "effect", self.question.swept_effect
        shown = _words_of(repeated_effect)
        if self.is_refuted and swept_effect is not None:
            ratio = loosen_units(describe_change(swept_effect.mean))
            return f"{shown}. This is certainly less than half of the {noun} in the sweep, {ratio}."
        text = f"{shown}. The {noun} did not reproduce beyond noise"
        if swept_effect is not None:
            text += f"; with the runs of the sweep it is {_words_of(self.question.with_sweep(self.own_effect))}"
        return f"{text}." if self.is_gone else f"{text}, and its cause cannot be tested."

    def _describe_shown(self) -> str:
        """Say in the sweep's own terms, ratios of throughput, how large an effect (or gap) is in new runs."""
        if self.question.other_device is not None or self.repeated_effect is None:
            return f"{self.tell_effect()}. The gap reproduced"
        return f"{self.question.name_setting()} is {_words_of(self.repeated_effect)}. The effect reproduced"

    def _describe_smaller(self) -> str:
        """Say that an effect which is there is much smaller than it was."""
        if not self.is_smaller or self.repeated_effect is None or self.question.swept_effect is None:
            return ""
        ratio = loosen_units(describe_change(self.question.swept_effect.mean))
        return f", but certainly less than half of that in the sweep, {ratio}"

    def tell_effect(self) -> str:
        """Say how much longer or shorter an operation took on the device itself."""
        amount, question, setting = self.amounts[ITSELF], self.question, self.question.name_setting()
        unit = "per operation" + (", over all clients" if question.clients > 1 else "")
        if question.is_level:
            time = loosen_units(format_micros(amount.mean - question.remainder.mean))
            excess = f"more than on {question.other_device} " if question.other_device else ""
            return f"{setting} took {time} {excess}{unit}"
        if question.other_device is not None:
            fold = format_fold(amount.mean - question.remainder.mean)
            return f"{setting} did {fold} as much as on {question.other_device}, relative to the default"
        more = "more" if amount.mean > 0 else "less"
        return f"{setting} took {loosen_units(format_micros(abs(amount.mean)))} {more} {unit}"

    def _conclude(self) -> str:
        if self.conclusion == "cause":
            return self._name_causes()
        if self.conclusion == "not_the_device":
            gone = share_words(self.whole) if self.whole else ""
            return f"None of the device's properties is the cause: without all of them, {gone} of it is gone."
        if self.conclusion == "not_as_blamed":
            return "Most of it remains: something else is the cause."
        if self.conclusion == "several" and not self.question.blamed:
            return "No single property explains it, but all of them together do."
        if self.conclusion in ("several", "device"):
            which = "" if self.conclusion == "several" else "; these runs cannot tell to which of its properties"
            return f"Most of it is due to the device{which}."
        return self._admit()

    def _name_causes(self) -> str:
        """Say which properties surely make up half or more."""
        alone = [PROPERTY_WORDS[name] for name, share in self.causes if share.is_most]
        if len(alone) > 1:  # what a flush has to store may be what it takes long for
            either = ", and also with ".join(alone)
            return f"Half of it or more disappears with {either}: each of these properties is a cause."
        name, share = self.causes[0]
        part, role = ("most", "the cause") if share.low >= HALF else ("about half or more", "a cause")
        size = f", {share_words(share)}," if len(self.shares) == 1 else ""
        return f"{part.capitalize()} of it{size} disappears with {PROPERTY_WORDS[name]}: this property is {role}."

    def _admit(self) -> str:
        """Say what is known where that is less than the cause."""
        if (everything := self.whole) and everything.is_less_than_half and self.most_of_everything:
            return (
                f"Without any cost of the device, {share_words(everything)} of it is gone, and "
                f"{share_words(self.most_of_everything)} if the path to the modelled device is included: "
                "these runs cannot tell whether the device is the cause."
            )
        if not self.causes or not self.causes[0][1].is_part:
            return "These runs cannot tell what the cause is."
        if self.causes[0][1].is_less_than_half:
            return "That is a part of it, and certainly less than half; the cause of the rest is not known."
        return "That is a large part of it; these runs cannot tell whether it is half or more."


def _end(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _words_of(log_ratio: Amount) -> str:
    return loosen_units(describe_effect(log_ratio.mean, *log_ratio.interval(SIGNIFICANCE)))


def share_words(share: Share) -> str:
    """Return a share with its interval, of a whole: more than all of it disappears only by noise."""
    share = share.of_a_whole
    ends = f"{format_share(share.low)} to {format_share(share.high)}"
    return loosen_units(f"{format_share(share.estimate)} (95 % interval {ends})")
