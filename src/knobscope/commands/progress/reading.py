"""Reads how far a study is: planned runs from plans, finished ones from blocks, the others from files of measure."""

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from knobscope.document_part import Part
from knobscope.durable_files import DamagedFileError
from knobscope.specs import Case, StudySpecs
from knobscope.stages.measure.progress import BlockState, progress_file, read_progress
from knobscope.stages.plan import effort_of
from knobscope.tables import read_table


class CasePart(Part):
    """How far a case is."""

    case: str = Field(description="DBMS/DEVICE/WORKLOAD.")
    planned: int = Field(description="Runs planned so far; later rounds depend on what earlier ones show.")
    done: int = Field(description="Runs done, those that failed included.")
    failed: int
    blocks: int = Field(description="Blocks planned so far.")
    blocks_done: int
    running: str | None = Field(description="The block that has begun and is not finished.")
    last_run: str | None = Field(description="How the last run of that block ended.")
    left_s: float = Field(description="About how long the planned runs that are not done take.")


class ProgressDocument(Part):
    """What `knobscope progress` writes."""

    study: str
    cases: list[CasePart]
    job: str | None = Field(description="The job that was heard of last; null: nothing has been done yet.")
    silence_s: float | None = Field(description="How long ago that was.")
    report: str | None = Field(description="The finished report; null until the study is finished.")


@dataclass(frozen=True)
class CaseProgress:
    """How far a case is. `planned` counts what is planned so far: later rounds depend on what earlier ones show."""

    case: Case
    planned: int
    done: int
    failed: int
    blocks: int
    blocks_done: int
    running: tuple[str, BlockState] | None  # block, and how far it is
    left_s: float

    def part(self) -> CasePart:
        """Return it as data for JSON."""
        running, state = self.running or (None, None)
        counts = {
            name: getattr(self, name) for name in ("planned", "done", "failed", "blocks", "blocks_done", "left_s")
        }
        return CasePart(case=str(self.case), running=running, last_run=state and state.result, **counts)


@dataclass(frozen=True)
class StudyProgress:
    """How far a study is. `job` is the one that was heard of last, `silence_s` how long ago."""

    cases: list[CaseProgress]
    job: str | None
    silence_s: float | None
    report: Path | None  # if it is there, and nothing was heard since it was written

    def document(self, study: str) -> dict[str, Any]:
        """Return it as data for JSON."""
        report = None if self.report is None else str(self.report)
        cases = [case.part() for case in self.cases]
        of_jobs = {"job": self.job, "silence_s": self.silence_s, "report": report}
        return ProgressDocument(study=study, cases=cases, **of_jobs).model_dump()


@dataclass
class Results:
    """The results of a study; plans and files of blocks that have not changed are read once."""

    specs: StudySpecs
    directory: Path
    _plans: dict[Path, tuple[float, Counter[str]]] = field(default_factory=dict)
    _states: dict[Path, tuple[float, BlockState | None]] = field(default_factory=dict)

    def read(self) -> StudyProgress:
        """Return how far the study is now."""
        cases = [self._read_case(case) for case in self.specs.cases]
        logs = {path: _mtime(path) for path in (self.directory / "logs").rglob("*.log")}
        last = max(logs, key=lambda path: logs[path], default=None)
        report = self.directory / "report.html"
        is_over = last is not None and last.name == "report.log" and report.exists()
        return StudyProgress(
            cases,
            None if last is None else _name_job(last.relative_to(self.directory / "logs")),
            None if last is None else max(0.0, time.time() - logs[last]),
            report if is_over else None,
        )

    def _read_case(self, case: Case) -> CaseProgress:
        folder = self.directory / str(case)
        blocks: Counter[str] = Counter()
        states: dict[str, BlockState] = {}
        for plan in sorted((folder / "plan").glob("*.parquet")):
            runs, since = self._count_runs(plan), _mtime(plan)
            blocks |= runs
            files = {block: progress_file(self.directory, str(case), block) for block in runs}
            states |= {block: state for block, file in files.items() if (state := self._read_state(file, since))}
        finished = {block for block in blocks if (folder / "runs" / block / "runs.parquet").exists()}
        begun = [(block, state) for block, state in states.items() if block not in finished]
        runs_done = sum(blocks[block] for block in finished) + sum(state.done for _, state in begun)
        planned = sum(blocks.values())
        return CaseProgress(
            case=case,
            planned=planned,
            done=runs_done,
            failed=sum(state.failed for state in states.values()),
            blocks=len(blocks),
            blocks_done=len(finished),
            running=begun[-1] if begun else None,
            left_s=effort_of(self.specs, [(case, planned - runs_done)]).seconds,
        )

    def _count_runs(self, plan: Path) -> Counter[str]:
        """Return how many runs each block of a plan has; none of one that is being replaced."""
        written, (cached_mtime, cached_runs) = _mtime(plan), self._plans.get(plan, (None, Counter()))
        if cached_mtime == written:
            return cached_runs
        try:
            blocks = read_table([plan])["block_id"]
        except (DamagedFileError, FileNotFoundError):
            return Counter()
        self._plans[plan] = written, Counter(block.rsplit("/", 1)[1] for block in blocks)
        return self._plans[plan][1]

    def _read_state(self, file: Path, since: float) -> BlockState | None:
        """Return how far a block is; nothing where the file is of a block that an earlier plan had under this name."""
        written, (cached_mtime, cached_state) = _mtime(file), self._states.get(file, (None, None))
        if written < since:
            return None
        if cached_mtime == written:
            return cached_state
        try:
            self._states[file] = written, read_progress(file)
        except FileNotFoundError:
            return None
        return self._states[file][1]


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # Snakemake removes what it is about to make anew
        return 0.0


def _name_job(log: Path) -> str:
    """Return `select-1 of sqlite/here/ycsb-a` for `sqlite/here/ycsb-a/select-1.log`."""
    return f"{log.stem} of {log.parent}" if log.parent.parts else log.stem
