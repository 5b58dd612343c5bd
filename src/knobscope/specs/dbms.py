"""A DBMS, described well enough to be started, asked and stopped without Python of its own."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from knobscope.specs.base import Misfit, Name, SpecModel, Value
from knobscope.specs.expression import WORKLOAD_NAMES
from knobscope.specs.files import Files
from knobscope.specs.introspect import Introspection
from knobscope.specs.knob import Knob, Version
from knobscope.specs.lifecycle import Command, Connection, Lifecycle, Loading, Readback
from knobscope.specs.programs import Program
from knobscope.specs.template import PLACEHOLDERS, Place, PlaceOrPassword, names_in
from knobscope.specs.writing import Apply, ConfigFile, FileName, Moment, Writing

__all__ = ["PLACEHOLDERS", "Dbms"]

_KNOB_NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,80}$"


def _check_knob_name(name: str) -> str:
    if name in WORKLOAD_NAMES:
        raise ValueError(f"another name than {sorted(WORKLOAD_NAMES)}, which `requires` uses for the workload")
    return name


KnobName = Annotated[str, Field(pattern=_KNOB_NAME), AfterValidator(_check_knob_name)]
PathName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class Dbms(SpecModel):
    """One DBMS: programs, life cycle, how knobs are written and read back, and its knobs.

    With `extends` a file states only what differs from another one: each key of `knobs` is merged key by key (one
    that states `type` is new), of the other mappings each entry is replaced, everything else is replaced whole.
    """

    name: Name = Field(description="The file's name without .yaml.")
    description: str = Field(description="What it is, for the report.")
    extends: Name | None = Field(
        default=None, description="Another DBMS, by the name of its file, from which this one takes all but name."
    )
    without: list[str] = Field(default_factory=list, description="Knobs of the other DBMS that this one does not have.")
    programs: dict[str, Program] = Field(
        default_factory=dict, description="Executables by the name that commands call them."
    )
    paths: dict[PathName, Program] = Field(
        default_factory=dict,
        description="Other files and directories that commands name as {path.NAME}: jars, message files.",
    )
    environment: dict[str, PlaceOrPassword] = Field(
        default_factory=dict, description="Environment variables of all commands: server, tools, generators."
    )
    version: Command | None = Field(
        default=None, description="Prints the version; the first number with a dot in it counts."
    )
    version_sql: str | None = Field(
        default=None, description="Returns the version when the client's connection is asked; without a server."
    )
    major_version_parts: int = Field(
        default=1,
        ge=1,
        le=3,
        description="How many numbers of the version make a major one, in which knobs keep their meaning: 1 for 15.4 "
        "of PostgreSQL, 2 for 10.11.6 of MariaDB.",
    )
    since: Version | None = Field(default=None, description="First version that this file describes, in quotes: '9'.")
    until: Version | None = Field(
        default=None, description="Last version that this file describes; all that begin like it belong to it."
    )
    lifecycle: Lifecycle | None = Field(
        default=None, description="How the server lives; absent for a DBMS that lives in its client."
    )
    config_files: dict[FileName, ConfigFile] = Field(
        default_factory=dict, description="Files that the server reads, by name; they lie in {config}."
    )
    writing: dict[Apply, Writing] = Field(
        default_factory=dict, description="How knobs are handed over, by their `apply`, unless they say it themselves."
    )
    booleans: Annotated[list[str], Field(min_length=2, max_length=2)] = Field(
        default=["off", "on"], description="How false and true are written."
    )
    readback: Readback = Field(description="How the values in force are asked for.")
    introspect: Introspection | None = Field(
        default=None, description="How `knobscope introspect` gets the list of all its knobs."
    )
    connection: Connection | None = Field(
        default=None, description="How YCSB reaches it; absent when only other generators do."
    )
    loading: Loading = Field(default=Loading(), description="How YCSB's data is loaded once.")
    generators: dict[Name, list[Place]] = Field(
        default_factory=dict,
        description="Other load generators that can drive it, by the names of their files: the arguments with which "
        "they reach it, in the place of {connection}.",
    )
    files: Files = Field(default=Files(), description="Which files hold what.")
    knobs: dict[KnobName, Knob] = Field(min_length=1, description="Everything a study may vary.")

    @model_validator(mode="after")
    def _is_consistent(self) -> "Dbms":
        if self.version is None and self.version_sql is None:
            raise Misfit(("version",), "neither `version` nor `version_sql`", "one of them")
        if self.version is not None and self.version_sql is not None:
            raise Misfit(("version_sql",), "both `version` and `version_sql`", "one of them")
        questions = {
            "readback": self.readback.by_client,
            "version_sql": self.version_sql,
            "introspect": self.introspect,
        }
        for key, asked in questions.items():
            if self.connection is None and asked:
                raise Misfit((key,), "a question for a connection", "`connection`, which is missing")
        if self.introspect is not None and self.introspect.query is None and self.readback.query is None:
            raise Misfit(("introspect",), "no `query`, and `readback` has none that lists settings", "one of them")
        if self.connection is None and self.files.tables is not None and self.files.tables.query is not None:
            raise Misfit(("files", "tables", "query"), "a question for a connection", "`connection`, which is missing")
        for place, command in self._commands():
            if command[0] not in self.programs:
                raise Misfit((*place, 0), repr(command[0]), f"a name under `programs`: {sorted(self.programs)}")
        for place, texts in self._texts():
            for name in names_in(texts, "path"):
                if name not in self.paths:
                    raise Misfit(place, f"{{path.{name}}}", f"a name under `paths`: {sorted(self.paths)}")
        for apply, writing in self.writing.items():
            self._check_writing(("writing", apply), apply, writing, named=True)
        return self

    @model_validator(mode="after")
    def _writes_its_knobs(self) -> "Dbms":
        for name, knob in self.knobs.items():
            if knob.writing is not None:
                self._check_writing(("knobs", name, "writing"), knob.apply, knob.writing, named=False)
            writing = self.writing_of(name)
            if writing is not None and writing.by_value is not None:
                place: tuple[Value, ...] = ("knobs", name, "writing") if knob.writing else ("writing", knob.apply)
                self._check_entries((*place, "by_value"), name, writing)
        return self

    def _check_entries(self, place: tuple[Value, ...], name: str, writing: Writing) -> None:
        """Raise Misfit when `by_value` does not say how each value of a knob is written."""
        values = self.knobs[name].possible_values
        if not values:
            raise Misfit(place, f"the number {name}", "booleans and enums only: they have a value each")
        for value in values:
            if writing.of_value(value) is None:
                raise Misfit(place, f"nothing for {value!r} of {name}", "an entry for each value")

    def _commands(self) -> Iterator[tuple[tuple[Value, ...], list[str]]]:
        """Yield every command with its place."""
        life = self.lifecycle
        commands: dict[tuple[Value, ...], list[str] | None] = {
            ("version",): self.version,
            ("readback", "command"): self.readback.command,
        }
        if life is not None:
            for part in ("init", "start", "ready"):
                commands["lifecycle", part] = getattr(life, part)
            commands["lifecycle", "stop", "command"] = life.stop.command
            commands |= {("lifecycle", "setup", index): command for index, command in enumerate(life.setup)}
        return ((place, command) for place, command in commands.items() if command is not None)

    def _texts(self) -> Iterator[tuple[tuple[Value, ...], list[str]]]:
        """Yield every text that may hold {path.NAME}, with its place."""
        yield from self._commands()
        yield ("environment",), list(self.environment.values())
        yield ("generators",), [text for arguments in self.generators.values() for text in arguments]
        if self.connection is not None:
            yield ("connection", "properties"), list(self.connection.properties.values())
        for name, file in self.config_files.items():
            yield ("config_files", name), file.lines or []

    def _check_writing(self, place: tuple[Value, ...], apply: Apply, writing: Writing, *, named: bool) -> None:
        """Raise Misfit when knobs would be written to something that is not there, or does not take them."""
        if (missing := writing.missing_part(named=named)) is not None:
            shown = getattr(writing, writing.kind)
            text = " ".join(shown) if isinstance(shown, list) else shown
            raise Misfit((*place, writing.kind), repr(text), f"it to contain {missing}")
        moments = writing.moments(apply)
        if apply != "load" and "init" in moments:
            found = f"`init` for {apply}"
            raise Misfit((*place, "at"), found, "[start]: data is loaded once for all values of such a knob")
        if writing.to_command and self.lifecycle is not None:
            for moment in moments:
                self._check_receiver((*place, writing.kind), self.lifecycle, moment)
        if writing.client is not None and self.connection is None:
            raise Misfit((*place, "client"), "a property of a client", "`connection`, which is missing")
        if writing.file is not None:
            self._check_file((*place, "file"), writing, writing.file)

    def _check_receiver(self, place: tuple[Value, ...], life: Lifecycle, moment: Moment) -> None:
        """Raise Misfit when knobs are written as arguments of a command that does not take them."""
        command = getattr(life, moment)
        if command is None or "{knobs}" not in command:
            raise Misfit(place, "arguments", f"{{knobs}} in the command `lifecycle.{moment}`")

    def _check_file(self, place: tuple[Value, ...], writing: Writing, name: str) -> None:
        if name not in self.config_files:
            raise Misfit(place, repr(name), f"a name under `config_files`: {sorted(self.config_files)}")
        is_yaml = self.config_files[name].yaml is not None
        texts = list((writing.by_value or {}).values())
        if (writing.line is not None and is_yaml) or (writing.key is not None and not is_yaml):
            raise Misfit(place, f"`{writing.kind}` for {name}", "`line` for files of lines, `key` for those in YAML")
        if any(isinstance(text, dict) != is_yaml for text in texts):
            raise Misfit((*place[:-1], "by_value"), "another kind of entry", "keys for YAML, lists of lines otherwise")

    def writing_of(self, knob: str) -> Writing | None:
        """How a knob is written: as it says itself, or as all with its `apply`; None when nothing says it."""
        return self.knobs[knob].writing or self.writing.get(self.knobs[knob].apply)

    def write(self, knob: str, value: Value) -> str:
        """Return a value as the DBMS wants it written."""
        if isinstance(value, bool):
            return self.booleans[int(value)]
        return f"{value:g}" if isinstance(value, float) else str(value)
