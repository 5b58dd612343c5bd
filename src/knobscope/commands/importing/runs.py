"""Reads a table of runs and the tables next to it: every row is one run.

A run changes one knob or none (columns `knob` and `value`), or has a value of every knob, in a column of its own: the
latter are *designed* tables, such as screening samples.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from knobscope.cells import Problems, read_text_table
from knobscope.commands.importing.cells import Line, read_cells
from knobscope.commands.importing.columns import CASE_COLUMNS, KNOB_COLUMNS, RUN_COLUMNS, side_columns
from knobscope.commands.importing.layout import Layout
from knobscope.commands.importing.sessions import SESSION, name_sessions
from knobscope.specs import Case
from knobscope.specs.models.device import Tier
from knobscope.specs.models.knob import Mechanism
from knobscope.specs.reading.base import check_name, suggest
from knobscope.tables import NO_BLOCK

STATUSES = ("ok", "failed_start", "failed_run", "rejected_value", "timeout", "invalid")
#: Columns that may be below zero: a clock that is behind, and throughput that fell over the window.
_SIGNED = ("client_clock_offset_us", "client_clock_change_us", "window_change")
_WORDS: dict[str, tuple[str, ...]] = {
    "tier": get_args(Tier),
    "status": STATUSES,
    "expect": ("faster", "slower", "none"),
    "mechanism": get_args(Mechanism),
    "monitor": ("bpf", "procfs"),
    "workload_class": ("read", "write"),
}
_KNOB = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]{0,80}$")
_KNOB_NAME = "a name of letters, digits, '_', '.' and '-'"


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One run of the table."""

    name: str  # from column `run`, or made of block and position
    case: Case
    block: str
    position: int
    repeat: int
    settings: Mapping[str, str]  # knob -> value that the row has; nothing: the default configuration
    session: str
    line: Line


@dataclass(frozen=True)
class ImportedTable:
    """Everything that was read: runs, facts of knobs and cases, and the rows of side tables."""

    runs: list[ImportedRun]
    knob_facts: dict[tuple[str, str], dict[str, Any]]  # (dbms, knob) -> column -> value
    case_facts: dict[tuple[str, str], dict[str, Any]]  # (dbms | device | workload, its name) -> column -> value
    side: dict[str, list[dict[str, Any]]]
    path: Path
    is_designed: bool = False


def read_runs(
    path: Path, side: Mapping[str, Path], decimal: str | None, layout: Layout, problems: Problems
) -> ImportedTable:
    """Read a table of runs, and side tables by name; what is wrong in any of the files goes to `problems`, by line.

    UserError with all of them where rows or columns are missing, so that nothing else can be said of the runs.
    """
    lines, header, knobs = _read_lines(path, layout, problems, decimal)
    if set(layout.required(knobs)) <= set(header):
        _check_cells(path, lines, knobs, problems)
        _check_block_names(path, lines, problems)
    usable = [line for line in lines if all(line[name] for name in ("dbms", "device", "workload"))]
    runs = _number_runs(usable, knobs)
    _check_names(path, runs, problems)
    if not knobs:
        _check_blocks(path, runs, problems)
    _check_repeats(path, runs, problems)
    knob_facts = _facts(path, _knob_lines(runs), tuple(KNOB_COLUMNS), problems) if not knobs else {}
    varied = dict.fromkeys((run.case.dbms, knob) for run in runs for knob in run.settings)
    names = sorted({knob for _, knob in varied})
    for knob in layout.baseline:
        if names and knob not in names:
            problems.add_column(path, knob, "no such knob", f"--baseline of {suggest(knob, names)}")
    for dbms, knob in varied:
        if knob in layout.baseline:
            knob_facts.setdefault((dbms, knob), {})["baseline"] = layout.baseline[knob]
    case_facts = _facts(path, _case_lines(runs), _CASE_FACTS, problems)
    tables = {name: _read_side(name, file, runs, "run" in header, problems, decimal) for name, file in side.items()}
    if not runs or not set(layout.required(knobs)) <= set(header):
        problems.raise_if_any()
    return ImportedTable(runs, knob_facts, case_facts, tables, path, bool(knobs))


def _read_lines(
    path: Path, layout: Layout, problems: Problems, decimal: str | None
) -> tuple[list[Line], list[str], list[str]]:
    """Return the lines of the table of runs, its columns, and those that are knobs."""
    table = read_text_table(path, problems)
    if table is not None and not len(table):
        problems.add_column(path, "", "a header and no rows", "one row per run")
    if table is None or not len(table):
        return [], [], []
    table, knobs = layout.apply(table, problems)
    columns = {**RUN_COLUMNS, **CASE_COLUMNS, **({} if knobs else KNOB_COLUMNS), **dict.fromkeys(knobs, "VARCHAR")}
    return *read_cells(table, columns, layout.required(knobs), problems, decimal), knobs


