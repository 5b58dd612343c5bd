"""Which knobs of a DBMS a study looks at, and which of their values."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, GetCoreSchemaHandler, Tag
from pydantic_core import CoreSchema, core_schema

from knobscope.specs.models.knob import Ends, Knob, Mechanism, find_repeated
from knobscope.specs.models.writing import Apply
from knobscope.specs.reading.base import Misfit, SpecModel, Value

#: A name in which * stands for any text, as in `leave_out` of a DBMS spec.
KnobPattern = Annotated[str, Field(min_length=1)]


class KnobChoice(SpecModel):
    """Which values of a knob the study looks at; all, or a spread over its range, when nothing is said."""

    values: Annotated[list[Value], Field(min_length=1)] | None = Field(
        default=None, description="Just these values (the one of the default configuration is always one more)."
    )
    range: Ends | None = Field(default=None, description="A part of the knob's range.")

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield both ways at once, and values that are listed twice."""
        if self.values is not None and self.range is not None:
            yield Misfit(("range",), "both `values` and `range`", "one of them")
        yield from find_repeated(("values",), self.values or [])


class AllKnobs(SpecModel):
    """Which of all knobs of a DBMS the study varies; without a filter all that are not left out for their danger."""

    apply: Annotated[list[Apply], Field(min_length=1)] | None = Field(
        default=None, description="Only knobs whose changes take effect then: `[dynamic]` leaves out what needs more."
    )
    mechanism: Annotated[list[Mechanism], Field(min_length=1)] | None = Field(
        default=None,
        description="Only knobs with one of these I/O mechanisms: the same list for several DBMSs compares what each "
        "does about it.",
    )
    category: Annotated[list[KnobPattern], Field(min_length=1)] | None = Field(
        default=None,
        description="Only knobs that the DBMS puts into one of these categories, in which * stands for any text, e.g. "
        "`Write-Ahead Log*`.",
    )
    names: Annotated[list[KnobPattern], Field(min_length=1)] | None = Field(
        default=None, description="Only knobs with one of these names, in which * stands for any text."
    )
    except_: list[KnobPattern] = Field(
        default_factory=list, alias="except", description="No knob with one of these names; * as in `names`."
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield what is listed twice."""
        for key, listed in self._filters().items():
            yield from find_repeated((key,), listed or [])

    def _filters(self) -> dict[str, Sequence[str] | None]:
        return {
            "apply": self.apply,
            "mechanism": self.mechanism,
            "category": self.category,
            "names": self.names,
            "except": self.except_,
        }

    def wants(self, name: str, knob: Knob) -> bool:
        """Whether a knob passes the filters."""
        return (
            (self.apply is None or knob.apply in self.apply)
            and (self.mechanism is None or knob.mechanism in self.mechanism)
            and (self.category is None or _matches(knob.category or "", self.category))
            and (self.names is None or _matches(name, self.names))
            and not _matches(name, self.except_)
        )


def _matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class KnobSelection(SpecModel):
    """The knobs of one DBMS that a study varies. Every other key is the name of a knob, with a choice of its values.

    What is said of a knob by name wins over `all`, also over exclusions, by which `all` leaves knobs out.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, KnobChoice | None] = Field(init=False)

    all: AllKnobs | None = Field(
        default=None,
        description="All knobs of the DBMS, those of its catalogue included (docs/how-to/introspect.md), or those that "
        "pass a filter. Absent: just the knobs that are named.",
    )


def _tell_form(written: object) -> str:
    return "word" if isinstance(written, str) else "selection"


#: The two forms; which one is meant is told before it is read, so that a mistake is explained in terms of that one.
_Written = Annotated[
    Annotated[Literal["all"], Tag("word")] | Annotated[KnobSelection, Tag("selection")], Discriminator(_tell_form)
]


class KnobGroup(dict[str, KnobChoice | None]):
    """Knob -> choice, as everything behind the specs knows the knobs of a DBMS; `whole` is what `all` asked for.

    It is written as `all`, or as a `KnobSelection`. When a study is loaded, `whole` becomes knobs like those that are
    named.
    """

    def __init__(self, choices: dict[str, KnobChoice | None], whole: AllKnobs | None) -> None:
        super().__init__(choices)
        self.whole = whole

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read it from either form; what it is written to is the dictionary."""
        return core_schema.no_info_after_validator_function(
            cls._read,
            handler.generate_schema(_Written),
            serialization=core_schema.plain_serializer_function_ser_schema(_write),
        )

    @classmethod
    def _read(cls, written: Literal["all"] | KnobSelection) -> "KnobGroup":
        if not isinstance(written, KnobSelection):
            return cls({}, AllKnobs())
        asks = "all" in written.model_fields_set
        return cls(dict(written.__pydantic_extra__ or {}), (written.all or AllKnobs()) if asks else None)


def _write(group: dict[str, BaseModel | None]) -> Any:
    return {name: choice.model_dump(mode="json") if choice else None for name, choice in group.items()}
