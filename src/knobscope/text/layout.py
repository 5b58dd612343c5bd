"""Numbers and tables as text for a terminal."""

from collections.abc import Sequence

__all__ = ["ABSENT", "align", "number", "percent"]

#: What stands where nothing is known.
ABSENT = "-"


def number(value: float | None, digits: int) -> str:
    """Return a number with so many digits after the point."""
    return ABSENT if value is None else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """Return a share of 1 as per cent."""
    return ABSENT if value is None else f"{100 * value:.1f} %"


def align(table: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as lines: the first column to the left, all others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = []
    for first, *rest in table:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
