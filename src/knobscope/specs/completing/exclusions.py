"""Which knobs of a catalogue `all` leaves out, and why: `specs/exclusions/*.yaml`, data that users may add to."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import Field

from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.knob import find_repeated
from knobscope.specs.reading.base import Misfit, Name, SpecModel
from knobscope.specs.reading.source import load_document
from knobscope.specs.reading.validate import validate_document


class Exclusion(SpecModel):
    """Knobs that are left out for one reason."""

    reason: str = Field(min_length=1, description="Why, in words that a report shows behind the name of the knob.")
    knobs: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, description="Names of knobs, in which * stands for any text."
    )
    dbms: Annotated[list[Name], Field(min_length=1)] | None = Field(
        default=None, description="Only these DBMSs, and those that extend one of them; absent: all."
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield what is listed twice."""
        for key, listed in (("knobs", self.knobs), ("dbms", self.dbms)):
            yield from find_repeated((key,), listed or [])

    def concerns(self, dbms: Dbms, knob: str) -> bool:
        """Whether a knob of a DBMS is left out."""
        is_named = self.dbms is None or dbms.name in self.dbms or dbms.extends in self.dbms
        return is_named and any(fnmatchcase(knob, pattern) for pattern in self.knobs)


class Exclusions(SpecModel):
    """Knobs that `all` in a study leaves out of the catalogue of a DBMS; those that a spec describes stay."""

    description: str = Field(description="What kind of knobs they are.")
    exclusions: list[Exclusion] = Field(
        min_length=1, description="The first that fits a knob gives the reason; files count in order of their names."
    )


def read_exclusions(folder: Path) -> list[Exclusion]:
    """Return the exclusions of all files in a folder, in order; raises SpecErrors for a broken one."""
    files = sorted(folder.glob("*.yaml"))
    return [exclusion for file in files for exclusion in validate_document(load_document(file), Exclusions).exclusions]


def find_reason(exclusions: Sequence[Exclusion], dbms: Dbms, knob: str) -> str | None:
    """Return why a knob of a catalogue is left out, None when it is not."""
    return next((exclusion.reason for exclusion in exclusions if exclusion.concerns(dbms, knob)), None)
