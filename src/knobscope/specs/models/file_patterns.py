"""What the files of a DBMS are for, and which table lies in which: patterns and one question, no Python per DBMS."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from knobscope.specs.reading.base import Misfit, SpecModel

#: What a file is for; the last three are what the file system adds, and what no file was found for.
Role = Literal["data", "log", "temp", "other", "journal", "metadata", "unknown"]


def _names_table(pattern: str) -> str:
    if pattern.count("{table}") != 1:
        raise ValueError("a pattern with {table} in it, once")
    return pattern


class TableFiles(SpecModel):
    """Which table a file belongs to: patterns that name it, or a question that is asked once when data is loaded."""

    patterns: list[Annotated[str, AfterValidator(_names_table)]] = Field(
        default_factory=list, description="Patterns with {table} instead of its name, e.g. '*/{table}.ibd'."
    )
    query: str | None = Field(
        default=None,
        description="One statement that returns rows of (file, table): paths below the data directory. Files with a "
        "suffix behind . or _ belong to the same table.",
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield that it says nothing."""
        if not self.patterns and self.query is None:
            yield Misfit((), "neither `patterns` nor `query`", "one of them")


class Files(SpecModel):
    """Which files below the data directory hold what, for attribution.

    Patterns start at the data directory, and `*` stands for any characters, `/` too. The first group that matches
    counts, in the order temp, log, data.
    """

    data: list[str] = Field(default_factory=list, description="Tables and indexes.")
    log: list[str] = Field(default_factory=list, description="Write-ahead log, journal, binary log.")
    temp: list[str] = Field(default_factory=list, description="Spilled sorts, temporary tables.")
    tables: TableFiles | None = Field(
        default=None, description="Which table lies in which file; absent where all tables share files."
    )

    def with_tables(self, *patterns: str) -> "Files":
        """Return these files and those of tables that a study lays out; each pattern has {name} where the table is."""
        if not patterns:
            return self
        unique = dict.fromkeys(patterns)
        tables = self.tables.patterns if self.tables else []
        changes = {
            "data": [*self.data, *(pattern.replace("{name}", "*") for pattern in unique)],
            "tables": TableFiles(
                patterns=[*tables, *(pattern.replace("{name}", "{table}") for pattern in unique)],
                query=self.tables.query if self.tables else None,
            ),
        }
        return self.model_copy(update=changes)

    def role_of(self, file: str, *, is_path: bool = True) -> Role:
        """Return what a file is for; `is_path` False: only the last part of its path is known."""
        groups: tuple[tuple[Role, list[str]], ...] = (("temp", self.temp), ("log", self.log), ("data", self.data))
        for role, patterns in groups:
            if any(matches_pattern(pattern, file, is_path=is_path) for pattern in patterns):
                return role
        return "other"

    def table_of(self, file: str, answers: Mapping[str, str]) -> str | None:
        """Return the table in a file, given as path; `answers` is what the query answered: file -> table."""
        for path in _stems(file):
            if path in answers:
                return answers[path]
        for pattern in self.tables.patterns if self.tables else []:
            if match := _expression(pattern).fullmatch(file):
                return match["table"]
        return None


def matches_pattern(pattern: str, file: str, *, is_path: bool = True) -> bool:
    """Whether a pattern of a spec stands for a file; `is_path` False: only the last part of its path is known."""
    if not is_path:
        pattern = pattern.rpartition("/")[2]
        if not pattern.strip("*"):
            return False  # it says where a file lies, nothing about its name
    return _expression(pattern).fullmatch(file) is not None


@lru_cache
def _expression(pattern: str) -> re.Pattern[str]:
    escaped = re.escape(pattern).replace(r"\*", ".*").replace(r"\{table\}", "(?P<table>[^/]+)")
    return re.compile(escaped, re.DOTALL)


def _stems(file: str) -> list[str]:
    """Return the path, and without suffixes behind . or _ in its last part, longest first."""
    folder, slash, name = file.rpartition("/")
    cuts = [len(name), *(index for index in range(len(name) - 1, 0, -1) if name[index] in "._")]
    return [f"{folder}{slash}{name[:cut]}" for cut in cuts]
