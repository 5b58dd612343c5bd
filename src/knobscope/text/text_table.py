"""Tables as text for a terminal."""

from collections.abc import Sequence

from knobscope.text.formats import loosen_units


def align(table: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as lines with plain spaces: the first column to the left, all others to the right.

    A row stays a line: a line break in a cell, which the name of a file may have, is shown as `\\n`.
    """
    table = [["\\n".join(cell.splitlines()) for cell in row] for row in table]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = []
    for first, *tail in table:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(tail, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return loosen_units("\n".join(lines))
