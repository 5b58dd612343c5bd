"""How a DBMS is asked for its own list of knobs."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from knobscope.patterns import check_pattern
from knobscope.specs.models.template import AskedKnob
from knobscope.specs.models.writing import Apply
from knobscope.specs.reading.base import Misfit, SpecModel, suggest

#: Keys of the JSON object in the second column of `query`; all but `type` and `default` may be missing. `built_in`,
#: `writing`, `readable` and `source` are those of a knob in a spec; `no_knob` says why a setting is none.
CATALOGUE_KEYS = (
    *("type", "unit", "min", "max", "values", "default", "built_in", "context", "category", "description"),
    *("writing", "readable", "source", "no_knob"),
)


class Trial(SpecModel):
    """A value that is given to every setting; what the DBMS says to it tells what the list of settings does not."""

    statements: Annotated[list[AskedKnob], Field(min_length=1)] = Field(
        description="Statements for each setting, with {knob} in them, on one connection: the words with which the "
        "first of them is refused, or else the answer of the last one."
    )
    says: Annotated[dict[Annotated[str, AfterValidator(check_pattern)], dict[str, str]], Field(min_length=1)] = Field(
        description="Regular expression (RE2) -> columns of the catalogue that an answer tells in which it is found; "
        "the first one that is found counts. Its named groups are columns, too. What was known before stays."
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield what is no column of the catalogue."""
        for pattern, columns in self.says.items():
            for name in [*columns, *re.compile(pattern).groupindex]:
                if name not in CATALOGUE_KEYS:
                    location = ("says", pattern, name) if name in columns else ("says", pattern)
                    yield Misfit(location, repr(name), suggest(name, list(CATALOGUE_KEYS)))


class Introspection(SpecModel):
    """What `knobscope introspect` asks the DBMS, and what the words of the answer mean."""

    query: str | None = Field(
        default=None,
        min_length=1,
        description="One statement that returns rows of (name, a JSON object). The keys of the object are columns of "
        "the catalogue: type, unit, min, max, values (a list, or a text with commas), default, context, category, "
        "description; built_in, writing, readable and source as in a knob; no_knob: why it is none. Those that a DBMS "
        "does not have are left out. Without it the settings are those that `readback` lists, and their values in "
        "force are the defaults.",
    )
    trials: list[Trial] = Field(
        default_factory=list, description="Where the list says too little: what is tried with every setting, in turn."
    )
    comments: Annotated[str, Field(pattern=r"^/")] | None = Field(
        default=None,
        description="The configuration file that the DBMS ships, where that says in comments what the list of settings "
        "does not: the comment above a setting is its description, the heading above that its category.",
    )
    types: Annotated[dict[str, Literal["integer", "real", "boolean", "enum"]], Field(min_length=1)] = Field(
        description="What each word in `type` means; a setting whose word is missing here (a text, say) is no knob. A "
        "setting of which no type is reported has one of the words integer, decimal, switch (on, off, true, ...), "
        "quantity "
        "(an integer with a unit behind it) and text, by the form of its default."
    )
    apply: Annotated[dict[str, Apply], Field(min_length=1)] | Apply = Field(
        description="What each word in `context` means; a setting whose word is missing here is no knob. One word "
        "instead: when changes of all settings take effect."
    )
    reach: Annotated[float, Field(gt=1)] | None = Field(
        default=None,
        description="The range of a number of which none is reported: its default divided by this, to its default "
        "times "
        "this. Without it, or when the default is not above 0, such a setting is no knob.",
    )
    leave_out: list[str] | dict[str, list[str]] = Field(
        default_factory=list,
        description="Settings that are no knobs, or that no study varies, though the DBMS would let it: ports, "
        "identity, encryption, what ends recovery or refuses clients. Names, in which * stands for any text; or "
        "reason -> names.",
    )
    source: str = Field(
        pattern=r"^https?://",
        description="The page of the documentation that describes the knobs; {knob} in it is the name of each, {KNOB} "
        "in capitals.",
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield types that a trial tells and `types` does not know: no setting could ever be a knob by them."""
        for index, trial in enumerate(self.trials):
            for pattern, columns in trial.says.items():
                word = columns.get("type")
                if word is not None and word not in self.types:
                    yield Misfit(
                        ("trials", index, "says", pattern, "type"), repr(word), suggest(word, list(self.types))
                    )

    def why_left_out(self, setting: str) -> str | None:
        """Return why a setting is no knob by `leave_out`, None for one that may be one."""
        groups = self.leave_out if isinstance(self.leave_out, dict) else {"no study varies it": self.leave_out}
        for reason, patterns in groups.items():
            if any(fnmatchcase(setting, pattern) for pattern in patterns):
                return reason
        return None
