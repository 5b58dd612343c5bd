"""How a DBMS lives: commands that make, start and end it, how it is asked, reached and loaded."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from knobscope.specs.models.drivers import Driver
from knobscope.specs.models.template import AskedKnob, OwnFiles, Template, TemplateOrKnobs, TemplateOrPassword
from knobscope.specs.reading.base import Misfit, SpecModel, suggest

Command = Annotated[list[Template], Field(min_length=1)]
CommandWithKnobs = Annotated[list[TemplateOrKnobs], Field(min_length=1)]
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
    log: OwnFiles | None = Field(
        default=None,
        description="Files that the server logs to, if it cannot log to standard output or standard error, as a "
        "pattern below {data} or {socket}. When it fails, the reason of the run quotes what it has added to them.",
    )
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


class StatementCounts(SpecModel):
    """How a server is asked what it did to the rows of each table, for `measure: [statements]` of a study."""

    command: Command = Field(
        description="Prints a line for each table and statement (select, insert, update, delete): table, statement and "
        "the number of rows since the server began to count, with a tab between two of them."
    )
    start: list[Template] = Field(
        default_factory=list, description="Arguments of the server without which it does not count."
    )
    source: str = Field(description="Where this is documented.")


class Readback(SpecModel):
    """How the effective values are asked for: by exactly one of `query`, `each`, `command` and `file`."""

    query: str | None = Field(
        default=None,
        description="One statement, on the connections that carry the load, that returns rows of (name, value).",
    )
    each: AskedKnob | None = Field(default=None, description="The same with one statement per knob, with {knob} in it.")
    command: Command | None = Field(default=None, description="A command that prints names and values.")
    file: OwnFiles | None = Field(
        default=None,
        description="A file that the DBMS writes when it opens its data, as a pattern below {data} or {socket}: the "
        "newest counts.",
    )
    parser: AnswerParser | None = Field(
        default=None,
        description="How the output of `command`, or `file`, is read. pairs: a name on one line, its value on the next "
        "(redis-cli). table: name and value on a line, between them blanks, tabs, `=`, `:` or `|`. json: an object, or "
        "a list of objects with name and value; names inside other objects get dots. ini: `name=value`; the first of "
        "several wins, and section headings do not matter. wiredtiger: `name=(name=value,...)`, where names inside "
        "parentheses get dots.",
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield that it is more than one way, and a parser where none belongs."""
        if len(self._ways) > 1:
            yield Misfit((), f"both `{self._ways[0]}` and `{self._ways[1]}`", "one of them")
            return
        if self.each is not None and "{knob}" not in self.each:
            yield Misfit(("each",), repr(self.each), "it to contain {knob}")
        if (self.parser is not None) != (self.way in ("command", "file")):
            found = f"`{self.way or 'nothing to read'}` {'with' if self.parser else 'without'} `parser`"
            yield Misfit(("parser",), found, "a `parser` for `command` and `file`, and for these only")

    @property
    def _ways(self) -> list[str]:
        return [way for way in ("query", "each", "command", "file") if getattr(self, way) is not None]

    @property
    def way(self) -> str | None:
        """The key that says how the DBMS is asked; None when it cannot be asked at all."""
        return next(iter(self._ways), None)

    @property
    def by_client(self) -> bool:
        """Whether the connections of the load client are asked."""
        return self.way in ("query", "each")


def _sets_something(option: str) -> str:
    if option.startswith(("-XX:On", "-XX:Flags=", "-XX:VMOptionsFile=", "-Xbootclasspath", "-Xrun")):
        raise ValueError("an option that runs nothing, and adds no options or classes")
    return option


#: Options of the java program that set something; what is run, and with which classes, is not for them to say.
JvmOption = Annotated[
    str, Field(pattern=r"^(-X[^\s]+|-D[^\s]+|--(add|enable)-[^\s]+|-ea)$"), AfterValidator(_sets_something)
]

#: The binding of every DBMS that speaks SQL through JDBC.
SQL_BINDING = "knobscope.JdbcBinding"
_SQL_PROPERTIES = ("jdbc.url", "jdbc.user", "jdbc.password", "jdbc.batchsize")


class Jvm(SpecModel):
    """The Java machine of the load client, in which a DBMS written in Java lives too when it has no server."""

    heap_mib: int = Field(
        default=512, ge=64, le=2**20, description="Largest heap, in MiB; caches of an embedded DBMS lie in it."
    )
    jit: Literal["c1", "tiered"] = Field(
        default="c1",
        description="c1: only the first compiler, whose code is at its full speed within a second. tiered: the "
        "optimising one, too; its code is faster, and the warm-up must be long enough for it (tens of seconds).",
    )
    options: list[JvmOption] = Field(
        default_factory=list,
        description="Further options of the java program, e.g. [-XX:+UseParallelGC]; they win over knobscope's own "
        "(serial garbage collection).",
    )


class Connection(SpecModel):
    """How YCSB's client reaches the DBMS."""

    binding: str = Field(description="Class of the client binding, e.g. knobscope.JdbcBinding.")
    library: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9-]*$",
        description="Folder of clients/target/bindings with the jars that this binding needs in addition to the "
        "usual ones.",
    )
    driver: Driver | None = Field(
        default=None,
        description="JDBC driver as group:artifact:version of Maven, instead of `library`; for a DBMS inside its "
        "client it is the DBMS. `knobscope drivers` fetches it.",
    )
    jvm: Jvm = Field(default=Jvm(), description="The Java machine of the client.")
    properties: dict[str, TemplateOrPassword] = Field(description="Properties of the binding, e.g. jdbc.url.")
    session: list[str] = Field(
        default_factory=list,
        description="Fixed statements on every connection, before the knobs, for what no study varies.",
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield two sources of jars, and properties that the binding for SQL does not read."""
        if self.library is not None and self.driver is not None:
            yield Misfit(("driver",), "both `library` and `driver`", "one of them")
        if self.binding != SQL_BINDING:
            return
        for name in self.properties:
            if name not in _SQL_PROPERTIES:
                expected = suggest(name, list(_SQL_PROPERTIES))
                yield Misfit(("properties", name), f"a property that {SQL_BINDING} does not have", expected)
        if "jdbc.url" not in self.properties:
            yield Misfit(("properties", "jdbc.url"), "nothing", "the URL of the database")


class Loading(SpecModel):
    """How YCSB's data is loaded once, fast; durability does not matter there."""

    tables: list[str] = Field(default_factory=list, description="Statements that create the tables.")
    sql: list[str] = Field(default_factory=list, description="Statements on every connection while loading.")
    finish: list[str] = Field(default_factory=list, description="Statements after loading, e.g. a checkpoint.")
