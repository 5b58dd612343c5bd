"""A part of a DBMS's data that may lie on another device: how it gets there, how one asks where it is."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from knobscope.specs.models.template import PartKnob, PartStatement
from knobscope.specs.models.writing import Writing
from knobscope.specs.reading.base import Misfit, SpecModel

#: Value of a layout knob: the part lies where the data lies.
WITH_DATA = "data"
_KNOB_PREFIX = "device."
#: Keys of a part that go with some of the ways only.
_WAYS = {"files": ("writing", "load"), "setting": ("writing",), "pointer": ("load",), "session": ("load",)}

#: A part of a spec; in a study `table.stock`, say, when the part is one of many that have names.
PartName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


def part_knob(part: str) -> str:
    """Return the name of the knob that says on which device a part lies."""
    return f"{_KNOB_PREFIX}{part}"


class Part(SpecModel):
    """One part: a directory that becomes a symbolic link, files that an option of the server leads to, or a tablespace.

    Exactly one of `link`, `writing` and `load` says how.
    """

    description: str = Field(description="What it is.")
    link: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*$",
        description="A directory below the data directory: its files are moved to the other device, and a symbolic "
        "link is left in its stead. Made when it is not there.",
    )
    writing: Writing | None = Field(
        default=None,
        description="How the server is told another directory, which is {value}; written like a knob, when the part "
        "does not lie with the data.",
    )
    files: list[str] = Field(
        default_factory=list,
        description="With `writing`: the files of the part, as patterns from the data directory on. They are moved "
        "before the server starts, and looked for when it runs. With `load`: files that only this part has, as "
        "patterns with {name}, which is also the table in them.",
    )
    setting: str | None = Field(
        default=None,
        description="With `writing`: the setting that tells the directory in force, where files come and go.",
    )
    load: list[PartStatement] | None = Field(
        default=None,
        min_length=1,
        description="Statements after loading that make a tablespace in {directory} and put the part into it. The "
        "symbolic link that the DBMS makes to it (or what `pointer` or `session` say) leads to another device later. "
        "{part} is the name of the "
        "part in the study; where {name} occurs, the study says of what: `table.stock` of the part `table`.",
    )
    pointer: PartStatement | None = Field(
        default=None,
        description="With `load`: pattern of the files below the data directory that hold the path of a file of the "
        "part, where the DBMS makes no symbolic link. Each run gets them with the path of its own copy.",
    )
    session: list[PartStatement] | None = Field(
        default=None,
        min_length=1,
        description="With `load`: statements on every connection that carries load, which open the part in "
        "{directory}, where the DBMS finds it in no other way.",
    )
    knob: PartKnob | None = Field(
        default=None,
        description="With `session`: the statement that sets a knob for the part, where that under `writing` "
        "of the DBMS does not reach it; with {knob} and {value}.",
    )
    source: str = Field(pattern=r"^https?://", description="The page of the documentation that describes the way.")

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield that it is not exactly one way, and keys that do not belong to this way."""
        kinds = [kind for kind in ("link", "writing", "load") if getattr(self, kind) is not None]
        if len(kinds) != 1:
            found = f"both `{kinds[0]}` and `{kinds[1]}`" if kinds else "none of `link`, `writing`, `load`"
            yield Misfit((), found, "one of them")
            return
        if self.link is not None and ".." in self.link.split("/"):
            yield Misfit(("link",), repr(self.link), "a directory below the data directory")
        if self.load is not None and any(text.count("{name}") != 1 for text in self.files):
            yield Misfit(("files",), repr(self.files), "patterns with {name} in them, once")
        for key, ways in _WAYS.items():
            if getattr(self, key) and kinds[0] not in ways:
                expected = f"it with {' or '.join(f'`{way}`' for way in ways)} only"
                yield Misfit((key,), f"this key together with `{kinds[0]}`", expected)
        if self.pointer and self.session:
            yield Misfit(("session",), "both `pointer` and `session`", "one of them")
        if self.knob and not self.session:
            yield Misfit(("knob",), "no `session`", "statements that open the part, or no `knob`")
        if self.writing is not None:
            if self.writing.by_value is not None:
                yield Misfit(("writing", "by_value"), "this key", "{value} in one of the other ways: it is a directory")
            elif (missing := self.writing.missing_part(named=False)) is not None:
                yield Misfit(("writing", self.writing.kind), "no directory", f"it to contain {missing}")
            if not self.files and self.setting is None:
                yield Misfit(("files",), "neither `files` nor `setting`", "one of them, to see where the part lies")
        if self.load is not None and not any("{directory}" in text for text in self.load):
            yield Misfit(("load",), "no directory", "one of the statements to contain {directory}")

    @property
    def is_named(self) -> bool:
        """Whether a study has to say of what: `table.stock`."""
        return any("{name}" in text for text in self.load or [])
