"""Regular expressions of specs: RE2 searches in a time that is linear in the text, so no pattern takes for ever."""

import re
from functools import lru_cache
from typing import Any

#: What Python and RE2 understand alike: to ask RE2, DuckDB would have to be imported whenever specs are read.
_PLAIN = re.compile(r"(?:\\[dsw.()\[\]|*+?^$-]|\((?:\?P<\w+>|(?!\?))|\[(?!:)|[^\\({\[\x80-\U0010ffff])*", re.ASCII)
_FIRST = """
    SELECT list_position(list_transform(
        $patterns, lambda pattern: len(list_filter($texts, lambda text: regexp_matches(text, pattern))) > 0
    ), true)
"""


def check_pattern(pattern: str) -> str:
    """Return a regular expression of RE2; ValueError: it is none."""
    try:
        re.compile(pattern)
        if not _PLAIN.fullmatch(pattern):
            find_first((pattern,), "")
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        raise ValueError(f"a regular expression of RE2 ({error})") from error
    return pattern


@lru_cache(maxsize=4096)
def find_first(patterns: tuple[str, ...], *texts: str) -> int | None:
    """Return the index of the first pattern that is found in a text; ValueError: one is no expression of RE2."""
    if not patterns:
        return None
    position = _ask(_FIRST, {"patterns": list(patterns), "texts": [_printable(text) for text in texts]})
    return position - 1 if position else None


def read_groups(pattern: str, text: str) -> dict[str, str]:
    """Return what the named groups of a pattern have found in a text; those that have found nothing are missing."""
    names = {number: name for name, number in re.compile(pattern).groupindex.items()}
    if not names:
        return {}
    groups = [names.get(number, f"group {number}") for number in range(1, max(names) + 1)]
    asked = {"text": _printable(text), "pattern": pattern, "groups": groups}
    found = _ask("SELECT regexp_extract($text, $pattern, $groups)", asked)
    return {name: found[name] for name in names.values() if found[name]}


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _ask(question: str, values: dict[str, Any]) -> Any:
    import duckdb

    try:
        with duckdb.cursor() as cursor:
            [(answer,)] = cursor.execute(question, values).fetchall()
    except duckdb.InvalidInputException as error:
        raise ValueError(str(error).removeprefix("Invalid Input Error: ")) from error
    return answer
