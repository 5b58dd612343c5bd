"""Patterns that name the classes of a DBMS's threads."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from knobscope.thread_classes import class_of_thread

ThreadClass = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
#: What Python and RE2 understand alike: to ask RE2, DuckDB would have to be imported whenever specs are read.
_PLAIN = re.compile(r"(?:\\[dsw.()\[\]|*+?^$-]|\((?!\?)|\[(?!:)|[^\\({\[\x80-\U0010ffff])*")


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
        if not _PLAIN.fullmatch(pattern):
            class_of_thread({"any": pattern}, "", "", serves=False)
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        raise ValueError(f"a regular expression of RE2 ({error})") from error
    return pattern


ThreadPattern = Annotated[str, Field(min_length=1), AfterValidator(_check_pattern)]
