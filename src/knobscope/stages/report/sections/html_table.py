"""Tables of the page: columns by their heads, each with the look of its cells."""

from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup

from knobscope.specs import Case
from knobscope.study_data.study import StudyData, name_case

TEXT, WORDS = Markup("<td>{}</td>"), Markup('<td class="words">{}</td>')
NUMBER = Markup('<td class="number">{}</td>')
CODE, CODE_WORDS = Markup("<td><code>{}</code></td>"), Markup('<td class="words"><code>{}</code></td>')
HEAD, CODE_HEAD = Markup('<th scope="row">{}</th>'), Markup('<th scope="row"><code>{}</code></th>')

#: Head of each column, and the look of its cells.
Columns = Sequence[tuple[str, Markup]]
#: Cells of a row: texts or numbers, which are escaped, or markup.
Cells = Sequence[object]


def render_table(columns: Columns, rows: Iterable[Cells], *, caption: str = "", sortable: str = "") -> Markup:
    """Return a table, empty without rows; `sortable` is the name under which a reader can sort and filter it."""
    lines = [Markup().join(look.format(cell) for (_, look), cell in zip(columns, row, strict=True)) for row in rows]
    if not lines:
        return Markup()
    start = Markup('<table class="sortable" data-name="{}">').format(sortable) if sortable else Markup("<table>")
    heads = Markup().join(Markup("<th>{}</th>").format(head) for head, _ in columns)
    parts = [
        Markup('<div class="scroll">') + start,
        *([Markup("<caption>{}</caption>").format(caption)] if caption else []),
        Markup("<thead><tr>{}</tr></thead>").format(heads),
        Markup("<tbody>"),
        *map(Markup("<tr>{}</tr>").format, lines),
        Markup("</tbody></table></div>"),
    ]
    return Markup("\n").join(parts)


def tables_by_case(
    data: StudyData, columns: Columns, list_rows: Callable[[StudyData, Case], Iterable[Cells]]
) -> list[tuple[str, Markup]]:
    """Return the name of each shown case that has rows, with the table of these."""
    tables = [(name_case(case), render_table(columns, list_rows(data, case))) for case in data.shown_cases]
    return [(name, table) for name, table in tables if table]


def strengthen(text: str, is_strong: bool) -> str:
    """Return a text, in bold where it matters."""
    return Markup("<strong>{}</strong>").format(text) if is_strong else text


def annotate(text: object, note: object) -> object:
    """Return a text with a small note, if there is one."""
    return Markup("{} <small>{}</small>").format(text, note) if note else text


def format_code(text: str) -> Markup:
    """Return a text as code."""
    return Markup("<code>{}</code>").format(text)


def break_name(name: str) -> Markup:
    """Return a name that may end its line behind an underscore: ORDER_STATUS."""
    return Markup("_<wbr />").join(name.split("_"))
