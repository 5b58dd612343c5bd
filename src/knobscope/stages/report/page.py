"""Renders a study as one HTML page that loads nothing from elsewhere."""

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knobscope import __version__
from knobscope.durable_files import write_text
from knobscope.figures import Figure, figure_style, write_figures
from knobscope.specs import StudySpecs
from knobscope.stages.report.sections import (
    CaseBudget,
    CaseOperationIo,
    DevicesSection,
    EffectsSection,
    FilesSection,
    FindingsSection,
    RankingSection,
    RunsSection,
    build_budgets,
    build_devices,
    build_effects,
    build_files,
    build_findings,
    build_head,
    build_io_related,
    build_operation_io,
    build_ranking,
    build_recoveries,
    build_runs,
    build_statements,
    build_tuning,
    build_waiting,
    effects_by_case,
    list_fastest,
    order_figures,
    time_figures,
)
from knobscope.study_data.study import StudyData
from knobscope.tables import TABLES
from knobscope.text.formats import keep_units, plural

if TYPE_CHECKING:
    import jinja2

#: Data of a figure that is larger is not put into the page: it has to stay small enough to be sent around.
_MOST_CSV = 32_000
_DATE = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?"
#: On a narrow screen a row of a table is a list of cells, each with the name of its column, but for empty ones.
_NAME_CELLS = """\
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  for (const row of table.tBodies[0].rows) {
    for (const [column, cell] of [...row.cells].entries()) {
      if (cell.textContent.trim()) cell.dataset.head = heads[column];
    }
  }
}"""


@dataclass(frozen=True)
class Rendered:
    """What was written."""

    size_bytes: int
    figures: int


def render_report(
    database: Path,
    specs: StudySpecs,
    out: Path,
    *,
    figures: Path | None = None,
    traces: Path | None = None,
    cases: Sequence[str] | None = None,
) -> Rendered:
    """Write the report of a study's DuckDB file, which is only read.

    With `figures` every figure is also written to that folder, as SVG with a CSV of its data. `traces` has a folder
    for each run that left one; next to the database if not named. `cases` are those to show with pictures, as
    DBMS/DEVICE/WORKLOAD: if not named all, or of many the worst. UserError: the database is missing or no study's
    database, or has no such case.
    """
    with StudyData.open(database, specs, cases) as data:
        findings = build_findings(data)
        effects, ranking = build_effects(data), build_ranking(data)
        devices, runs = build_devices(data), build_runs(data)
        traces = traces or database.parent / "traces"
        files, operation_io = build_files(data, traces), build_operation_io(data, traces)
        budgets = build_budgets(data)
        tuning, side_by_side = build_tuning(data), [*effects_by_case(data), *time_figures(data), *order_figures(data)]
        html = (
            make_environment("knobscope.stages.report")
            .get_template("page.html.j2")
            .render(
                head=build_head(data, findings),
                fastest=list_fastest(data),
                findings=findings,
                effects=effects,
                side_by_side=side_by_side,
                budgets=budgets,
                recoveries=build_recoveries(data),
                waiting=build_waiting(data),
                ranking=ranking,
                io_related=build_io_related(data),
                tuning=tuning,
                devices=devices,
                files=files,
                statements=build_statements(data),
                operation_io=operation_io,
                runs=runs,
                left_out=_describe_left_out(data),
                database=database.name,
                tables=_count_rows(data),
                query=_example_query(data),
            )
        )
    write_text(out, html)
    shown = [*(case.figure for case in tuning), *side_by_side, *ranking.across]
    shown += list(_all_figures(findings, effects, budgets, ranking, files, operation_io, devices, runs))
    if figures is not None:
        write_figures(shown, figures)
    return Rendered(len(html.encode()), len(shown))


@cache  # it keeps templates that were compiled, which takes a tenth of a second
def make_environment(package: str) -> "jinja2.Environment":
    """Return what renders the templates of a package, in the frame of all pages.

    Filter `figure_svg` draws a figure, `csv_link` gives the address of its data, `prose` marks up a sentence, `whole`
    keeps names in one line.
    """
    import jinja2
    from markupsafe import Markup

    style = files("knobscope.stages.report").joinpath("style.css").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, "") for name in (package, "knobscope.stages.report")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "name_cells": Markup(_NAME_CELLS),  # noqa: S704
        "style": Markup(figure_style() + style),  # noqa: S704
        "version": __version__,
    }
    environment.filters |= {"figure_svg": _figure_svg, "csv_link": _csv_link, "prose": _mark_up, "whole": _keep_names}
    return environment


