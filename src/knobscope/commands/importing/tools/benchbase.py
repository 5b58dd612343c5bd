"""BenchBase: summaries of runs (`*.summary.json`), with the parameters that it read from the DBMS next to them.

Formats: `ResultWriter.java` and `DBCollector.java` of cmu-db/benchbase. A run that has left no summary, but its
`*.results.csv`, has only a throughput.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from knobscope.commands.importing.tools.reports import files_of, settings_by_path, settings_in
from knobscope.commands.importing.tools.runs import FAILED, ToolRun, ToolRuns
from knobscope.errors import UserError

_MOST_BYTES = 64 << 20
_SUMMARY, _PARAMETERS, _RESULTS = ".summary.json", ".params.json", ".results.csv"
_RESPONSE, _THROUGHPUT = "throughput", "Throughput (requests/second)"
#: No rate, latency or size of a benchmark is as large.
_MOST = 1e300
_EXPECTED = f"a file NAME{_SUMMARY} or NAME{_RESULTS} that BenchBase wrote, or a folder of such files"
#: Key of a summary -> setting.
_SETTINGS = {
    "Benchmark Type": "benchmark",
    "DBMS Type": "dbms",
    "DBMS Version": "dbms_version",
    "isolation": "isolation",
    "scalefactor": "scalefactor",
    "terminals": "terminals",
}
_LATENCIES = {
    f"{words} Latency (microseconds)": f"latency_{name}_us"
    for words, name in {
        "Average": "mean",
        "Median": "p50",
        "95th Percentile": "p95",
        "99th Percentile": "p99",
        "Maximum": "max",
    }.items()
}


def read_benchbase(paths: Sequence[Path], study: str | None) -> ToolRuns:
    """Return the runs; settings are those of the summary, of the DBMS's parameters, and of paths (`KNOB=VALUE`).

    UserError: a file is no result of BenchBase.
    """
    if study is not None:
        raise UserError(f"--study is {study!r}; expected none: results of BenchBase have no studies")
    files = dict.fromkeys(file for path in paths for file in _results_of(path))
    named = settings_by_path(list(files))
    return ToolRuns([_read_run(file, named[file]) for file in files], _RESPONSE)


def _results_of(path: Path) -> Iterator[Path]:
    """Yield the summaries below a path, and the results of runs that have none."""
    endings = (_SUMMARY, _RESULTS)
    files = [file for file in files_of([path]) if file.name.endswith(endings)]
    if not files:
        raise UserError(f"{path}: found no result of BenchBase; expected {_EXPECTED}")
    summaries = {file for file in files if file.name.endswith(_SUMMARY)}
    for file in files:
        summary = file.with_name(file.name.removesuffix(_RESULTS) + _SUMMARY)
        if file in summaries or not summary.is_file():
            yield file


def _read_run(file: Path, named: Mapping[str, str]) -> ToolRun:
    if file.name.endswith(_RESULTS):
        return ToolRun(str(file), dict(named), {_RESPONSE: _mean_throughput(file)})
    summary = _read_object(file)
    if _THROUGHPUT not in summary:
        raise UserError(f"{file}: found no {_THROUGHPUT!r}; expected a summary that BenchBase wrote")
    parameters = file.with_name(file.name.removesuffix(_SUMMARY) + _PARAMETERS)
    own = {name: summary[key] for key, name in _SETTINGS.items() if isinstance(summary.get(key), (str, int, float))}
    of_dbms = _read_object(parameters) if parameters.is_file() else {}
    known = {name: value for name, value in of_dbms.items() if isinstance(value, (str, int, float))}
    has_failed = summary.get("Final State", "EXIT") == "ERROR" or summary.get("Measured Requests") == 0
    figures = {_RESPONSE: FAILED if has_failed else _number(summary[_THROUGHPUT])}
    if not has_failed:
        distribution = summary.get("Latency Distribution")
        latencies = distribution if isinstance(distribution, dict) else {}
        measured = {"goodput": summary.get("Goodput (requests/second)")}
        measured |= {name: latencies.get(key) for key, name in _LATENCIES.items()}
        figures |= {name: _number(value) for name, value in measured.items() if value is not None}
    return ToolRun(str(file), {**named, **known, **own, **settings_in(file)}, figures)


def _number(value: Any) -> float | str:
    return float(value) if isinstance(value, (int, float)) and abs(value) < _MOST else FAILED


def _read_object(file: Path) -> Mapping[str, Any]:
    """Return a JSON object of texts, numbers and objects."""
    if file.stat().st_size > _MOST_BYTES:
        raise UserError(f"{file}: found more than {_MOST_BYTES >> 20} MiB; expected {_EXPECTED}")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: {error}; expected JSON that BenchBase wrote") from error
    if not isinstance(content, dict):
        raise UserError(f"{file}: found no keys with values; expected JSON that BenchBase wrote")
    return content


def _mean_throughput(file: Path) -> float | str:
    """Return the mean of a series whose windows are equally long."""
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        rows = csv.DictReader(lines)
        if _THROUGHPUT not in (rows.fieldnames or ()):
            raise UserError(f"{file}: found no column {_THROUGHPUT!r}; expected results that BenchBase wrote")
        try:
            rates = [float(row[_THROUGHPUT]) for row in rows]
        except (TypeError, ValueError, csv.Error) as error:
            raise UserError(f"{file}:{rows.line_num}: {error}; expected a number of requests per second") from error
    return fmean(rates) if rates and all(map(math.isfinite, rates)) else FAILED
