"""The parts of documents that are models. Apart from `documents`: commands without models start in half the time."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a document: exactly these keys."""

    model_config = ConfigDict(extra="forbid")
