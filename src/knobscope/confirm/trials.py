"""The trial of each factor that rules blame: which replicas fio runs, and what has to come out."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from knobscope.characterise.fio import FioFile
from knobscope.confirm.experiment import Figure, Ratio, compare, measure_replicas
from knobscope.confirm.pattern import (
    Pattern,
    can_take_sizes,
    change_alignment,
    change_parallelism,
    change_sequentiality,
    count_partly_filled,
    take_flushes,
    take_sizes,
    write_whole_units,
)
from knobscope.confirm.replica import Part
from knobscope.confirm.verdict import Answer, Comparison, PartlyFilled, all_hold, deny, is_worthwhile, loses_nothing
from knobscope.formats import format_micros, format_number, format_size, loosen_units

__all__ = ["TRIALS", "Outcome", "Setting", "Stand"]

Replica = tuple[Pattern, Figure]


@dataclass(frozen=True)
class Setting:
    """What a finding compares: the I/O of the slower setting, that of the faster one, and how much faster it was.

    `other` is None where the finding is about one configuration (`other_name` is empty then), or the faster one did no
    I/O at all. `measured` is a ratio of throughput, 1 where nothing was compared.
    """

    name: str
    pattern: Pattern
    other_name: str
    other: Pattern | None
    measured: float


@dataclass(frozen=True)
class Stand:
    """Where replicas run, and for how long."""

    file: FioFile
    part: Part
    preferred_bytes: int
    seconds: float
    label: str

    def measure(self, *replicas: Replica) -> list[list[float]]:
        """Return the figures of each in each round."""
        return measure_replicas(replicas, self.file, self.part, self.seconds, self.label)


@dataclass(frozen=True)
class Outcome:
    """Whether the cause is borne out (None: cannot be told), and what was seen, as whole sentences."""

    is_borne_out: Answer
    words: str


def _try_sizes(setting: Setting, stand: Stand) -> Outcome:
    across, aligned = change_alignment(setting.pattern, stand.preferred_bytes)
    exchanged, change = _exchange_sizes(setting, stand.preferred_bytes)
    found = stand.measure(
        (across, "written_bytes"), (aligned, "written_bytes"), *_both(setting), (exchanged, "operations")
    )
    limits = compare(found[1], found[0])
    size = loosen_units(format_size(stand.preferred_bytes))
    words = f"Writes of {size} that begin at multiples of {size}, against equal ones that begin between: {limits}."
    comparison, told = _compare(setting, found[2:], change)
    cost = _cost_of_units(setting, stand.preferred_bytes, limits, found)
    if not cost.may_be_most:
        most, difference = (loosen_units(format_micros(seconds * 1e6)) for seconds in (cost.most_s, cost.difference_s))
        words += f" So units that are filled in part cost {most} per operation at most, of {difference} of difference."
    claims = [is_worthwhile(limits), cost.may_be_most, comparison.is_reproduced, comparison.is_due_to_exchanged]
    return Outcome(all_hold(claims), f"{told} {words}")


def _cost_of_units(setting: Setting, unit: int, limits: Ratio, found: list[list[float]]) -> PartlyFilled:
    """Return what partly filled units can cost, from bytes per second of whole writes and operations per second."""
    seconds = [fmean(1 / figure for figure in figures) for figures in found]
    faster = seconds[3] if setting.other is not None else seconds[2] / setting.measured
    units = count_partly_filled(setting.pattern, unit)
    return PartlyFilled(limits, unit * seconds[1], units, seconds[2] - faster)


def _exchange_sizes(setting: Setting, unit: int) -> tuple[Pattern, str]:
    """Return the slower setting's I/O in other sizes, and what changes, in words.

    They are those of the faster one, so that as many bytes are another number of writes. Where these fill no more units
    whole, or so few writes could not be followed by as many flushes, it is as many writes that fill whole units: no
    flush may go away with the size.
    """
    pattern, other = setting.pattern, setting.other
    if other is None or not can_take_sizes(pattern, other, unit):
        return write_whole_units(
            pattern, unit
        ), f"as many writes and flushes, in whole {loosen_units(format_size(unit))},"
    exchanged = take_sizes(pattern, other)
    more = (exchanged.writes / exchanged.operations) / (pattern.writes / pattern.operations)
    sizes = f"as many bytes in writes of the sizes of {setting.other_name}"
    return exchanged, f"{sizes} ({format_number(more)} times as many writes)"


def _try_flushes(setting: Setting, stand: Stand) -> Outcome:
    exchanged = take_flushes(setting.pattern, setting.other)
    found = stand.measure(*_both(setting), (exchanged, "operations"))
    comparison, told = _compare(setting, found, f"as few flushes as {setting.other_name}")
    return Outcome(all_hold([comparison.is_reproduced, comparison.is_due_to_exchanged]), told)


def _try_order(setting: Setting, stand: Stand) -> Outcome:
    found = stand.measure(*_both(setting), (change_sequentiality(setting.pattern), "operations"))
    random = compare(found[-1], found[0])
    words = f"The I/O of {setting.name} at random offsets: {random}."
    if setting.other is None:
        return Outcome(False, f"{words} {setting.other_name} does no I/O at all, which is no matter of its order.")
    comparison = Comparison(setting.measured, compare(found[1], found[0]))
    told = f"The I/O of {setting.other_name}, repeated: {comparison.replayed}. {words}"
    return Outcome(all_hold([loses_nothing(random), deny(comparison.is_reproduced)]), told)


def _try_parallelism(setting: Setting, stand: Stand) -> Outcome:
    found = stand.measure((setting.pattern, "requests"), (change_parallelism(setting.pattern), "requests"))
    ratio = compare(found[1], found[0])
    return Outcome(is_worthwhile(ratio), f"With 32 requests in flight from 8 submitters, requests per second: {ratio}.")


def _both(setting: Setting) -> list[Replica]:
    both = [setting.pattern, *([setting.other] if setting.other else [])]
    return [(pattern, "operations") for pattern in both]


def _compare(setting: Setting, found: list[list[float]], change: str) -> tuple[Comparison, str]:
    """Return what replicas of the slower setting, of the faster one (if it does I/O) and of the exchange showed."""
    replayed: Ratio | None = compare(found[1], found[0]) if setting.other else None
    comparison = Comparison(setting.measured, replayed, compare(found[-1], found[0]))
    if replayed is None:
        told = f"{setting.other_name} does no I/O."
    else:
        told = f"Operations per second with the I/O of {setting.other_name}: {replayed}"
        told += "." if comparison.is_reproduced else f", where the DBMS did {setting.measured:.2g} times as many."
    return comparison, f"{told} With {change} and nothing else changed: {comparison.exchanged}."


#: Names are those of `cause: {factor: ...}` in `rule.yaml`.
TRIALS: dict[str, Callable[[Setting, Stand], Outcome]] = {
    "write_size": _try_sizes,
    "flush": _try_flushes,
    "parallelism": _try_parallelism,
    "sequentiality": _try_order,
}
