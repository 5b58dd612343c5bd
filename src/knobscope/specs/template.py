"""Placeholders in commands, statements and properties: what may stand in braces, and where."""

import string
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator

__all__ = ["PLACEHOLDERS", "AskedKnob", "Place", "PlaceOrKnobs", "PlaceOrPassword", "WrittenKnob"]

#: What a command, a connection or a statement may contain in braces.
PLACEHOLDERS = {
    "data": "the data directory of this run",
    "port": "a free port on 127.0.0.1",
    "socket": "a private directory for sockets",
    "password": "a random password, made for this data directory (only in `connection.properties`)",
    "password_file": "a private file that holds the password",
    "knobs": "the knobs of the configuration; an argument of its own (only in `init` and `start`)",
    "knob": "name of the knob (only under `writing` and `readback`)",
    "value": "value of the knob (only under `writing`)",
}
#: For commands: everybody sees the arguments of a process, so the password is not among them.
_PLACES = ("data", "port", "socket", "password_file")


def _allow(*allowed: str) -> Callable[[str], str]:
    """Return a check that lets these placeholders pass."""

    def check(text: str) -> str:
        if "knobs" in allowed and text == "{knobs}":
            return text
        try:
            parts = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError("balanced braces; {{ and }} stand for plain ones") from error
        for _, field, form, conversion in parts:
            if field is None:
                continue
            if field == "knobs" and "knobs" in allowed:
                raise ValueError("{knobs} as an argument of its own")
            if field not in allowed or form or conversion:
                shown = ", ".join(f"{{{name}}}" for name in allowed)
                raise ValueError(f"some of the placeholders {shown} ({{{{ and }}}} stand for plain braces)")
        return text

    return check


#: An argument of a command.
Place = Annotated[str, AfterValidator(_allow(*_PLACES))]
#: A property of a client, which travels in a private file.
PlaceOrPassword = Annotated[str, AfterValidator(_allow(*_PLACES, "password"))]
#: An argument of a command that also receives the knobs.
PlaceOrKnobs = Annotated[str, AfterValidator(_allow(*_PLACES, "knobs"))]
#: How one knob is written.
WrittenKnob = Annotated[str, AfterValidator(_allow("knob", "value", *_PLACES))]
#: How one knob is asked for.
AskedKnob = Annotated[str, AfterValidator(_allow("knob"))]
