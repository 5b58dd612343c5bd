"""What the readers of other tools return: settings and figures of each run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: In the response of a run that failed; `rank` and its relatives know the word.
FAILED = "failed"


@dataclass(frozen=True)
class ToolRun:
    """One run; `figures` has the response, or FAILED there."""

    name: str
    settings: Mapping[str, Any]
    figures: Mapping[str, Any]


@dataclass(frozen=True)
class ToolRuns:
    """All runs of a tool's files; `notes` say what was left out, and how to read the response."""

    runs: Sequence[ToolRun]
    response: str
    notes: Sequence[str] = field(default=())

    @property
    def factors(self) -> list[str]:
        """Settings that differ between runs that did not fail."""
        values: dict[str, set[Any]] = {}
        for run in self.runs:
            for name, value in run.settings.items() if run.figures[self.response] != FAILED else ():
                values.setdefault(name, set()).add(value)
        return [name for name in values if len(values[name]) > 1]

    @property
    def told(self) -> list[ToolRun]:
        """All runs but those that failed before they said with which settings."""
        factors = self.factors
        return [
            run
            for run in self.runs
            if run.figures[self.response] != FAILED or all(run.settings.get(name) is not None for name in factors)
        ]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row of the table for each of these: name, settings, figures; a cell that a run lacks is empty."""
        settings = dict.fromkeys(name for run in self.runs for name in run.settings)
        for run in self.told:
            yield {"run": run.name, **settings, **run.settings, **run.figures}


def describe_direction(response: str, *, is_minimised: bool) -> str:
    """Return how to read a response."""
    return f"{response}: {'lower' if is_minimised else 'higher'} is better"
