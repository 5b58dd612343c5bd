"""The trial of each factor that rules blame: which replicas fio runs, and what has to come out."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from knobscope.stages.characterise.fio import FioFile
from knobscope.stages.detect import most_gain
from knobscope.stages.imitate.experiment import Figure, Ratio, compare, run_replicas
from knobscope.stages.imitate.pattern import (
    Pattern,
    can_take_sizes,
    change_alignment,
    change_parallelism,
    change_sequentiality,
    count_partly_filled,
    take_flushes,
    take_reads,
    take_sizes,
    write_whole_units,
)
from knobscope.stages.imitate.replica import Part
from knobscope.stages.imitate.verdict import (
    Answer,
    Comparison,
    PartlyFilled,
    all_hold,
    deny,
    gain_of_dbms,
    is_worthwhile,
    loses_nothing,
    may_be_io,
)
from knobscope.text.formats import format_fold, format_micros, format_number, format_share, format_size, loosen_units

Replica = tuple[Pattern, Figure]
Figures = list[list[float]]  # of each replica, in each round

#: Ratio of counts per second that neither noise nor operations which take longer bring about.
_CLEARLY_MORE = 1.25
#: Ratio of counts per operation below which to exchange them changes next to nothing.
_MORE = 1.05


@dataclass(frozen=True)
class Setting:
    """What a finding compares: the I/O of the slower setting, that of the faster one, and how much faster it was.

    `other_pattern` is None where the finding is about one configuration (`other_name` is empty then), or the faster one
    did no I/O at all. `measured` is a ratio of throughput, 1 where nothing was compared. `busy_share`: of the time, the
    device was busy with the slower one. `clients` of the workload; None where nobody knows. `waited_share`: of their
    time, clients wait for reads and writes, at most; None where waits were not watched. `is_timed`: clients were seen
    waiting for what the finding blames.
    """

    name: str
    pattern: Pattern
    other_name: str
    other_pattern: Pattern | None
    measured: float
    busy_share: float
    clients: int | None = None
    waited_share: float | None = None
    is_timed: bool = False

    @property
    def is_seldom_waited(self) -> bool:
        """Whether clients wait for less than the device is busy."""
        return self.waited_share is not None and self.waited_share < self.busy_share

    def may_share(self, count: Callable[[Pattern], float]) -> bool:
        """Whether slower operations alone may be why the slower setting has a higher count per operation.

        Clients that wait for a flush share it, and the slower the operations are, the fewer of them share one: flushes
        per operation rise, flushes per second do not.
        """
        if self.clients == 1 or self.other_pattern is None:
            return False
        slower, faster = self._count_per_operation(count, self.other_pattern)
        return slower / self.measured < _CLEARLY_MORE * faster

    def has_more(self, count: Callable[[Pattern], float]) -> bool:
        """Whether the slower setting has a higher count per operation, which is what a replica can exchange."""
        if self.other_pattern is None:
            return True
        slower, faster = self._count_per_operation(count, self.other_pattern)
        return slower >= _MORE * faster

    def _count_per_operation(self, count: Callable[[Pattern], float], other: Pattern) -> tuple[float, float]:
        return count(self.pattern) / self.pattern.operations, count(other) / other.operations


@dataclass(frozen=True)
class Stand:
    """Where replicas run, and for how long until one looks at what they show."""

    file: FioFile
    part: Part
    preferred_bytes: int
    seconds: float
    label: str


@dataclass(frozen=True)
class Outcome:
    """Whether the cause is confirmed (None: cannot be determined), and what was seen, as whole sentences.

    `obstacle` is why it cannot be determined, where more rounds would not help; `most_gain`, how many times as fast the
    DBMS gets at most without the cause, where the trial measures that.
    """

    is_borne_out: Answer
    sentences: str
    obstacle: str | None = None
    most_gain: float | None = None


def try_cause(factor: str, setting: Setting, stand: Stand) -> Outcome:
    """Return whether a factor is the cause, as soon as the replicas of its trial tell; at the last look if they do not.

    `factor` is that of `cause: {factor: ...}` in `rule.yaml`. Raises FioRefusedError when fio fails.
    """
    trial = plan_trial(factor, setting, stand.preferred_bytes)
    looks = run_replicas(trial.replicas, stand.file, stand.part, stand.seconds, stand.label)
    outcomes = (trial.judge(figures) for figures in looks)
    for outcome in outcomes:
        if outcome.is_borne_out is not None or outcome.obstacle is not None:
            break
    return outcome


@dataclass(frozen=True)
class Trial:
    """The replicas that a factor's trial compares, and what their figures say."""

    replicas: list[Replica]
    judge: Callable[[Figures], Outcome]


