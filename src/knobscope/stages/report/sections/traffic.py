"""Section "Where the I/O goes": the default configuration's traffic by table and file, its order, and the journal."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from knobscope.figures import Figure, FileSizes, draw_file_sizes, slug
from knobscope.specs import Case
from knobscope.stages.report.sections.evidence import default_only
from knobscope.stages.report.sections.html_table import NUMBER, TEXT, Cells, render_table
from knobscope.stages.report.sections.sources import access_figure, submitters_figure
from knobscope.stages.report.sections.traces import trace_figures
from knobscope.study_data.study import Row, Rows, StudyData, name_case
from knobscope.text.formats import UNKNOWN, format_count, format_number, format_share, format_size, join_words, share_of

#: What is not one file, in words.
_WORDS = {
    "journal": "the file system's journal",
    "metadata": "the file system's metadata",
    "unknown": "unknown files",
}
_WORTH_A_SENTENCE = 10  # requests of a run
_MOST_GROUPS = 8
_MOST_LINES, _FEW_LINES = 24, 13
_COLUMNS = (
    ("Table or file", TEXT),
    ("Role", TEXT),
    ("Direction", TEXT),
    ("Requests of a run", NUMBER),
    ("Size", NUMBER),
    ("Share", NUMBER),
    ("Order on the device", TEXT),
)


@dataclass(frozen=True)
class CaseFiles:
    """Where the I/O of one case went, in sentences, pictures and a table, open where it is short.

    Numbers are those of a run on average, shares of all bytes in a direction; `omitted` lines are not shown.
    """

    name: str
    sentences: list[str]
    pictures: list[Figure]
    files: Markup
    is_open: bool
    omitted: int


@dataclass(frozen=True)
class FilesSection:
    """All cases whose requests are known by file; `empty` says why there are none."""

    cases: list[CaseFiles]
    empty: str = ""

    @property
    def figures(self) -> Iterator[Figure]:
        """All pictures, in order."""
        for case in self.cases:
            yield from case.pictures


def build_files(data: StudyData, traces: Path) -> FilesSection:
    """Return the section from table `files`, and pictures of the runs that left a trace: `traces/<run_id>`."""
    cases = [case_files for case in data.shown_cases if (case_files := _case_files(data, case, traces)) is not None]
    empty = (
        ""
        if cases
        else "No run of a default configuration recorded which files its requests went to; that requires BPF."
    )
    return FilesSection(cases, empty)


def _case_files(data: StudyData, case: Case, traces: Path) -> CaseFiles | None:
    runs = default_only(data, case, "").settings[0].watched
    rows = _read_usage(data, runs)
    if not rows:
        return None
    name, shown = name_case(case), rows[:_MOST_LINES]
    table = render_table(_COLUMNS, [_line(row, rows) for row in shown], sortable=f"files of {name}")
    pictures = [_sizes_figure(case, rows), submitters_figure(data, case, runs), access_figure(data, case)]
    drawn = [picture for picture in pictures if picture is not None] + trace_figures(data, case, traces)
    is_open, omitted = len(shown) < _FEW_LINES, len(rows) - len(shown)
    return CaseFiles(name, list(_sentences(rows)), drawn, table, is_open, omitted)


def _read_usage(data: StudyData, runs: list[str]) -> Rows:
    """Return requests and bytes of a mean run by group of files and operation, most bytes first.

    Logs and temporary files, whose names change from run to run, are one group each; the pattern is that of most of the
    requests whose order is known.
    """
    return data.rows(
        """
        WITH parts AS (
            SELECT CASE WHEN table_name IS NOT NULL THEN table_name
                        WHEN role IN ('log', 'temp') THEN role || ' files' ELSE file END AS file_group,
                role, op, pattern, requests, bytes, requests - coalesce(address_requests, 0) AS judged,
                sequential_share, count(DISTINCT run_id) OVER () AS runs
            FROM files WHERE requests > 0 AND list_contains(?, run_id)
        ), by_pattern AS (
            SELECT file_group, role, op, pattern, any_value(runs) AS runs,
                sum(requests) AS requests, sum(bytes) AS bytes,
                sum(judged) FILTER (sequential_share IS NOT NULL) AS judged, sum(judged * sequential_share) AS in_order
            FROM parts GROUP BY ALL
        )
        SELECT file_group, role, op, (sum(requests) / any_value(runs))::DOUBLE AS requests,
            (sum(bytes) / any_value(runs))::DOUBLE AS bytes, arg_max(pattern, judged) AS pattern,
            sum(in_order) AS in_order, sum(judged) AS judged
        FROM by_pattern GROUP BY file_group, role, op ORDER BY bytes DESC, file_group, op
        """,
        runs,
    )


def _line(row: Row, rows: list[Row]) -> Cells:
    total = sum(peer["bytes"] for peer in rows if peer["op"] == row["op"])
    return (
        _WORDS.get(row["role"]) or row["file_group"],
        row["role"],
        row["op"],
        format_number(row["requests"]) if row["requests"] < 10 else format_count(row["requests"]),
        format_size(row["bytes"]),
        format_share(row["bytes"] / total if total else None),
        _describe_order(row),
    )


def _describe_order(row: Row) -> str:
    if row["pattern"] is None:
        return UNKNOWN
    if row["pattern"] == "few":
        return "too few requests"
    share = share_of(row["in_order"], row["judged"])
    return row["pattern"] if share is None else f"{row['pattern']}, {format_share(share)} in order"


def _sentences(rows: list[Row]) -> Iterator[str]:
    for op in ("read", "write"):
        op_rows = [row for row in rows if row["op"] == op]
        total = sum(row["bytes"] for row in op_rows)
        largest = [row for row in op_rows if total and row["bytes"] >= 0.1 * total and row["role"] != "journal"][:3]
        if largest and sum(row["requests"] for row in op_rows) >= _WORTH_A_SENTENCE:
            parts = [f"{format_share(row['bytes'] / total)} {_towards(row, op)}" for row in largest]
            yield f"Of the bytes {'read' if op == 'read' else 'written'}, {join_words(parts)}."
    writes = [row for row in rows if row["op"] == "write"]
    requests = sum(row["requests"] for row in writes)
    journal = [row for row in writes if row["role"] == "journal"]
    if requests and journal:
        by_requests = sum(row["requests"] for row in journal) / requests
        by_bytes = sum(row["bytes"] for row in journal) / (sum(row["bytes"] for row in writes) or 1)
        yield (
            f"{format_share(by_requests)} of the writes came from the file system's journal "
            f"({format_share(by_bytes)} of the bytes written)."
        )


def _towards(row: Row, op: str) -> str:
    name = _WORDS.get(row["role"], row["file_group"])
    return f"came from {name}" if op == "read" else f"went to {name}"


def _sizes_figure(case: Case, rows: Rows) -> Figure:
    groups: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        sizes = groups.setdefault((row["file_group"], row["role"]), {})
        sizes[row["op"]] = sizes.get(row["op"], 0.0) + row["bytes"]
    shown = [
        FileSizes(SHORT_NAMES.get(role, group), "" if role in SHORT_NAMES or group.startswith(role) else role, sizes)
        for (group, role), sizes in list(groups.items())[:_MOST_GROUPS]
    ]
    omitted_count = len(groups) - len(shown)
    return Figure(
        name=slug("files", *case),
        title="Bytes by table and file",
        description=f"Bytes read and written in a run of {name_case(case)}, for {len(shown)} tables and files.",
        draw=lambda width: draw_file_sizes(width, shown),
        data=rows,
        caption="mean of a run with the default configuration"
        + (f"; {omitted_count} smaller ones are not shown" if omitted_count else ""),
    )


SHORT_NAMES = {"journal": "file system journal", "metadata": "file system metadata", "unknown": "unknown"}