def _check_cells(path: Path, lines: Sequence[Line], knobs: Sequence[str], problems: Problems) -> None:
    for knob in knobs:
        if not _KNOB.match(knob):
            problems.add_column(path, knob, "a column that would be a knob", f"{_KNOB_NAME}, or --ignore")
    for line in lines:
        for name in ("dbms", "device", "tier", "workload", *knobs):
            if line[name] is None:
                problems.add(path, line.number, name, "nothing", "a value in every row")
        for name in ("dbms", "device", "workload"):
            if line[name] is not None and (expected := _name_problem(line[name])) is not None:
                problems.add(path, line.number, name, repr(line[name]), expected)
        for name, choices in _WORDS.items():
            if line[name] is not None and line[name] not in choices and name not in knobs:
                problems.add(path, line.number, name, repr(line[name]), f"one of {', '.join(choices)}")
        if not knobs:
            _check_change(path, line, problems)
        _check_metrics(path, line, problems)


def _check_change(path: Path, line: Line, problems: Problems) -> None:
    """Note what is wrong with the one knob that a row changes."""
    if (line["knob"] is None) != (line["value"] is None):
        present, missing = ("knob", "value") if line["value"] is None else ("value", "knob")
        problems.add(path, line.number, missing, f"nothing next to {present} {line[present]!r}", "both, or neither")
    if line["knob"] is not None and not _KNOB.match(line["knob"]):
        problems.add(path, line.number, "knob", repr(line["knob"]), _KNOB_NAME)
    if line["knob"] is None:
        for name in KNOB_COLUMNS:
            if line[name] is not None:
                problems.add(path, line.number, name, repr(line[name]), "nothing in a run without a knob")


def _check_block_names(path: Path, lines: Sequence[Line], problems: Problems) -> None:
    """Note rows without a block where others have one."""
    if any(line["block"] is not None for line in lines):
        for line in lines:
            if line["block"] is None:
                problems.add(path, line.number, "block", "nothing", "a value in every row, or in none")


def _check_metrics(path: Path, line: Line, problems: Problems) -> None:
    ok = line["status"] == "ok" or (line["status"] is None and line["failure"] is None)
    if ok and line["throughput_ops"] is None and not problems.has(path, line.number, "throughput_ops"):
        problems.add(path, line.number, "throughput_ops", "nothing", "a number above 0, or a `status` of failure")
    for name, value in line.cells.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if name == "throughput_ops" and is_number and ok and value <= 0:
            problems.add(path, line.number, name, f"{value:g}", "a number above 0, or a `status` of failure")
        elif is_number and value < 0 and name not in _SIGNED:
            problems.add(path, line.number, name, f"{value:g}", "a number from 0 on")


def _name_problem(text: str) -> str | None:
    try:
        check_name(text)
    except ValueError as error:
        return str(error)
    return None


def _number_runs(lines: Sequence[Line], knobs: Sequence[str]) -> list[ImportedRun]:
    """Give every line its position in its block, its repeat, a name and a session."""
    if all(line["started_at"] is not None for line in lines):
        lines = sorted(lines, key=lambda line: str(line["started_at"]))
    series: dict[tuple[Case, str], list[tuple[int, Line]]] = defaultdict(list)
    for line in lines:
        block = series[Case(line["dbms"], line["device"], line["workload"]), line["block"] or NO_BLOCK]
        block.append((len(block) if line["position"] is None else line["position"], line))
    return [run for (case, block), placed in series.items() for run in _runs_of_block(case, block, placed, knobs)]


def _runs_of_block(
    case: Case, block: str, placed: Sequence[tuple[int, Line]], knobs: Sequence[str]
) -> Iterator[ImportedRun]:
    is_timed = all(line["started_at"] is not None for _, line in placed)
    ordered = sorted(placed, key=lambda run: str(run[1]["started_at"]) if is_timed else run[0])
    settings = [_read_settings(line, knobs) for _, line in ordered]
    values = [tuple(of_run.items()) or None for of_run in settings]
    # The order of a designed table says nothing of its days: most of its configurations are measured once.
    is_whole = block != NO_BLOCK or bool(knobs)
    sessions = name_sessions(values, [line["started_at"] for _, line in ordered], is_whole)
    repeats: dict[Any, int] = defaultdict(int)
    for (position, line), of_run, value, session in zip(ordered, settings, values, sessions, strict=True):
        repeat = repeats[value] if line["repeat"] is None else line["repeat"]
        repeats[value] += 1
        name = line["run"] or f"{case}/{block}/{position}"
        own = f"{SESSION}, {line['session']}" if line["session"] else session
        yield ImportedRun(name, case, block, position, repeat, of_run, own, line)


