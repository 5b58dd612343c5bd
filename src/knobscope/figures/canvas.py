"""Draws SVG by hand: small, follows the page's colours in light and dark, and needs no ids.

Marks get classes instead of colours; `figures.css` gives them their look, in the page and in files of their own.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Literal

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

#: Average advance of a letter of the page's sans-serif fonts, relative to the font size; generous.
_LETTER = 0.56
FONT_SIZE = 12


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Return about how wide a text will be, in pixels."""
    return len(text) * size * _LETTER


def fit_text(text: str, pixels: float) -> str:
    """Return a text cut to a width; its end stays, at which paths and settings differ."""
    most = int(pixels / text_width("m"))
    return text if len(text) <= most else f"…{text[-(most - 1) :]}"


def cut_text(text: str, pixels: float, size: float = 11) -> str:
    """Return a text cut to a width; its beginning stays."""
    most = max(int(pixels / text_width("m", size)), 2)
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Canvas:
    """Collects the marks of one picture; coordinates in pixels from the top left."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self._parts: list[str] = []

    def line(self, start: Point, end: Point, look: str) -> None:
        """Draw a straight line."""
        (x1, y1), (x2, y2) = start, end
        self._add("line", look, {"x1": x1, "y1": y1, "x2": x2, "y2": y2})

    def rect(self, x: float, y: float, width: float, height: float, look: str, tip: str = "") -> None:
        """Draw a rectangle; sizes below zero count as zero."""
        box = {"x": x, "y": y, "width": max(width, 0.0), "height": max(height, 0.0)}
        self._add("rect", look, box, tip)

    def dot(self, x: float, y: float, radius: float, look: str, tip: str = "") -> None:
        """Draw a circle."""
        self._add("circle", look, {"cx": x, "cy": y, "r": radius}, tip)

    def diamond(self, x: float, y: float, radius: float, look: str, tip: str = "") -> None:
        """Draw a square on its corner."""
        self.path([(x - radius, y), (x, y - radius), (x + radius, y), (x, y + radius)], look, tip, closed=True)

    def path(self, points: Sequence[Point], look: str, tip: str = "", *, closed: bool = False) -> None:
        """Draw a line through points, or the area inside it."""
        if points:
            steps = "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
            self._add("path", look, {"d": f"M{steps}{'Z' if closed else ''}"}, tip)

    def points(self, points: Sequence[Point], look: str) -> None:
        """Draw many equal points in one mark, without tips: a path of strokes that have no length."""
        if points:
            self._add("path", look, {"d": "".join(f"M{_number(x)} {_number(y)}h0" for x, y in points)})

    def ticks(self, x: Sequence[float], top: float, bottom: float, look: str) -> None:
        """Draw many equal upright lines in one mark."""
        if x:
            self._add(
                "path", look, {"d": "".join(f"M{_number(position)} {_number(top)}V{_number(bottom)}" for position in x)}
            )

    def text(self, x: float, y: float, text: str, look: str = "", anchor: Anchor = "start") -> None:
        """Write a text; `y` is its base line."""
        attributes: dict[str, float | str] = {"x": x, "y": y}
        if anchor != "start":
            attributes["text-anchor"] = anchor
        self._add("text", look, attributes, content=escape(text, quote=False))

    def svg(self, description: str, look: str = "") -> str:
        """Return the picture as an <svg> element; the description is what a screen reader says."""
        return self._wrap(description, look, f'viewBox="0 0 {_number(self.width)} {_number(self.height)}"')

    def standalone(self, description: str, margin: float = 14) -> str:
        """Return the picture as an <svg> element with a size and a margin of its own."""
        width, height = _number(self.width + 2 * margin), _number(self.height + 2 * margin)
        corner = _number(-margin)
        box = f'viewBox="{corner} {corner} {width} {height}" width="{width}" height="{height}"'
        return self._wrap(description, "standalone", box)

    def _wrap(self, description: str, look: str, size: str) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{f"plot {look}".strip()}" {size} role="img" '
            f'aria-label="{escape(description)}">{"".join(self._parts)}</svg>'
        )

    def _add(
        self,
        tag: str,
        look: str,
        attributes: Mapping[str, float | str],
        tip: str = "",
        content: str = "",
    ) -> None:
        parts = [f'{name}="{escape(_number(value))}"' for name, value in attributes.items()]
        if look:
            parts.insert(0, f'class="{escape(look)}"')
        if tip:
            content = f"<title>{escape(tip, quote=False)}</title>"
        inside = f">{content}</{tag}>" if content else "/>"
        self._parts.append(f"<{tag} {' '.join(parts)}{inside}")


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
