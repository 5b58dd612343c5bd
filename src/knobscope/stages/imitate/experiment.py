"""Runs replicas of I/O patterns side by side and compares them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from knobscope.stages.characterise.fio import FioFile, FioRefusedError
from knobscope.stages.characterise.progress import Countdown
from knobscope.stages.imitate.pattern import Pattern
from knobscope.stages.imitate.replica import Part, plan_replica
from knobscope.statistics.looks import LOOKS, SIGNIFICANCE
from knobscope.text.formats import describe_effect, loosen_units

#: `operations`: how many operations of the DBMS these requests would do, which takes settings apart that need other
#: numbers of requests for one.
Figure = Literal["written_bytes", "requests", "operations"]

_FEWEST_ROUNDS = 5
_ROUND_S = 1.5  # wished time per window; more rounds are worth more than longer windows
_START_S = 0.5  # fio's own start and end, and the ramp
_SHORTEST_MS = 300


@dataclass(frozen=True)
class Ratio:
    """How many times the figure of one pattern is that of another, with the 95 % interval, whenever one looks."""

    estimate: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        """Return it in words."""
        estimate, low, high = (math.log(value) for value in (self.estimate, self.low, self.high))
        return f"{loosen_units(describe_effect(estimate, low, high, 'more', 'less'))} in {self.rounds} rounds"


def run_replicas(
    replicas: Sequence[tuple[Pattern, Figure]], file: FioFile, part: Part, seconds: float, label: str
) -> Iterator[list[list[float]]]:
    """Yield the figure, per second, of each pattern in each round so far, one list per pattern, at each of three looks.

    Rounds go over all patterns, every other one backwards, so that drift of the machine meets all alike. Those up to
    the first look take `seconds`, and are at least five; a caller whom they answer takes no second look. Raises
    FioRefusedError when fio fails or a window finishes nothing.
    """
    parts = [plan_replica(pattern, file, part) for pattern, _ in replicas]
    windows = sum(len(replica) for replica in parts)
    rounds = max(_FEWEST_ROUNDS, int(seconds / windows / _ROUND_S))
    window_ms = max(_SHORTEST_MS, round(1000 * (seconds / windows / rounds - _START_S)))
    rates: list[list[float]] = [[] for _ in replicas]
    for look in range(LOOKS):
        countdown = Countdown(label if not look else f"{label}, not clear yet", rounds * windows)
        for number in range(rounds):
            for index in list(range(len(replicas)))[:: -1 if number % 2 else 1]:
                slowness = 0.0
                for share, variables in parts[index]:
                    countdown.show("fio")
                    figures = file.run_window("replica", window_ms, variables)
                    slowness += share / _read(figures, *replicas[index], window_ms)
                rates[index].append(1 / slowness)
        yield rates


def _read(figures: dict[str, Any], pattern: Pattern, figure: Figure, window_ms: int) -> float:
    if figure == "written_bytes":
        value = float(figures["write"]["bw_bytes"])
    else:
        value = float(figures["read"]["iops"]) + float(figures["write"]["iops"])
    if value <= 0:
        raise FioRefusedError(f"no request completed within {window_ms} ms")
    return value / pattern.requests_per_operation if figure == "operations" else value


def compare(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio:
    """Return the ratio of two figures that were measured in the same rounds: mean of the log ratios, Student's t."""
    from scipy.special import stdtrit

    logs = [math.log(above / below) for above, below in zip(numerators, denominators, strict=True)]
    count = len(logs)
    mean = sum(logs) / count
    error = math.sqrt(sum((value - mean) ** 2 for value in logs) / (count - 1) / count)
    margin = float(stdtrit(count - 1, 1 - SIGNIFICANCE / 2)) * error
    return Ratio(math.exp(mean), math.exp(mean - margin), math.exp(mean + margin), count)
