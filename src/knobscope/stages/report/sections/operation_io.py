"""Which transaction or query made which requests: per transaction and table, and where on the device over time."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from knobscope.figures import Figure, Point, PointGroup, PointPanel, draw_scatter, slug
from knobscope.specs import Case
from knobscope.stages.report.sections.evidence import default_only
from knobscope.stages.report.sections.html_table import NUMBER, TEXT, break_name, render_table
from knobscope.stages.report.sections.traces import describe_run, list_traced, read_cells
from knobscope.study_data.study import Row, Rows, StudyData, name_case
from knobscope.tables import BACKGROUND, open_files
from knobscope.text.formats import (
    LEAST_REQUESTS,
    UNKNOWN,
    format_count,
    format_number,
    format_part,
    format_share,
    format_size,
    join_words,
    plural,
)

#: Looks of operations in the order of their names; where there are more, the last one is for all but the busiest.
_LOOKS = ("line-e", "line-a", "line-c", "line-d", "line-b")
_MOST_FILES, _MOST_LINES = 4, 40
_LEAST_SHARE = 0.1  # of all bytes, for a word in a sentence
_ALL, _OTHERS = "all", "others"


@dataclass(frozen=True)
class CaseOperationIo:
    """Requests of one case: per operation of each kind, the background last, and of a run."""

    name: str
    sentences: list[str]
    figures: list[Figure]
    requests: Markup


def build_operation_io(data: StudyData, traces: Path) -> list[CaseOperationIo]:
    """Return the cases whose default runs were traced while the load client logged its operations."""
    cases = (_build_case(data, case, traces) for case in data.shown_cases)
    return [case for case in cases if case is not None]


def _build_case(data: StudyData, case: Case, traces: Path) -> CaseOperationIo | None:
    runs = [run["run_id"] for run in default_only(data, case, "").settings[0].runs]
    rows = data.rows(
        """
        SELECT operation, op, coalesce(table_name, CASE role WHEN 'log' THEN 'log files' WHEN 'temp' THEN 'temp files'
                WHEN 'journal' THEN 'file system journal' ELSE file END) AS file_group,
            sum(requests) AS requests, sum(bytes) AS bytes
        FROM operation_io WHERE list_contains(?, run_id) GROUP BY ALL ORDER BY requests DESC, file_group, operation
        """,
        runs,
    )
    if not rows:
        return None
    done = _count_operations(data, runs)
    operations = sorted({row["operation"] for row in rows} - {BACKGROUND})
    return CaseOperationIo(
        name=name_case(case),
        sentences=[_sentence(rows, done, op) for op in ("read", "write") if any(row["op"] == op for row in rows)],
        figures=_figures(data, case, traces, _choose_looks(rows)),
        requests=_tabulate(name_case(case), rows, done, [*operations, BACKGROUND]),
    )


def _count_operations(data: StudyData, runs: list[str]) -> Counter[str]:
    """Return how many operations of each kind the traced runs completed; for the background all of them."""
    rows = data.rows(
        """
        WITH traced AS (SELECT DISTINCT run_id FROM operation_io WHERE list_contains(?, run_id))
        SELECT operation, sum(ok) AS ok, (SELECT count(*) FROM traced) AS runs
        FROM operations SEMI JOIN traced USING (run_id) GROUP BY operation ORDER BY operation
        """,
        runs,
    )
    done = Counter({row["operation"]: row["ok"] for row in rows})
    done[BACKGROUND] = done.total()
    done[_ALL] = rows[0]["runs"] if rows else 0
    return done


def _tabulate(case: str, rows: Rows, done: Counter[str], operations: list[str]) -> Markup:
    requests: Counter[tuple[str, str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for group in {_ALL, row["file_group"] or _ALL}:
            requests[group, row["op"], row["operation"]] += row["requests"]
            requests[group, row["op"], _ALL] += row["requests"]
            sizes[group, row["op"]] += row["bytes"]
    order = sorted(sizes, key=lambda key: (key[0] != _ALL, -requests[(*key, _ALL)], key))
    lines = [
        (
            group,
            op,
            *(
                format_number(requests[group, op, name] / done[name])
                if requests[group, op, name] and done[name]
                else UNKNOWN
                for name in operations
            ),
            format_count(requests[group, op, _ALL] / max(done[_ALL], 1)),
            format_size(sizes[group, op] / max(done[_ALL], 1)) if op != "flush" else UNKNOWN,
        )
        for group, op in order[:_MOST_LINES]
    ]
    columns = (
        *(("Table or file", TEXT), ("Direction", TEXT)),
        *((break_name(name), NUMBER) for name in operations),
        *(("Requests of a run", NUMBER), ("Size", NUMBER)),
    )
    return render_table(columns, lines, sortable=f"requests by transaction of {case}")


def _sentence(rows: Rows, done: Counter[str], op: str) -> str:
    """Say who read, or wrote, how much of the bytes, or of few requests, next to the share in the transactions."""
    sizes: Counter[str] = Counter()
    requests: Counter[str] = Counter()
    for row in rows:
        if row["op"] == op:
            sizes[row["operation"]] += row["bytes"]
            requests[row["operation"]] += row["requests"]
    total, count = sizes.total() or 1, requests.total()
    parts = {
        name: format_share(size / total) if count >= LEAST_REQUESTS else format_part(requests[name], count)
        for name, size in sizes.most_common()
    }
    words: list[str] = []
    transactions = "transactions"
    for name, part in parts.items():
        if name != BACKGROUND and (sizes[name] >= _LEAST_SHARE * total or not words):
            words.append(f"{part} by {name} ({format_part(done[name], done[BACKGROUND], transactions)})")
            transactions = ""
    if sizes[BACKGROUND]:
        words.append(f"{parts[BACKGROUND]} in the background")
    subject = f"Bytes {'read' if op == 'read' else 'written'}" if count >= LEAST_REQUESTS else f"{op.title()}s"
    return f"{subject}: {join_words(words)}."


def _choose_looks(rows: Rows) -> dict[str, str]:
    """Return the looks of the background, of as many operations as there are looks, and of all others."""
    totals: Counter[str] = Counter()
    for row in rows:
        if row["operation"] != BACKGROUND:
            totals[row["operation"]] += row["requests"]
    room = len(_LOOKS) if len(totals) <= len(_LOOKS) else len(_LOOKS) - 1
    apart = sorted(name for name, _ in totals.most_common(room))
    return {BACKGROUND: "base-bar", **dict(zip([*apart, _OTHERS], _LOOKS, strict=False))}


def _figures(data: StudyData, case: Case, traces: Path, looks: dict[str, str]) -> list[Figure]:
    """Return the picture of the first traced run, a panel for each of the busiest files."""
    traced = list_traced(data, case, traces)
    if not traced:
        return []
    run, events = traced[0]
    tables = {
        row["file"]: row["table_name"]
        for row in data.rows("SELECT DISTINCT file, table_name FROM operation_io WHERE run_id = ?", run["run_id"])
    }
    with open_files([events]) as connection:
        trace = StudyData(connection, data.specs)
        columns = {row["column_name"] for row in trace.rows("DESCRIBE FROM read_parquet(?)", str(events))}
        files = _busiest_files(trace, events) if "operation" in columns else []
        cells = [read_cells(trace, events, file, "operation") for file in files]
    if not files:
        return []
    panels = [
        PointPanel(_label(file, tables.get(file["file"])), _groups(points, looks), points[0]["highest"])
        for file, points in zip(files, cells, strict=True)
    ]
    shown = sum(file["requests"] for file in files)
    return [
        Figure(
            name=slug("operations", *case),
            title="Addresses over time by transaction",
            description=f"{plural(shown, 'request')} over the seconds of a run, by transaction, a panel for each file: "
            f"{'; '.join(panel.label for panel in panels)}.",
            draw=lambda width: draw_scatter(width, panels, cells[0][0]["seconds"]),
            data=[{"file": file["file"], **cell} for file, points in zip(files, cells, strict=True) for cell in points],
            caption=f"reads and writes of the files of which transactions asked most, in {describe_run(run)}",
            wide=True,
        )
    ]


def _busiest_files(trace: StudyData, events: Path) -> Rows:
    return trace.rows(
        """
        SELECT file, count(*) AS requests, count("offset") = count(*) AS has_offset
        FROM read_parquet(?) WHERE op IN ('read', 'write') AND file IS NOT NULL
        GROUP BY file HAVING count(operation) > 0 ORDER BY count(operation) DESC, file LIMIT ?
        """,
        str(events), _MOST_FILES,
    )  # fmt: skip


def _label(file: Row, table: str | None) -> str:
    name = f"{table} ({file['file']})" if table else file["file"]
    return f"{name}: {'offset in the file' if file['has_offset'] else 'address on the device, above the lowest'}"


def _groups(cells: Rows, looks: dict[str, str]) -> list[PointGroup]:
    """Return the points of one file, in the order of the looks: the background is below all others."""
    groups: dict[str, list[Point]] = {name: [] for name in looks}
    for cell in cells:
        name = cell["operation"] if cell["operation"] in looks else _OTHERS
        groups[name].append((cell["second"], cell["byte_offset"]))
    return [PointGroup(name, looks[name], points) for name, points in groups.items() if points]