def _figure_svg(figure: Figure) -> Any:
    """Return the pictures of a figure as markup: they escape what they contain themselves."""
    from markupsafe import Markup

    return Markup("\n".join(figure.svgs()))  # noqa: S704


def _mark_up(text: str) -> Any:
    """Return a sentence for the page: what is between backticks is code; numbers stay with units, and dates whole."""
    from markupsafe import escape

    return _keep_whole(_DATE, re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(keep_units(text)))))


def _keep_names(text: str) -> Any:
    """Return a text for a narrow box, in which no line ends within a name such as ycsb-a."""
    from markupsafe import escape

    return _keep_whole(rf"{_DATE}|\w+(?:-\w+)+", str(escape(text)))


def _keep_whole(pattern: str, html: str) -> Any:
    from markupsafe import Markup

    return Markup(re.sub(pattern, r'<span class="whole">\g<0></span>', html))  # noqa: S704


def _csv_link(figure: Figure) -> str:
    """Return the data of a figure as an address that holds it; empty where it is too large for the page."""
    content = figure.csv().encode()
    return "" if len(content) > _MOST_CSV else f"data:text/csv;base64,{base64.b64encode(content).decode()}"


def _describe_left_out(data: StudyData) -> str:
    """Say how many cases have no pictures, and which have; nothing where all have some."""
    left_out = len(data.measured_cases) - len(data.shown_cases)
    if not left_out:
        return ""
    shown = "that were requested" if data.requested_cases is not None else "with the costliest mismatches"
    verb = "is" if left_out == 1 else "are"
    return f"{plural(left_out, 'more case')} {verb} not shown, to keep this page small; it shows those {shown}."


def _count_rows(data: StudyData) -> list[tuple[str, int]]:
    """Return the tables of the database that have rows."""
    count_query = "SELECT '{0}' AS name, count(*) AS count FROM \"{0}\""
    # One statement takes a third of the time of one per table.
    counts = {row["name"]: row["count"] for row in data.rows(" UNION ALL ".join(map(count_query.format, TABLES)))}
    return [(table, counts[table]) for table in TABLES if counts[table]]


def _example_query(data: StudyData) -> str:
    """Return a query that a reader can change: the runs of one setting, with what they mostly did, read or write."""
    knob = data.value("SELECT knob FROM effects WHERE metric = 'throughput_ops' ORDER BY abs(estimate) DESC NULLS LAST")
    op = data.value(
        "SELECT op FROM io_profile WHERE op IN ('read', 'write') GROUP BY op ORDER BY sum(requests) DESC, op"
    )
    return (
        "SELECT device, value, count(*) AS runs, round(avg(throughput_ops)) AS ops,\n"
        f"       round(avg(p.requests / r.operations), 2) AS {op or 'write'}s_per_op\n"
        "FROM runs r JOIN knob_values USING (config_id, dbms)\n"
        f"LEFT JOIN io_profile p ON p.run_id = r.run_id AND p.op = '{op or 'write'}'\n"
        f"WHERE status = 'ok' AND phase = 'sweep' AND knob = '{(knob or 'NAME').replace(chr(39), chr(39) * 2)}'\n"
        "GROUP BY ALL ORDER BY ALL;"
    )


def _all_figures(
    findings: FindingsSection,
    effects: EffectsSection,
    budgets: Sequence[CaseBudget],
    ranking: RankingSection,
    files: FilesSection,
    operation_io: Sequence[CaseOperationIo],
    devices: DevicesSection,
    runs: RunsSection,
) -> Iterator[Figure]:
    yield from findings.figures
    for case in effects.cases:
        yield case.span
        yield case.figure
    yield from (budget.figure for budget in budgets if budget.figure is not None)
    for ranked in ranking.cases:
        yield from ranked.pictures
    yield from files.figures
    for traced in operation_io:
        yield from traced.figures
    for device in devices.devices:
        yield from device.pictures
    for measured in runs.cases:
        yield measured.timeline
        yield from measured.default_io.pictures
