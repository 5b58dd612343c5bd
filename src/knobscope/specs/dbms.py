"""A DBMS, described well enough to be started, asked and stopped without Python of its own."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from knobscope.specs.base import Misfit, Name, SpecModel, Value
from knobscope.specs.expression import WORKLOAD_NAMES
from knobscope.specs.knob import Knob
from knobscope.specs.template import PLACEHOLDERS, AskedKnob, Place, PlaceOrKnobs, PlaceOrPassword, WrittenKnob

__all__ = ["PLACEHOLDERS", "Connection", "Dbms", "Lifecycle", "Loading", "Program", "Readback", "Writing"]

_KNOB_NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,80}$"


def _check_knob_name(name: str) -> str:
    if name in WORKLOAD_NAMES:
        raise ValueError(f"another name than {sorted(WORKLOAD_NAMES)}, which `requires` uses for the workload")
    return name


KnobName = Annotated[str, Field(pattern=_KNOB_NAME), AfterValidator(_check_knob_name)]
Command = Annotated[list[Place], Field(min_length=1)]
CommandWithKnobs = Annotated[list[PlaceOrKnobs], Field(min_length=1)]


class Program(SpecModel):
    """Where an executable is looked for; the first that exists wins (newest version first for a pattern)."""

    find: list[str] = Field(
        min_length=1, description="Names on PATH, or absolute paths, which may hold * as a pattern."
    )
    package: str = Field(description="The package that installs it, for the message when it is missing.")


class Stop(SpecModel):
    """How the server is asked to end after loading."""

    signal: Literal["INT", "TERM", "QUIT"] = Field(
        default="TERM", description="The signal of an orderly stop: all data is on disk afterwards."
    )
    timeout_s: int = Field(default=30, gt=0, description="Seconds it may take.")


class Lifecycle(SpecModel):
    """Commands as argument lists, never seen by a shell; the first argument is a name under `programs`."""

    init: CommandWithKnobs | None = Field(
        default=None, description="Makes an empty data directory in {data}; {knobs} are the load-time knobs."
    )
    start: CommandWithKnobs = Field(description="Runs the server in the foreground; {knobs} are all other knobs.")
    ready: Command = Field(description="Ends with 0 when the server answers.")
    ready_timeout_s: int = Field(default=60, gt=0, description="Seconds until a start counts as failed.")
    stop: Stop = Field(default=Stop(), description="How it is stopped.")
    discard: Literal["INT", "TERM", "QUIT"] | None = Field(
        default=None,
        description="Signal that ends it at once, without saving anything, but lets it return shared memory; absent: "
        "it is killed. Runs end like this, since their data is thrown away.",
    )


class Writing(SpecModel):
    """How a knob is handed over: as arguments of a command, or as a statement on every connection."""

    argv: list[WrittenKnob] | None = Field(
        default=None, min_length=1, description="Arguments in the place of {knobs}, e.g. ['-c', '{knob}={value}']."
    )
    sql: WrittenKnob | None = Field(
        default=None, description="A statement on every connection, e.g. PRAGMA {knob}={value}."
    )

    @model_validator(mode="after")
    def _is_one(self) -> "Writing":
        if (self.argv is None) == (self.sql is None):
            found = "neither `argv` nor `sql`" if self.sql is None else "both `argv` and `sql`"
            raise Misfit((), found, "one of them")
        text = self.sql or " ".join(self.argv or [])
        if missing := [part for part in ("{knob}", "{value}") if part not in text]:
            raise Misfit(("sql" if self.sql else "argv",), repr(text), f"it to contain {' and '.join(missing)}")
        return self


class Readback(SpecModel):
    """How the effective values are asked for, on the connections that carry the load."""

    query: str | None = Field(default=None, description="One statement that returns rows of (name, value).")
    each: AskedKnob | None = Field(default=None, description="One statement per knob, with {knob} in it.")

    @model_validator(mode="after")
    def _is_one(self) -> "Readback":
        if (self.query is None) == (self.each is None):
            found = "neither `query` nor `each`" if self.query is None else "both `query` and `each`"
            raise Misfit((), found, "one of them")
        if self.each is not None and "{knob}" not in self.each:
            raise Misfit(("each",), repr(self.each), "it to contain {knob}")
        return self


class Connection(SpecModel):
    """How the load generator reaches the DBMS."""

    binding: str = Field(description="Class of the client binding, e.g. knobscope.JdbcBinding.")
    properties: dict[str, PlaceOrPassword] = Field(description="Properties of the binding, e.g. jdbc.url.")
    session: list[str] = Field(
        default_factory=list,
        description="Fixed statements on every connection, before the knobs, for what no study varies.",
    )


class Loading(SpecModel):
    """How data is loaded once, fast; durability does not matter there."""

    tables: list[str] = Field(min_length=1, description="Statements that create the tables.")
    sql: list[str] = Field(default_factory=list, description="Statements on every connection while loading.")
    finish: list[str] = Field(default_factory=list, description="Statements after loading, e.g. a checkpoint.")


class Files(SpecModel):
    """Which files below the data directory hold what, for attribution.

    Patterns start at the data directory, and `*` stands for any characters, `/` too. The first group that matches
    counts, in the order temp, log, data.
    """

    data: list[str] = Field(default_factory=list, description="Tables and indexes.")
    log: list[str] = Field(default_factory=list, description="Write-ahead log, journal, binary log.")
    temp: list[str] = Field(default_factory=list, description="Spilled sorts, temporary tables.")


class Dbms(SpecModel):
    """One DBMS: programs, life cycle, how knobs are written and read back, and its knobs."""

    name: Name = Field(description="The file's name without .yaml.")
    description: str = Field(description="What it is, for the report.")
    programs: dict[str, Program] = Field(
        default_factory=dict, description="Executables by the name that commands call them."
    )
    version: Command | None = Field(
        default=None, description="Prints the version; the first number with a dot in it counts."
    )
    version_sql: str | None = Field(default=None, description="Returns the version, for a DBMS without a server.")
    lifecycle: Lifecycle | None = Field(
        default=None, description="How the server lives; absent for a DBMS that lives in its client."
    )
    writing: dict[Literal["load", "restart", "dynamic"], Writing] = Field(
        min_length=1, description="How knobs are handed over, by their `apply`."
    )
    booleans: Annotated[list[str], Field(min_length=2, max_length=2)] = Field(
        default=["off", "on"], description="How false and true are written."
    )
    readback: Readback = Field(description="How the values in force are asked for.")
    connection: Connection = Field(description="How the load generator gets a connection.")
    loading: Loading = Field(description="How data is loaded once.")
    files: Files = Field(default=Files(), description="Which files hold what.")
    knobs: dict[KnobName, Knob] = Field(min_length=1, description="Everything a study may vary.")

    @model_validator(mode="after")
    def _is_consistent(self) -> "Dbms":
        if self.version is None and self.version_sql is None:
            raise Misfit(("version",), "neither `version` nor `version_sql`", "one of them")
        if self.version is not None and self.version_sql is not None:
            raise Misfit(("version_sql",), "both `version` and `version_sql`", "one of them")
        for place, command in self._commands().items():
            if command[0] not in self.programs:
                raise Misfit((*place, 0), repr(command[0]), f"a name under `programs`: {sorted(self.programs)}")
        for apply, writing in self.writing.items():
            if writing.argv is not None:
                self._check_receiver(apply)
        return self

    def _commands(self) -> dict[tuple[str, ...], list[str]]:
        life = self.lifecycle
        commands: dict[tuple[str, ...], list[str] | None] = {("version",): self.version}
        if life is not None:
            for part in ("init", "start", "ready"):
                commands["lifecycle", part] = getattr(life, part)
        return {place: command for place, command in commands.items() if command is not None}

    def _check_receiver(self, apply: str) -> None:
        """Raise Misfit when knobs are written as arguments of a command that does not take them."""
        name = "init" if apply == "load" else "start"
        command = getattr(self.lifecycle, name, None)
        if command is None or "{knobs}" not in command:
            raise Misfit(("writing", apply, "argv"), "arguments", f"{{knobs}} in the command `lifecycle.{name}`")

    def write(self, knob: str, value: Value) -> str:
        """Return a value as the DBMS wants it written."""
        if isinstance(value, bool):
            return self.booleans[int(value)]
        return f"{value:g}" if isinstance(value, float) else str(value)
