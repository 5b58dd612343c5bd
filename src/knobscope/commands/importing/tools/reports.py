"""pgbench and sysbench: reports of repeated runs, in files whose paths name the settings.

A file holds what the tool printed, once or several times. `KNOB=VALUE` in the name of a file or of a folder above it
says what was set, several separated by commas; the rest of the settings is in the report.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from knobscope.commands.importing.tools.runs import FAILED, ToolRun, ToolRuns
from knobscope.errors import UserError

_MOST_BYTES = 64 << 20
#: In a run whose path does not set a knob which others set.
_DEFAULT = "default"
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,80})=([^\x00-\x1f]{1,200})")
_ENDINGS = (".log", ".txt", ".out")
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_HOW = "without initial connection time|excluding connections establishing|including reconnection times"


@dataclass(frozen=True)
class Form:
    """What a report looks like: where it begins, what it says of the load, and its figures, the response first."""

    tool: str
    begins: str
    settings: Mapping[str, str]
    figures: Mapping[str, str]


_PGBENCH = Form(
    "pgbench",
    r"^transaction type: ",
    {
        "script": r"^transaction type: ([ -~]{1,80})",
        "scale": r"^scaling factor: ([0-9]+)$",
        "mode": r"^query mode: ([a-z]+)$",
        "clients": r"^number of clients: ([0-9]+)$",
        "threads": r"^number of threads: ([0-9]+)$",
    },
    {
        "tps": rf"^tps = {_NUMBER} \((?:{_HOW})\)$",
        "latency_mean_ms": rf"^latency average = {_NUMBER} ms",
        "latency_stddev_ms": rf"^latency stddev = {_NUMBER} ms$",
        "failed_transactions": r"^number of failed transactions: ([0-9]+) ",
    },
)
_SYSBENCH = Form(
    "sysbench",
    r"^sysbench [0-9]+\.[0-9]+",
    {"threads": r"^Number of threads: ([0-9]+)$"},
    {
        "events": r"^ *total number of events: +([0-9]+)$",
        "time_s": rf"^ *total time: +{_NUMBER}s$",
        "latency_mean_ms": rf"^ *avg: +{_NUMBER}$",
        "latency_p95_ms": rf"^ *95th percentile: +{_NUMBER}$",
        "latency_max_ms": rf"^ *max: +{_NUMBER}$",
        "ignored_errors": r"^ *ignored errors: +([0-9]+) ",
    },
)


def read_pgbench(paths: Sequence[Path], study: str | None) -> ToolRuns:
    """Return the runs in pgbench's reports; the response is `tps`. UserError: no such report in a file."""
    return ToolRuns(list(_read(paths, study, _PGBENCH)), "tps")


def read_sysbench(paths: Sequence[Path], study: str | None) -> ToolRuns:
    """Return the runs in sysbench's reports; the response is `events_per_s` (an event of OLTP tests is a transaction).

    UserError: no such report in a file.
    """
    runs = []
    for run in _read(paths, study, _SYSBENCH):
        figures = dict(run.figures)
        events, time_s = figures.pop("events"), figures.pop("time_s", None)
        rate = events / time_s if events != FAILED and time_s else FAILED
        runs.append(ToolRun(run.name, run.settings, {"events_per_s": rate, **figures}))
    return ToolRuns(runs, "events_per_s")


def _read(paths: Sequence[Path], study: str | None, form: Form) -> Iterator[ToolRun]:
    if study is not None:
        raise UserError(f"--study is {study!r}; expected none: reports of {form.tool} have no studies")
    return read_reports(paths, form)


def read_reports(paths: Sequence[Path], form: Form) -> Iterator[ToolRun]:
    """Yield the runs in reports of a form. UserError: a file has none."""
    for path, settings in settings_by_path(list(files_of(paths))).items():
        reports = _reports_in(path, form)
        for number, text in enumerate(reports, 1):
            name = str(path) if len(reports) == 1 else f"{path}:{number}"
            own = {column: match[1] for column, pattern in form.settings.items() if (match := _search(pattern, text))}
            figures = {
                column: float(match[1]) for column, pattern in form.figures.items() if (match := _search(pattern, text))
            }
            response = next(iter(form.figures))
            yield ToolRun(name, {**settings, **own}, {response: FAILED, **figures})


def _search(pattern: str, text: str) -> "re.Match[str] | None":
    return re.search(pattern, text, re.MULTILINE)


def files_of(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files among the paths and in folders among them; links in folders are not followed.

    UserError: there is no such file.
    """
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
        elif path.is_file():
            yield path
        else:
            raise UserError(f"{path} does not exist; expected a report, or a folder of reports")


def _reports_in(path: Path, form: Form) -> list[str]:
    """Return the reports in a file, one where the tool printed only why it failed. UserError: it is another file."""
    if path.stat().st_size > _MOST_BYTES:
        raise UserError(f"{path}: found more than {_MOST_BYTES >> 20} MiB; expected reports of {form.tool}")
    text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    begins = [match.start() for match in re.finditer(form.begins, text, re.MULTILINE)]
    if begins:
        return [text[begin:end] for begin, end in zip(begins, [*begins[1:], len(text)], strict=True)]
    if not re.search(rf"^{form.tool}: (?:error|fatal)", text, re.MULTILINE):
        raise UserError(f"{path}: found no report of {form.tool}; expected what it prints")
    return [text]


def settings_by_path(paths: Sequence[Path]) -> dict[Path, dict[str, str]]:
    """Return the settings that each path names, `default` for what only others name."""
    settings_of = {path: settings_in(path) for path in paths}
    defaults = {name: _DEFAULT for settings in settings_of.values() for name in settings}
    return {path: {**defaults, **settings} for path, settings in settings_of.items()}


def settings_in(path: Path) -> dict[str, str]:
    """Return the settings that a path names."""
    stem = path.name
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    pieces = [piece for part in (*path.parts[:-1], stem) for piece in part.split(",")]
    return {match[1]: match[2] for piece in pieces if (match := _SETTING.fullmatch(piece.strip()))}
