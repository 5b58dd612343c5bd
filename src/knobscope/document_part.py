"""The parts of documents that are models. Apart from `documents`: commands without models start in half the time."""

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import GenerateJsonSchema


class Part(BaseModel):
    """A part of a document: exactly these keys."""

    model_config = ConfigDict(extra="forbid")


class UntitledSchema(GenerateJsonSchema):
    """Writes JSON Schemas without titles that only repeat the key."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return that no key has its own name as a title."""
        return False
