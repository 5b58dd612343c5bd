"""Part of section "Knob ranking": which knobs change the I/O according to the runs, compared with the specs."""

from dataclasses import dataclass

from markupsafe import Markup

from knobscope.stages.detect import IO_RESPONSES, io_marks_comparison
from knobscope.stages.report.sections.html_table import CODE, NUMBER, TEXT, Cells, annotate, render_table
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.formats import format_number, format_share, join_words, plural

#: Precision and recall of the taint analysis of source code in "When Database Meets New Storage Devices", PVLDB 2023.
PAPER = (0.700, 0.898)
_COLUMNS = (
    ("Knob", CODE),
    ("Mechanism in its spec", TEXT),
    ("Changes most clearly", TEXT),
    ("Explains", NUMBER),
    ("q", NUMBER),
)


@dataclass(frozen=True)
class IoCase:
    """The knobs of one case that change the I/O profile; `rest` says which changed nothing."""

    name: str
    knobs: Markup
    rest: str


@dataclass(frozen=True)
class IoRelated:
    """All cases, and how they compare with the specs."""

    cases: list[IoCase]
    comparisons: list[str]


def build_io_related(data: StudyData) -> IoRelated:
    """Return the part from table `io_related`; no cases where nothing was tested."""
    cases = [_case(data.rows(_QUERY, *case), name_case(case)) for case in data.shown_cases]
    return IoRelated([case for case in cases if case is not None], _comparisons(data))


_QUERY = """
    SELECT knob, any_value(mechanism) AS mechanism, arg_min(response, (q_value, p_value, -explained_share)) AS response,
        min(q_value) AS q_value, arg_min(explained_share, (q_value, p_value, -explained_share)) AS explained,
        count(*) FILTER (verdict = 'related') AS responses, bool_and(verdict = 'insufficient') AS untested
    FROM io_related LEFT JOIN knobs USING (dbms, knob)
    WHERE dbms = ? AND device = ? AND workload = ?
    GROUP BY knob
    ORDER BY q_value, explained DESC, knob
"""


def _case(rows: list[Row], name: str) -> IoCase | None:
    if not rows:
        return None
    related = [row for row in rows if row["responses"]]
    unrelated = [row["knob"] for row in rows if not row["responses"] and not row["untested"]]
    untested = [row["knob"] for row in rows if row["untested"]]
    sentences = [f"No significant change by {join_words(unrelated)}."] if unrelated else []
    sentences += [f"Too few configurations to test {join_words(untested)}."] if untested else []
    return IoCase(name, render_table(_COLUMNS, map(_knob, related)), " ".join(sentences))


def _knob(row: Row) -> Cells:
    others = row["responses"] - 1
    return (
        row["knob"],
        row["mechanism"] or "",
        annotate(IO_RESPONSES.get(str(row["response"]), str(row["response"])), others and f"and {others} more"),
        format_share(row["explained"]),
        "< 0.0001" if row["q_value"] < 1e-4 else format_number(row["q_value"]),
    )


def _comparisons(data: StudyData) -> list[str]:
    sentences = []
    for dbms, comparison in io_marks_comparison(data.connection).items():
        if comparison.precision is None or comparison.recall is None:
            continue
        summary = (
            f"Against the mechanisms that the spec of {dbms} marks ({plural(comparison.knobs, 'knob')} tested): "
            f"precision {comparison.precision:.2f}, recall {comparison.recall:.2f}. Taint analysis of the source code "
            f"reached {PAPER[0]:.3f} and {PAPER[1]:.3f} in the literature; it also sees code that no workload of this "
            "study runs."
        )
        missed = (
            f" Marked, but without effect in this study: {join_words(comparison.missed)}." if comparison.missed else ""
        )
        odd = f" Not marked, but with effect: {join_words(comparison.unexpected)}." if comparison.unexpected else ""
        sentences.append(summary + missed + odd)
    return sentences
