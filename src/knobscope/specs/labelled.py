"""Settings of DBMSs that knobscope does not run, with the I/O mechanism of each: `specs/dbms/labelled/DBMS.json`.

Nobody varies them. What a DBMS says of its settings, and a reader made of it, teaches the guess of a mechanism words
that the few DBMSs with a catalogue do not use.
"""

import json
from pathlib import Path

from pydantic import Field, ValidationError

from knobscope.specs.base import Name, SpecModel
from knobscope.specs.knob import Mechanism
from knobscope.specs.source import SpecErrors, SpecProblem, show_path

__all__ = ["LabelledSetting", "LabelledSettings", "read_labelled_settings"]


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
    expected = "settings with `description` and `mechanism`, as the other files beside it hold them"
    try:
        return LabelledSettings.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        problems = [
            SpecProblem(show_path(path), 1, ".".join(map(str, one["loc"])), str(one["msg"]), expected)
            for one in error.errors()
        ]
        raise SpecErrors(problems) from error
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise SpecErrors([SpecProblem(show_path(path), line, "", f"no JSON ({error})", expected)]) from error
