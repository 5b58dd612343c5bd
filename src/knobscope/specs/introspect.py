"""How a DBMS is asked for its own list of knobs."""

from typing import Annotated, Literal

from pydantic import Field

from knobscope.specs.base import SpecModel
from knobscope.specs.writing import Apply

__all__ = ["CATALOGUE_KEYS", "Introspection"]

#: Keys of the JSON object in the second column of `query`; all but `type` and `default` may be missing.
CATALOGUE_KEYS = ("type", "unit", "min", "max", "values", "default", "context", "description")


class Introspection(SpecModel):
    """What `knobscope introspect` asks the DBMS, and what the words of the answer mean."""

    query: str = Field(
        min_length=1,
        description="One statement that returns rows of (name, a JSON object). The keys of the object are columns of "
        "the catalogue: type, unit, min, max, values (a list, or a text with commas), default, context, description. "
        "Those that a DBMS does not have are left out.",
    )
    types: Annotated[dict[str, Literal["integer", "real", "boolean", "enum"]], Field(min_length=1)] = Field(
        description="What each word in `type` means; a setting whose word is missing here (a text, say) is no knob."
    )
    apply: Annotated[dict[str, Apply], Field(min_length=1)] = Field(
        description="What each word in `context` means; a setting whose word is missing here is no knob."
    )
    leave_out: list[str] = Field(
        default_factory=list,
        description="Settings that no study varies, though the DBMS would let it: ports, identity, encryption, what "
        "ends recovery or refuses clients. Names, in which * stands for any text.",
    )
    source: str = Field(pattern=r"^https?://", description="The page of the documentation that describes the knobs.")
