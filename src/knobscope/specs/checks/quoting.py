"""Values, aliases and units that would not stay where they are written: a line, a statement, a quoted text, a URL.

Values come from the spec, not from strangers. But one with a line break in it makes two lines of a configuration, and
one with the quote that surrounds it ends the text: the DBMS would be told something other than the table of runs says.
"""

import string
from collections.abc import Iterator

from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.writing import Writing
from knobscope.specs.reading.base import Misfit, Value

_QUOTES = "'\"`"


def find_breakouts(dbms: Dbms) -> Iterator[Misfit]:
    """Yield the values, aliases and units of knobs that break out of the text in which they are written."""
    for name, knob in dbms.knobs.items():
        writing = dbms.writing_of(name)
        if writing is None:
            continue
        written: list[tuple[tuple[Value, ...], str, str | None]] = [
            (("knobs", name, "alias"), "knob", knob.alias),
            (("knobs", name, "unit"), "unit", knob.unit),
        ]
        if knob.type == "boolean":
            written += [(("booleans", index), "value", text) for index, text in enumerate(dbms.booleans)]
        for index, value in enumerate(knob.values or []):
            written.append((("knobs", name, "values", index), "value", value if isinstance(value, str) else None))
        for location, field, text in written:
            if text is not None and (why := _why_it_breaks_out(writing, field, text)) is not None:
                yield Misfit(location, repr(text), f"text without {why}, as `{writing.kind}` of {name} writes it")


def _why_it_breaks_out(writing: Writing, field: str, text: str) -> str | None:
    """Say what must not be in a text that replaces {field} wherever a writing names it, None when all is well."""
    if writing.kind == "argv":
        return None  # an argument of its own, whatever is in it
    if "\n" in text:
        return "a line break"
    if writing.kind in ("client", "variable"):
        separators = [mark for mark in (";&" if writing.client else ",:; ") if mark in writing.value]
        return next((f"{mark!r}, which separates settings" for mark in separators if mark in text), None)
    templates = [template for template in (writing.sql, writing.line) if template is not None]
    reasons = (_why_it_ends(template, field, text) for template in templates)
    return next((reason for reason in reasons if reason is not None), None)


def _why_it_ends(template: str, field: str, text: str) -> str | None:
    quote = ""  # the one that is open where the template has got to
    for literal, name, _, _ in string.Formatter().parse(template):
        quote = _open_quote(literal, quote)
        if name != field:
            continue
        if quote and any(mark in text for mark in (quote, "\\")):
            return f"{quote} and backslashes"
        if not quote and _open_quote(text, ""):
            return "a quote that stays open"
        if not quote and ";" in _without_quoted(text):
            return "';'"
    return None


def _open_quote(text: str, quote: str) -> str:
    """Return the quote that is open after a text, when `quote` was before it."""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
    return quote


def _without_quoted(text: str) -> str:
    """Return a text without what stands in quotes."""
    unquoted, quote = "", ""
    for character in text:
        before, quote = quote, _open_quote(character, quote)
        unquoted += character if not before and not quote else ""
    return unquoted
