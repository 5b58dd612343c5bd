"""How a DBMS lives: commands that make, start and end it, how it is asked, reached and loaded."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from knobscope.specs.base import Misfit, SpecModel
from knobscope.specs.template import AskedKnob, Place, PlaceOrKnobs, PlaceOrPassword

__all__ = ["SQL_BINDING", "Command", "Connection", "Lifecycle", "Loading", "Readback"]

Command = Annotated[list[Place], Field(min_length=1)]
CommandWithKnobs = Annotated[list[PlaceOrKnobs], Field(min_length=1)]
Signal = Literal["INT", "TERM", "QUIT"]
AnswerParser = Literal["pairs", "table", "json", "ini", "wiredtiger"]


class Stop(SpecModel):
    """How the server is asked to end after loading."""

    signal: Signal = Field(default="TERM", description="The signal of an orderly stop: all data is on disk afterwards.")
    command: Command | None = Field(default=None, description="A command that is run instead of sending the signal.")
    timeout_s: int = Field(default=30, gt=0, description="Seconds it may take.")


class Lifecycle(SpecModel):
    """Commands as argument lists, never seen by a shell; the first argument is a name under `programs`."""

    init: CommandWithKnobs | None = Field(
        default=None, description="Makes an empty data directory in {data}; {knobs} are the load-time knobs."
    )
    start: CommandWithKnobs = Field(description="Runs the server in the foreground; {knobs} are all other knobs.")
    ready: Command | None = Field(
        default=None, description="Ends with 0 when the server answers; without it, {port} must accept connections."
    )
    ready_timeout_s: int = Field(default=60, gt=0, description="Seconds until a start counts as failed.")
    setup: list[Command] = Field(
        default_factory=list,
        description="Commands once, before data is loaded, when the server answers: e.g. make a database.",
    )
    stop: Stop = Field(default=Stop(), description="How it is stopped.")
    discard: Signal | None = Field(
        default=None,
        description="Signal that ends it at once, without saving anything, but lets it return shared memory; absent: "
        "it is killed. Runs end like this, since their data is thrown away.",
    )


class Readback(SpecModel):
    """How the effective values are asked for: by exactly one of `query`, `each`, `command` and `file`."""

    query: str | None = Field(
        default=None,
        description="One statement, on the connections that carry the load, that returns rows of (name, value).",
    )
    each: AskedKnob | None = Field(default=None, description="The same with one statement per knob, with {knob} in it.")
    command: Command | None = Field(default=None, description="A command that prints names and values.")
    file: Place | None = Field(
        default=None,
        description="A file that the DBMS writes when it opens its data, as a pattern: the newest counts.",
    )
    parser: AnswerParser | None = Field(
        default=None,
        description="How the output of `command`, or `file`, is read. pairs: a name on one line, its value on the next "
        "(redis-cli). table: name and value on a line, between them blanks, tabs, `=`, `:` or `|`. json: an object, or "
        "a list of objects with name and value; names inside other objects get dots. ini: `name=value`; the first of "
        "several wins, and section headings do not matter. wiredtiger: `name=(name=value,...)`, where names inside "
        "parentheses get dots.",
    )

    @model_validator(mode="after")
    def _is_one(self) -> "Readback":
        kinds = [kind for kind in ("query", "each", "command", "file") if getattr(self, kind) is not None]
        if len(kinds) != 1:
            found = f"both `{kinds[0]}` and `{kinds[1]}`" if kinds else "none of `query`, `each`, `command`, `file`"
            raise Misfit((), found, "one of them")
        if self.each is not None and "{knob}" not in self.each:
            raise Misfit(("each",), repr(self.each), "it to contain {knob}")
        if (self.parser is not None) != (kinds[0] in ("command", "file")):
            found = f"`{kinds[0]}` {'with' if self.parser else 'without'} `parser`"
            raise Misfit(("parser",), found, "a `parser` for `command` and `file`, and for these only")
        return self

    @property
    def by_client(self) -> bool:
        """Whether the connections of the load client are asked."""
        return self.query is not None or self.each is not None


#: The binding of every DBMS that speaks SQL through JDBC.
SQL_BINDING = "knobscope.JdbcBinding"


class Connection(SpecModel):
    """How YCSB's client reaches the DBMS."""

    binding: str = Field(description="Class of the client binding, e.g. knobscope.JdbcBinding.")
    library: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9-]*$",
        description="Folder of clients/target/bindings with the jars that this binding needs beside the usual ones.",
    )
    properties: dict[str, PlaceOrPassword] = Field(description="Properties of the binding, e.g. jdbc.url.")
    session: list[str] = Field(
        default_factory=list,
        description="Fixed statements on every connection, before the knobs, for what no study varies.",
    )


class Loading(SpecModel):
    """How YCSB's data is loaded once, fast; durability does not matter there."""

    tables: list[str] = Field(default_factory=list, description="Statements that create the tables.")
    sql: list[str] = Field(default_factory=list, description="Statements on every connection while loading.")
    finish: list[str] = Field(default_factory=list, description="Statements after loading, e.g. a checkpoint.")
