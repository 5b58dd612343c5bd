"""Settings of DBMSs without a catalogue, with the I/O mechanism of each: `specs/dbms/labelled/DBMS.json`.

Nobody varies them. What a DBMS says of its settings, and a reader made of it, teaches the guess of a mechanism words
that the few DBMSs with a catalogue do not use.
"""

from pathlib import Path

from pydantic import Field

from knobscope.specs.models.knob import KnobProperty, Mechanism
from knobscope.specs.reading.base import Name, SpecModel
from knobscope.specs.reading.json_file import read_json_file


class LabelledSetting(SpecModel):
    """A setting of which no more is known than what it says of itself."""

    description: str = Field(min_length=1, description="What the DBMS says of it, in one sentence.")
    mechanism: Mechanism = Field(description="The I/O mechanism that it steers.")


class LabelledSettings(SpecModel):
    """Settings of one DBMS, by name."""

    dbms: Name = Field(description="DBMS, by the name of its file.")
    version: str = Field(description="Version of the file that was read.")
    source: str = Field(description="Where the texts are from, their licence, and who labelled them.")
    knobs: dict[str, LabelledSetting] = Field(min_length=1, description="Name -> text and label.")


def read_labelled_settings(path: Path) -> LabelledSettings:
    """Return the settings in a file; SpecErrors where it holds something else."""
    expected = "settings with `description` and `mechanism`, as the other files next to it hold them"
    return read_json_file(path, LabelledSettings, expected)


class LabelledProperties(SpecModel):
    """Which property some of these settings have: `specs/dbms/properties.json`."""

    source: str = Field(description="How they were chosen, and who labelled them.")
    properties: dict[Name, dict[str, KnobProperty]] = Field(min_length=1, description="DBMS -> setting -> property.")


def read_labelled_properties(path: Path) -> LabelledProperties:
    """Return the labels in a file; SpecErrors where it holds something else."""
    return read_json_file(path, LabelledProperties, "`source` and `properties`, by DBMS and setting")
