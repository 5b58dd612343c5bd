"""What the slower of two configurations would gain on a device that differs, or with a layer above the drive."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from knobscope.specs import Value
from knobscope.specs.models.quantity import Size
from knobscope.stages.remeasure.pairs import list_usable, log_throughput
from knobscope.stages.remeasure.properties import LAYERS, MERGED
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import Amount, amount_of
from knobscope.tables import WhatIfRow, WhatIfRunRow
from knobscope.text.formats import describe_effect, format_size, loosen_units

_FEWEST_RUNS = 3


@dataclass(frozen=True)
class Gain:
    """The natural-log ratio of a configuration's throughput on another device to that on the device itself.

    `configuration` is what gains. `written_per_flush` are bytes on the device itself; None where nobody watched.
    """

    setting: str
    configuration: Mapping[str, Value]
    log_ratio: Amount
    written_per_flush: float | None

    def columns(self) -> WhatIfRow:
        """Return its columns of table `what_ifs`."""
        low, high = self.log_ratio.interval()
        return {"gain": self.log_ratio.mean, "gain_low": low, "gain_high": high}

    def describe(self, name: str, change: str) -> str:
        """Say what a layer would gain; nothing of other devices, and where nothing is surely gained.

        `change` are the parameters of the device that differ, as JSON.
        """
        low, high = self.log_ratio.interval()
        if name not in LAYERS or low <= 0:
            return ""
        if name == MERGED:
            size = format_size(Size(json.loads(change)["merge"]).bytes)
            now = self.written_per_flush  # flushes are unequal: sparing the small ones gains more than this suggests
            average = "" if now is None else f" ({format_size(now)} per flush on average now)"
            layer = f"a flush only when {size} have been written{average}"
        else:
            layer = "its requests spread over queues"
        effect = describe_effect(self.log_ratio.mean, low, high)
        return loosen_units(f"With {layer}, {self.setting} would be {effect}.")


def find_gain(question: Question, own: Sequence[WhatIfRunRow], other: Sequence[WhatIfRunRow]) -> Gain | None:
    """Return what another device gains for the slower configuration of a question; None with too few runs.

    `own` are the runs on the device itself. Of a level it is the configuration that is asked about.
    """
    sides = {side: [row for row in list_usable(own) if row["is_reference"] == side] for side in (False, True)}
    if question.is_level:
        is_reference = question.is_default
    elif not all(sides.values()):
        return None
    else:
        is_reference = fmean(map(log_throughput, sides[True])) < fmean(map(log_throughput, sides[False]))
    rows = [row for row in list_usable(other) if row["is_reference"] == is_reference]
    if min(len(rows), len(sides[is_reference])) < _FEWEST_RUNS:
        return None
    ratio, before = (amount_of([log_throughput(row) for row in of]) for of in (rows, sides[is_reference]))
    written = [size for row in sides[is_reference] if (size := row.get("written_per_flush")) is not None]
    return Gain(
        question.name_setting(of_reference=is_reference),
        question.reference if is_reference else question.configuration,
        ratio.minus(before),
        fmean(written) if written else None,
    )