def _try_sizes(setting: Setting, unit: int) -> Trial:
    across, aligned = change_alignment(setting.pattern, unit)
    exchanged, change = _exchange_sizes(setting, unit)

    def judge(figures: Figures) -> Outcome:
        limits = compare(figures[1], figures[0])
        size = loosen_units(format_size(unit))
        text = f"Writes of {size} that begin at multiples of {size}, compared with equal ones in between: {limits}."
        comparison, comparison_text = _compare(setting, figures[2:], change)
        cost = _cost_of_units(setting, unit, limits, figures)
        if not cost.may_be_most:
            text += f" {_tell_cost(cost)}"
        claims = [is_worthwhile(limits), cost.may_be_most, comparison.is_reproduced, comparison.is_due_to_exchanged]
        outcome = _within_busy_time(setting, claims, f"{comparison_text} {text}")
        is_shared = setting.may_share(lambda pattern: count_partly_filled(pattern, unit) * pattern.operations)
        return _cannot_refute(setting, outcome, "writes") if is_shared and outcome.is_borne_out else outcome

    sides: list[Replica] = [(across, "written_bytes"), (aligned, "written_bytes")]
    return Trial([*sides, *_both(setting), (exchanged, "operations")], judge)


def _tell_cost(cost: PartlyFilled) -> str:
    most, difference = (loosen_units(format_micros(seconds * 1e6)) for seconds in (cost.most_s, cost.difference_s))
    return f"So units that are filled only in part cost at most {most} of the difference of {difference} per operation."


def _cost_of_units(setting: Setting, unit: int, limits: Ratio, figures: Figures) -> PartlyFilled:
    """Return what partly filled units can cost, from bytes per second of whole writes and operations per second."""
    seconds = [fmean(1 / figure for figure in rounds) for rounds in figures]
    faster = seconds[3] if setting.other_pattern is not None else seconds[2] / setting.measured
    units = count_partly_filled(setting.pattern, unit)
    return PartlyFilled(limits, unit * seconds[1], units, seconds[2] - faster)


def _exchange_sizes(setting: Setting, unit: int) -> tuple[Pattern, str]:
    """Return the slower setting's I/O in other sizes, and what changes, in words.

    They are those of the faster one, so that as many bytes are another number of writes. Where these fill no more units
    whole, or so few writes could not be followed by as many flushes, it is as many writes that fill whole units: no
    flush may go away with the size.
    """
    pattern, other_pattern = setting.pattern, setting.other_pattern
    if other_pattern is None or not can_take_sizes(pattern, other_pattern, unit):
        return write_whole_units(
            pattern, unit
        ), f"as many writes and flushes, in whole {loosen_units(format_size(unit))},"
    exchanged = take_sizes(pattern, other_pattern)
    more = (exchanged.writes / exchanged.operations) / (pattern.writes / pattern.operations)
    sizes = f"as many bytes in writes of the sizes of {setting.other_name}"
    return exchanged, f"{sizes} ({format_number(more)} times as many writes)"


def _try_flushes(setting: Setting, _: int) -> Trial:
    def judge(figures: Figures) -> Outcome:
        comparison, text = _compare(setting, figures, f"as few flushes as {setting.other_name}")
        outcome = _within_busy_time(setting, [comparison.is_reproduced, comparison.is_due_to_exchanged], text)
        if outcome.is_borne_out is False and not setting.has_more(_count_flushes):
            obstacle = (
                f"fio cannot test this: {setting.name} hardly flushes more often per operation than "
                f"{setting.other_name}, so its clients wait longer for each flush, or for those of others"
            )
            return Outcome(None, text, obstacle)
        is_shared = setting.may_share(_count_flushes)
        return _cannot_refute(setting, outcome, "flushes") if is_shared and outcome.is_borne_out else outcome

    return Trial([*_both(setting), (take_flushes(setting.pattern, setting.other_pattern), "operations")], judge)


def _try_reads(setting: Setting, _: int) -> Trial:
    if setting.other_pattern is None:
        raise ValueError("a faster setting without I/O has no reads to be taken over")
    exchanged = take_reads(setting.pattern, setting.other_pattern)

    # Nothing here corresponds to `may_share`: a client waits for its own reads, while commits share flushes. Reads of
    # the background, whose number per operation rises with any slowdown, are excluded by the rule: clients were seen
    # waiting for reads, or there are more per second, or the device gives all that it can. In that last case reads per
    # second stay the same although they are the cause, so a test of their rate would discard what is true.
    def judge(figures: Figures) -> Outcome:
        comparison, text = _compare(setting, figures, f"the reads of {setting.other_name}")
        return _within_busy_time(setting, [comparison.is_reproduced, comparison.is_due_to_exchanged], text)

    return Trial([*_both(setting), (exchanged, "operations")], judge)


