"""What becomes of the texts of TPC-DS's queries: answers that do not depend on chance, and the words of each DBMS."""

import re
from itertools import accumulate

_LIMIT = re.compile(r"\blimit\s+\d+\s*$", re.IGNORECASE)
_ORDER = re.compile(r"\border\s+by\b", re.IGNORECASE)
_ORDER_ALL = re.compile(r"\border\s+by\s+all\b", re.IGNORECASE)
#: DuckDB has nulls last in either direction, PostgreSQL counts null as the greatest value.
_DESCENDING = re.compile(r"\bdesc\b(?!\s+nulls\b)", re.IGNORECASE)
#: A slash before anything but a number, or a literal, in which a slash means nothing.
_DIVISION = re.compile(r"'[^']*'|/\s*(?![\s\d])")
_NAME = re.compile(r"[\w.]*")
_WINDOW = re.compile(r"\s+over\s*(?=\()", re.IGNORECASE)
#: Pieces of single queries that only DuckDB takes or that mean something else there, and what PostgreSQL gets for them.
_FOR_POSTGRESQL = {
    # concat keeps the blanks that fill up a char
    84: (
        "concat(concat(coalesce(c_last_name, '') , ', '), coalesce(c_first_name, ''))",
        "coalesce(c_last_name, '') || ', ' || coalesce(c_first_name, '')",
    ),
}


def in_order(text: str, columns: int) -> str:
    """Return a query whose order goes on over all its columns, so that its LIMIT cuts off the same rows everywhere."""
    text = text.strip().removesuffix(";").rstrip()
    positions = ", ".join(map(str, range(1, columns + 1)))
    if _ORDER_ALL.search(text):
        return _ORDER_ALL.sub(f"ORDER BY {positions}", text)
    limit = _LIMIT.search(text)
    if limit is None:
        return text
    question = text[: limit.start()].rstrip()
    joint = ", " if _ends_in_order(question) else "\nORDER BY "
    return f"{question}{joint}{positions}\n{limit.group()}"


def _ends_in_order(question: str) -> bool:
    """Return whether the last ORDER BY is that of the query itself, not one inside of brackets."""
    *before, tail = _ORDER.split(question)
    depth = list(accumulate((char == "(") - (char == ")") for char in tail))
    return bool(before) and min(depth) >= 0


def with_safe_divisors(text: str) -> str:
    """Return a query in which dividing by zero gives null. DuckDB makes it infinity, PostgreSQL an error."""
    result, position = "", 0
    for match in _DIVISION.finditer(text):
        start = match.end()
        if match.group().startswith("/") and start > position:
            end = _end_of_operand(text, start)
            result += f"{text[position:start]}nullif({with_safe_divisors(text[start:end])}, 0)"
            position = end
    return result + text[position:]


def _end_of_operand(text: str, start: int) -> int:
    """Return where a name, a call (with its window) or something in brackets ends."""
    name = _NAME.match(text, start)
    end = _end_of_brackets(text, name.end() if name else start)
    window = _WINDOW.match(text, end)
    return _end_of_brackets(text, window.end()) if window else end


def _end_of_brackets(text: str, start: int) -> int:
    """Return where brackets that open at `start` are closed; `start` itself when none open there."""
    if text[start : start + 1] != "(":
        return start
    depth = accumulate((char == "(") - (char == ")") for char in text[start:])
    return start + next(index for index, level in enumerate(depth) if level == 0) + 1


def translate(number: int, text: str, dbms: str) -> str:
    """Return a query's text for a DBMS, by the name that its driver gives.

    Raises ValueError when the text lacks the piece that is to be replaced: it is not the one that was looked at.
    """
    if dbms != "PostgreSQL":
        return text
    if number in _FOR_POSTGRESQL:
        piece, replacement = _FOR_POSTGRESQL[number]
        if piece not in text:
            raise ValueError(f"query {number} of TPC-DS has no {piece!r}")
        text = text.replace(piece, replacement)
    return _DESCENDING.sub("DESC NULLS LAST", text)
