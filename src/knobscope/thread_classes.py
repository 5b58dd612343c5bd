"""What the threads of a DBMS are for; apart from the models of specs, which take long to import."""

import re
from collections.abc import Mapping
from functools import lru_cache

#: The class of threads that serve clients: an operation waits for what these wait for.
SESSION = "session"
#: DuckDB searches with RE2, in a time that is linear in the text: no pattern of a spec takes for ever.
_SEARCH = """
    SELECT list_position(list_transform(
        $patterns, lambda pattern: regexp_matches($name, pattern) OR regexp_matches($title, pattern)
    ), true)
"""


def class_of_thread(patterns: Mapping[str, str], name: str, title: str, *, serves: bool) -> str:
    """Return the class of a thread by its name and the title of its process, in which patterns are searched.

    The first pattern that is found counts, else whether it `serves` clients, else its name without its number.
    """
    if (first := _find_first(tuple(patterns.values()), name, title)) is not None:
        return list(patterns)[first]
    if serves:
        return SESSION
    printable = re.sub(r"[^ -~]", "", name)
    return re.sub(r"(?<![A-Za-z0-9])\d+|\d+$", "", printable).strip(" -_/:#.[]") or "(no name)"


@lru_cache(maxsize=4096)
def _find_first(patterns: tuple[str, ...], name: str, title: str) -> int | None:
    """Return the index of the first pattern that is found; ValueError: one is no regular expression of RE2."""
    if not patterns:
        return None
    import duckdb

    texts = {key: text.encode(errors="replace").decode() for key, text in (("name", name), ("title", title))}
    try:
        with duckdb.cursor() as cursor:
            [(position,)] = cursor.execute(_SEARCH, {"patterns": list(patterns), **texts}).fetchall()
    except duckdb.InvalidInputException as error:
        raise ValueError(str(error).removeprefix("Invalid Input Error: ")) from error
    return position - 1 if position else None
