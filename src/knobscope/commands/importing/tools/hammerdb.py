"""HammerDB: jobs in its SQLite database (`hammer.DB`), or what it printed into `hammerdb.log`.

Formats: `modules/jobs-1.0.tm`, `modules/xtprof-1.0.tm` and `src/generic/genvu.tcl` of TPC-Council/HammerDB.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean

from knobscope.commands.importing.tools.reports import Form, files_of, read_reports, settings_by_path, settings_in
from knobscope.commands.importing.tools.runs import FAILED, ToolRun, ToolRuns, describe_direction
from knobscope.commands.importing.tools.sqlite_file import read_only_uri
from knobscope.errors import UserError

_EXPECTED = "a job database of HammerDB (hammer.DB), or its log"
_TABLES = ("JOBMAIN", "JOBOUTPUT", "JOBTIMING")
_RESULT = {
    "nopm": r"TEST RESULT : System achieved (?:[0-9]+ .* TPM at )?([0-9]+) NOPM",
    "tpm": r"TEST RESULT : System achieved (?:[0-9]+ NOPM from )?([0-9]+) .*TPM",
}
_USERS = r"([0-9]+) Active Virtual Users configured"
_LOG = Form(
    "HammerDB",
    r"^Vuser 1:Beginning rampup",
    {"virtual_users": rf"^Vuser 1:{_USERS}"},
    {name: rf"^Vuser 1:{pattern}" for name, pattern in _RESULT.items()},
)
#: Benchmark, as a job names it -> the section of its settings, and the response of its runs.
_BENCHMARKS = {"TPC-C": ("tpcc", "nopm"), "TPC-H": ("tpch", "geomean_s")}
#: A job of that has measured, or was about to: others build, check or delete a schema.
_MEASURED = r"Beginning rampup|TEST RESULT|Geometric mean|query set"
#: Settings that say who connects, and how.
_PRIVATE = re.compile(r"pass|user|host|token|secret|key$")


def read_hammerdb(paths: Sequence[Path], study: str | None) -> ToolRuns:
    """Return the measuring jobs of a database, or the runs in logs; with `study` those of the benchmark of that name.

    UserError: no such file; a database has jobs of both benchmarks, and none is named.
    """
    files = list(files_of(paths))
    databases = [path for path in files if path.open("rb").read(16) == b"SQLite format 3\0"]
    if len(databases) not in (0, len(files)):
        raise UserError(f"{databases[0]}: found a database next to logs; expected files of one kind")
    if not databases:
        if study not in (None, "TPC-C"):
            raise UserError(f"--study is {study!r}; expected none, or TPC-C: a log has runs of no other benchmark")
        return ToolRuns(list(read_reports(paths, _LOG)), "nopm")
    jobs = [job for path, named in settings_by_path(databases).items() for job in _list_jobs(path, named)]
    counts = Counter(benchmark for benchmark, _ in jobs)
    if study not in (None, *_BENCHMARKS) or (study is None and len(counts) > 1):
        raise UserError(f"--study is {study!r}; expected one of {', '.join(counts or _BENCHMARKS)}")
    benchmark = study or next(iter(counts), "TPC-C")
    response = _BENCHMARKS[benchmark][1]
    notes = [describe_direction(response, is_minimised=response == "geomean_s")]
    return ToolRuns([run for name, run in jobs if name == benchmark], response, notes)


def _list_jobs(path: Path, named: Mapping[str, str]) -> Iterator[tuple[str, ToolRun]]:
    """Yield (benchmark, run) of the jobs that measured."""
    uri = read_only_uri(path, _EXPECTED, _TABLES)
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            jobs = connection.execute("SELECT jobid, db, bm, jobdict FROM JOBMAIN ORDER BY timestamp, rowid").fetchall()
            for job, dbms, benchmark, settings in jobs:
                lines = connection.execute("SELECT output FROM JOBOUTPUT WHERE jobid = ? ORDER BY rowid", [job])
                output = "\n".join(str(line) for (line,) in lines)
                if benchmark not in _BENCHMARKS or not re.search(_MEASURED, output):
                    continue
                section, response = _BENCHMARKS[benchmark]
                known = {"dbms": str(dbms), **_settings(f"{path}: job {job}", str(settings), section)}
                if users := re.search(_USERS, output):
                    known["virtual_users"] = users[1]
                figures = _read_figures(connection, str(job), output)
                run = ToolRun(str(job), {**named, **known, **settings_in(path)}, {response: FAILED, **figures})
                yield str(benchmark), run
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path}: found {error}; expected {_EXPECTED}") from error


def _read_figures(connection: sqlite3.Connection, job: str, output: str) -> dict[str, float]:
    """Return what a job measured: its result, and the latency of each kind of transaction where it was profiled."""
    figures = {name: float(match[1]) for name, pattern in _RESULT.items() if (match := re.search(pattern, output))}
    if means := re.findall(r"Geometric mean of query times .* is ([0-9]+(?:\.[0-9]+)?)", output):
        figures["geomean_s"] = fmean(map(float, means))  # of each virtual user
    timings = connection.execute(
        "SELECT procname, avg_ms, p50_ms, p95_ms, p99_ms FROM JOBTIMING WHERE jobid = ? AND summary = 1 ORDER BY rowid",
        [job],
    )
    for procedure, *values in timings:
        names = (f"{str(procedure).lower()}_{name}_ms" for name in ("mean", "p50", "p95", "p99"))
        figures |= {name: value for name, value in zip(names, values, strict=True) if value is not None}
    return figures


def _settings(where: str, text: str, section: str) -> dict[str, str]:
    """Return the settings of a benchmark in a job's Tcl dictionary, which may be divided into schema and driver."""
    try:
        own = _as_dictionary(_as_dictionary(text).get(section, ""))
        for part in ("schema", "driver"):
            own |= _as_dictionary(own.pop(part, ""))
    except ValueError as error:
        raise UserError(f"{where}: {error}; expected the settings of a job as a Tcl dictionary") from error
    return {name: value for name, value in own.items() if value and not _PRIVATE.search(name)}


def _as_dictionary(text: str) -> dict[str, str]:
    words = list(_split_list(text))
    if len(words) % 2:
        raise ValueError(f"found {len(words)} words in {text[:60]!r}")
    return dict(zip(words[::2], words[1::2], strict=True))


def _split_list(text: str) -> Iterator[str]:
    """Yield the elements of a Tcl list: words, in braces or quotes where they have spaces. ValueError: it is none."""
    position = 0
    while match := re.compile(r"\s*(\S)").match(text, position):
        begin = match.start(1)
        if match[1] == "{":
            position = _end_of_braces(text, begin)
            yield text[begin + 1 : position - 1]
        else:
            word = re.compile(r'"((?:[^"\\]|\\.)*)"(?=\s|$)|((?:[^\s\\]|\\.)+)', re.DOTALL).match(text, begin)
            if word is None:
                raise ValueError(f"found no end of a word in {text[begin : begin + 60]!r}")
            position = word.end()
            yield re.sub(r"\\(.)", r"\1", word[1] if word[1] is not None else word[2], flags=re.DOTALL)


def _end_of_braces(text: str, begin: int) -> int:
    """Return where an element in braces ends."""
    depth = 0
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, begin):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and match[0] == "}":
            return match.end()
    raise ValueError(f"found no closing brace in {text[begin : begin + 60]!r}")
