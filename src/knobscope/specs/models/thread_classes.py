"""Patterns that name the classes of a DBMS's threads."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

ThreadClass = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"a regular expression ({error})") from error
    return pattern


ThreadPattern = Annotated[str, Field(min_length=1), AfterValidator(_check_pattern)]