def _read_settings(line: Line, knobs: Sequence[str]) -> dict[str, str]:
    settings = {name: line[name] for name in knobs if line[name] is not None}
    if line["knob"] is not None and line["value"] is not None:
        settings[line["knob"]] = line["value"]
    return settings


def _check_names(path: Path, runs: Sequence[ImportedRun], problems: Problems) -> None:
    names: dict[str, int] = {}
    for run in runs:
        if run.name in names:
            actual = f"the run {run.name!r} a second time (first in line {names[run.name]})"
            problems.add(path, run.line.number, "run" if run.line["run"] else "position", actual, "a name of its own")
        names.setdefault(run.name, run.line.number)


def _check_blocks(path: Path, runs: Sequence[ImportedRun], problems: Problems) -> None:
    first: dict[tuple[Case, str], int] = {}
    with_default: set[tuple[Case, str]] = set()
    for run in runs:
        first.setdefault((run.case, run.block), run.line.number)
        if not run.settings:
            with_default.add((run.case, run.block))
    for (case, block), line in first.items():
        if (case, block) not in with_default:
            whole = block == NO_BLOCK
            where, of = (str(case), "case") if whole else (f"block {block!r} of {case}", "block")
            actual = f"{where} without a run of the default configuration"
            expected = f"at least one row of the {of} with empty `knob` and `value`"
            problems.add(path, line, "knob" if whole else "block", actual, expected)


def _check_repeats(path: Path, runs: Sequence[ImportedRun], problems: Problems) -> None:
    first_lines: dict[tuple[Any, ...], int] = {}
    for run in runs:
        if run.line["repeat"] is None or not run.settings:
            continue
        key = (run.case, run.block, tuple(run.settings.items()), run.repeat)
        if key in first_lines:
            setting = ", ".join(f"{knob}={value}" for knob, value in run.settings.items())
            actual = f"{run.repeat} again for {setting} in block {run.block!r} (first in line {first_lines[key]})"
            problems.add(path, run.line.number, "repeat", actual, "another number for each repeat")
        first_lines.setdefault(key, run.line.number)


#: Which facts belong to what: (kind, column of its name, columns).
_CASE_FACTS = ("tier", "dedicated", "workload_class", "threads")
_BELONGS = {"device": ("tier", "dedicated"), "workload": ("workload_class", "threads")}


def _knob_lines(runs: Sequence[ImportedRun]) -> Iterator[tuple[tuple[str, str], Line, tuple[str, ...]]]:
    return (((run.case.dbms, knob), run.line, tuple(KNOB_COLUMNS)) for run in runs for knob in run.settings)


def _case_lines(runs: Sequence[ImportedRun]) -> Iterator[tuple[tuple[str, str], Line, tuple[str, ...]]]:
    for run in runs:
        for kind, columns in _BELONGS.items():
            facts = tuple(column for column in columns if column not in run.settings)  # a column may be a knob here
            yield (kind, getattr(run.case, kind)), run.line, facts


def _facts(
    path: Path,
    lines: Iterator[tuple[tuple[str, str], Line, tuple[str, ...]]],
    columns: tuple[str, ...],
    problems: Problems,
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what all rows of a thing agree on; rows that contradict an earlier one are problems."""
    facts: dict[tuple[str, str], dict[str, Any]] = {}
    origin: dict[tuple[tuple[str, str], str], int] = {}
    for key, line, wanted in lines:
        key_facts = facts.setdefault(key, {})
        for name in (name for name in wanted if name in columns and line[name] is not None):
            if name in key_facts and key_facts[name] != line[name]:
                actual = f"{line[name]!r} for {key[1]}, which had {key_facts[name]!r} in line {origin[key, name]}"
                problems.add(path, line.number, name, actual, f"the same for all rows of {key[1]}")
            elif name not in key_facts:
                key_facts[name] = line[name]
                origin[key, name] = line.number
    return facts


def _read_side(
    table: str, path: Path, runs: Sequence[ImportedRun], named: bool, problems: Problems, decimal: str | None
) -> list[dict[str, Any]]:
    """Return the rows of a side table, `run` renamed to `run_id`."""
    columns = side_columns(table)
    key = "run" if "run" in columns else "device"
    side = read_text_table(path, problems)
    required = {key: "this column, which is required"}
    lines, header = ([], []) if side is None else read_cells(side, columns, required, problems, decimal)
    if key == "run" and not named:
        problems.add_column(path, key, "runs by name", "a column `run` in the table of runs, too")
        return []
    names = {run.name for run in runs} if key == "run" else {run.case.device for run in runs}
    for line in lines:
        if names and key in header and line[key] not in names:
            actual = "nothing" if line[key] is None else repr(line[key])
            problems.add(path, line.number, key, actual, f"a {key} of the table of runs")
    return [{"run_id" if name == "run" else name: value for name, value in line.cells.items()} for line in lines]
