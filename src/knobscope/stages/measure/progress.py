"""What a person sees while a block is measured: runs done, planned, time left, configuration and throughput."""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from knobscope.specs import Value
from knobscope.tables import RunRow

__all__ = ["BlockProgress", "BlockState", "format_seconds", "read_progress"]

#: A line that `BlockProgress.report` prints.
_LINE = re.compile(r".+?  run (?P<done>\d+)/(?P<planned>\d+)  (?P<result>.+)  (?P<changed>.+)  .+ left\n?")
_OK = re.compile(r"[\d,]+ ops/s")
#: A study of all knobs changes dozens in each configuration; a line names so many, or all but one of so many.
_NAMED = 6


@dataclass(frozen=True)
class BlockState:
    """How far a block is: runs done and failed of those planned, and the last one's result and configuration."""

    done: int
    failed: int
    result: str
    changed: str


def read_progress(lines: Iterable[str]) -> BlockState | None:
    """Return what the lines of a block's log tell; None where no run of it has ended yet."""
    found = [match for match in map(_LINE.fullmatch, lines) if match]
    if not found:
        return None
    failed = sum(not _OK.fullmatch(match["result"]) for match in found)
    return BlockState(int(found[-1]["done"]), failed, found[-1]["result"], found[-1]["changed"])


class BlockProgress:
    """Prints a line per run to standard error."""

    def __init__(self, name: str, planned: int, default: Mapping[str, Value]) -> None:
        self.name = name
        self.planned = planned
        self.default = default
        self.done = 0
        self.from_store = 0
        self.seconds: list[float] = []

    def report(self, run: RunRow, configuration: Mapping[str, Value], seconds: float) -> None:
        """Say how a run ended, and how long the rest will take."""
        self.done += 1
        self.seconds.append(seconds)
        changed = [f"{name}={value}" for name, value in configuration.items() if value != self.default.get(name)]
        if len(changed) > _NAMED:
            changed = [*changed[: _NAMED - 1], f"and {len(changed) - _NAMED + 1} knobs more"]
        ok = run["status"] == "ok"
        result = f"{run['throughput_ops']:,.0f} ops/s" if ok else f"{run['status']}: {run['reason']}"
        left = sum(self.seconds) / len(self.seconds) * (self.planned - self.done)
        prefix = f"{self.name}  run {self.done}/{self.planned}"
        self.say(f"{prefix}  {result}  {' '.join(changed) or 'default'}  {format_seconds(left)} left")

    def tell_repeat(self, run: RunRow) -> None:
        """Say that a run is measured again, and why."""
        why = f" ({run['disturbance']})" if run["disturbance"] else ""
        self.say(f"{self.name}  {run['status']}: {run['reason']}; measured again, once{why}")

    def skip(self) -> None:
        """Count a run that the store already had."""
        self.done += 1
        self.from_store += 1

    def finish(self) -> None:
        """Say what was done."""
        self.say(f"{self.name}  {len(self.seconds)} measured now, {self.from_store} from the store")

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)


def format_seconds(seconds: float) -> str:
    """Return a duration as a person says it."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
