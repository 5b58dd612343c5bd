"""Patterns that name the classes of a DBMS's threads."""

from typing import Annotated

from pydantic import AfterValidator, Field

from knobscope.thread_classes import class_of_thread

ThreadClass = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]


def _check_pattern(pattern: str) -> str:
    try:
        class_of_thread({"any": pattern}, "", "", serves=False)
    except ValueError as error:
        raise ValueError(f"a regular expression of RE2 ({error})") from error
    return pattern


ThreadPattern = Annotated[str, Field(min_length=1), AfterValidator(_check_pattern)]