def _try_order(setting: Setting, _: int) -> Trial:
    def judge(figures: Figures) -> Outcome:
        random = compare(figures[-1], figures[0])
        order_text = f"The I/O of {setting.name} at random offsets: {random}."
        if setting.other_pattern is None:
            why = f"{setting.other_name} sends no request to this device, so the order of I/O is not the reason."
            return Outcome(False, f"{order_text} {why}")
        comparison = Comparison(setting.measured, compare(figures[1], figures[0]))
        text = f"The I/O of {setting.other_name}, repeated: {comparison.replayed}. {order_text}"
        harmless, reproduced = loses_nothing(random), comparison.is_reproduced
        outcome = Outcome(all_hold([harmless, deny(reproduced)]), text)
        is_shared = setting.may_share(_count_flushes) and reproduced and harmless is not False
        return _cannot_refute(setting, outcome, "flushes") if is_shared else outcome

    return Trial([*_both(setting), (change_sequentiality(setting.pattern), "operations")], judge)


def _try_parallelism(setting: Setting, _: int) -> Trial:
    def judge(figures: Figures) -> Outcome:
        ratio = compare(figures[1], figures[0])
        share = setting.waited_share if setting.is_seldom_waited else setting.busy_share
        gain = gain_of_dbms(ratio, share or 0.0)
        text = f"With 32 requests in flight from 8 submitters, requests per second: {ratio}."
        sentences = f"{text} {_tell_waited(setting)}, so that is worth at most {gain}."
        return Outcome(is_worthwhile(gain), sentences, most_gain=gain.estimate)

    return Trial([(setting.pattern, "requests"), (change_parallelism(setting.pattern), "requests")], judge)


def _within_busy_time(setting: Setting, claims: list[Answer], sentences: str) -> Outcome:
    """Return what claims about the difference of two settings come to.

    Where nobody saw clients wait, and the device is idle for most of what they take longer, replicas confirm nothing:
    they do nothing but I/O.
    """
    answer = all_hold(claims)
    if answer is False or setting.is_timed or may_be_io(setting.measured, setting.busy_share):
        return Outcome(answer, sentences)
    most, measured = (format_fold(math.log(ratio)) for ratio in (most_gain(setting.busy_share), setting.measured))
    told = _tell_busy(setting)
    obstacle = f"{told[0].lower()}{told[1:]}; without that time the DBMS would be {most} as fast, and "
    return Outcome(None, sentences, f"{obstacle}{setting.other_name} is {measured} as fast")


def _count_flushes(pattern: Pattern) -> float:
    return pattern.flushes


def _cannot_refute(setting: Setting, outcome: Outcome, shared: str) -> Outcome:
    """Return that replicas reproduce a difference because they repeat counts that may be its consequence."""
    clients = "its clients" if setting.clients is None else f"the {setting.clients} clients"
    obstacle = (
        f"fio cannot refute this: commits of {clients} can share {shared}, and those of the replica do not. "
        f"{setting.name} has hardly more {shared} per second than {setting.other_name}, so slower operations alone may "
        "be why it has more per operation"
    )
    return Outcome(None, outcome.sentences, obstacle)


def _tell_busy(setting: Setting) -> str:
    return loosen_units(
        f"In the runs of the study, the device is busy for {format_share(setting.busy_share)} of the time"
    )


def _tell_waited(setting: Setting) -> str:
    if not setting.is_seldom_waited:
        return _tell_busy(setting)
    waited = loosen_units(format_share(setting.waited_share))
    return f"In the runs of the study, clients wait for reads and writes for at most {waited} of their time"


def _both(setting: Setting) -> list[Replica]:
    patterns = [setting.pattern, *([setting.other_pattern] if setting.other_pattern else [])]
    return [(pattern, "operations") for pattern in patterns]


def _compare(setting: Setting, figures: Figures, change: str) -> tuple[Comparison, str]:
    """Return what replicas of the slower setting, of the faster one (if it does I/O) and of the exchange showed."""
    replayed: Ratio | None = compare(figures[1], figures[0]) if setting.other_pattern else None
    comparison = Comparison(setting.measured, replayed, compare(figures[-1], figures[0]))
    if replayed is None:
        text = f"{setting.other_name} sends no request to this device."
    else:
        text = f"Operations per second with the I/O of {setting.other_name}: {replayed}"
        measured = format_number(setting.measured)
        text += "." if comparison.is_reproduced else f", where the DBMS did {measured} times as many."
    return comparison, f"{text} Operations per second with {change} and nothing else changed: {comparison.exchanged}."


#: Names are those of `cause: {factor: ...}` in `rule.yaml`.
_TRIALS: dict[str, Callable[[Setting, int], Trial]] = {
    "write_size": _try_sizes,
    "flush": _try_flushes,
    "reads": _try_reads,
    "parallelism": _try_parallelism,
    "sequentiality": _try_order,
}


def plan_trial(factor: str, setting: Setting, unit: int) -> Trial:
    """Return the trial of a factor, on a device that has this write unit."""
    return _TRIALS[factor](setting, unit)
