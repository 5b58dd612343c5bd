"""How far a block is: a line per run on standard error for people, and one in a file for `knobscope progress`."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knobscope.durable_files import blame_content, create_file
from knobscope.specs import Value
from knobscope.tables import RunRow
from knobscope.text.formats import format_rate, format_seconds, format_share, loosen_units
from knobscope.watch.other_programs import NOTICEABLE_SHARE

#: A study of all knobs changes dozens in each configuration; a line names so many, or all but one of so many.
_NAMED = 6
_KEPT = ("run_id", "status", "reason", "throughput_ops", "other_cpu_share", "other_programs")


@dataclass(frozen=True)
class BlockState:
    """How far a block is: runs done and failed, and the last one's result and configuration."""

    done: int
    failed: int
    result: str
    changed: str


def progress_file(results: Path, case: str, block: str) -> Path:
    """Return the file of a block below the results of its study: a line of JSON for each run that is done."""
    return results / "logs" / case / f"measure-{block}.jsonl"


def read_progress(file: Path) -> BlockState | None:
    """Return what a block's file says; None where no run of it has ended yet.

    A last line that is still being written, or that a kill has truncated, is ignored. UserError: the file is damaged.
    FileNotFoundError: there is none.
    """
    *lines, _ = file.read_bytes().split(b"\n")
    with blame_content(file, expected="a file that `knobscope measure` wrote"):
        runs: list[dict[str, Any]] = [json.loads(line) for line in lines]
        if not runs:
            return None
        failed = sum(run["status"] != "ok" for run in runs)
        return BlockState(len(runs), failed, _describe_result(runs[-1]), _describe_change(runs[-1]["changed"]))


class BlockProgress:
    """Prints a line per run to standard error, and keeps `file`, where there is one, for `knobscope progress`."""

    def __init__(self, name: str, planned: int, default: Mapping[str, Value], file: Path | None = None) -> None:
        self.name = name
        self.planned = planned
        self.default = default
        self.file = file
        self.done = 0
        self.from_store = 0
        self._has_told_of_others = False
        self.seconds: list[float] = []

    def report(self, run: RunRow, configuration: Mapping[str, Value], seconds: float) -> None:
        """Say how a run ended, and how long the rest will take."""
        entry = self._record(run, configuration)
        self.seconds.append(seconds)
        remaining_s = sum(self.seconds) / len(self.seconds) * (self.planned - self.done)
        prefix = f"{self.name}  run {self.done}/{self.planned}"
        changed = _describe_change(entry["changed"])
        self.say(f"{prefix}  {_describe_result(entry)}  {changed}  {loosen_units(format_seconds(remaining_s))} left")
        if run.get("other_measurements") and not self._has_told_of_others:
            self._has_told_of_others = True
            self.say(f"{self.name}  another process of knobscope is measuring on this machine: each may slow the other")

    def skip(self, run: RunRow, configuration: Mapping[str, Value]) -> None:
        """Count a run that the store already had."""
        self._record(run, configuration)
        self.from_store += 1

    def _record(self, run: RunRow, configuration: Mapping[str, Value]) -> dict[str, Any]:
        """Count a run that is done; the first one replaces what an earlier call has left in the file."""
        changed = {name: value for name, value in configuration.items() if value != self.default.get(name)}
        entry = {key: run.get(key) for key in _KEPT} | {"changed": changed}
        if self.file is not None:
            if not self.done:
                os.close(create_file(self.file))
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        self.done += 1
        return entry

    def tell_repeat(self, run: RunRow) -> None:
        """Say that a run is measured again, and why."""
        why = f" ({run['disturbance']})" if run["disturbance"] else ""
        self.say(f"{self.name}  {run['status']}: {run['reason']}; measured again, once{why}")

    def finish(self) -> None:
        """Say what was done."""
        self.say(f"{self.name}  {len(self.seconds)} measured now, {self.from_store} from the store")

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)


def _describe_result(run: Mapping[str, Any]) -> str:
    ok = run["status"] == "ok"
    result = format_rate(run["throughput_ops"]) if ok else f"{run['status']}: {run['reason']}"
    others = run.get("other_cpu_share") or 0.0
    if ok and others >= NOTICEABLE_SHARE:
        result += f" (other programs took {format_share(others)} of the processors: {run['other_programs']})"
    return loosen_units(result) if ok else result


def _describe_change(changed: Mapping[str, Value]) -> str:
    changes = [f"{name}={value}" for name, value in changed.items()]
    if len(changes) > _NAMED:
        changes = [*changes[: _NAMED - 1], f"and {len(changes) - _NAMED + 1} knobs more"]
    return " ".join(changes) or "default"
