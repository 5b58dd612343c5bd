"""What all spec models share: unknown keys are errors, values are not converted behind the user's back."""

import json
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

#: A value of a knob as YAML gives it.
Value = bool | int | float | str

_NAME = r"^[a-z][a-z0-9_-]{0,62}$"


def value_text(value: Value) -> str:
    """Return a value as tables hold it: JSON, words without quotes."""
    return value if isinstance(value, str) else json.dumps(value)


class Misfit(ValueError):  # noqa: N818 - pydantic turns it into an entry of its own error
    """A value that does not fit its neighbours; knows the key, below its model, that is to be changed."""

    def __init__(self, location: tuple[Value, ...], found: str, expected: str) -> None:
        super().__init__(f"found {found}; expected {expected}")
        self.location = location
        self.found = found
        self.expected = expected


class Misfits(ValueError):  # noqa: N818 - pydantic turns it into an entry of its own error
    """All values of one model that do not fit together; each key of the `model` is right for itself."""

    def __init__(self, misfits: list[Misfit], model: BaseModel) -> None:
        super().__init__("; ".join(map(str, misfits)))
        self.misfits = misfits
        self.model = model


class SpecModel(BaseModel):
    """Base of every model that is read from YAML."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield what does not fit between the keys of this model; each model says it for itself."""
        return iter(())

    @model_validator(mode="after")
    def _raise_misfits(self) -> Self:
        if misfits := list(self.find_misfits()):
            raise Misfits(misfits, self)
        return self


def suggest(word: object, candidates: list[str], more: Iterable[str] = ()) -> str:
    """Return what was expected instead of an unknown word: the nearest one of all there are, or the known ones."""
    guess = get_close_matches(str(word), [*candidates, *more], n=1)
    return f"{guess[0]} (did you mean that?)" if guess else f"one of {', '.join(candidates)}"


def check_name(name: str) -> str:
    """Return the name when it is safe as a folder name, a Snakemake wildcard and a resource name."""
    if not re.fullmatch(_NAME, name):
        raise ValueError("a name of lower-case letters, digits, '-' and '_' that begins with a letter")
    return name


#: Name of a spec. The pattern is for editors, the check for people.
Name = Annotated[str, AfterValidator(check_name), Field(json_schema_extra={"pattern": _NAME})]


def check_one_line(text: str) -> str:
    """Return text that stays one line wherever it is written."""
    if "\n" in text:
        raise ValueError("text in one line")
    return text
