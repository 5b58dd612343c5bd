"""A DBMS, described well enough to be started, asked and stopped without Python of its own."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from knobscope.patterns import check_pattern
from knobscope.specs.models.expression import WORKLOAD_NAMES
from knobscope.specs.models.file_patterns import Files
from knobscope.specs.models.introspect import Introspection
from knobscope.specs.models.kernel import is_kernel_knob
from knobscope.specs.models.knob import Knob, Version
from knobscope.specs.models.lifecycle import Connection, Lifecycle, Loading, Readback, StatementCounts
from knobscope.specs.models.part import Part, PartName, part_knob
from knobscope.specs.models.programs import PathName, Program, find_bare_paths
from knobscope.specs.models.template import Template, TemplateOrPassword, VersionArgument, names_in
from knobscope.specs.models.workload import is_workload_knob
from knobscope.specs.models.writing import Apply, ConfigFile, FileName, Writing, same_value
from knobscope.specs.reading.base import Misfit, Name, SpecModel, Value
from knobscope.specs.reading.source import show_value

#: What leads to the server of a run: its ports, its sockets, a configuration file that names either.
_PLACES = ("{port", "{socket", "{data", "{config")
_KNOB_NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,80}$"


def _check_knob_name(name: str) -> str:
    if name in WORKLOAD_NAMES:
        raise ValueError(f"another name than {sorted(WORKLOAD_NAMES)}, which `requires` uses for the workload")
    if is_factor(name):
        raise ValueError("another name: those that begin so are settings of the workload or the kernel")
    return name


KnobName = Annotated[str, Field(pattern=_KNOB_NAME), AfterValidator(_check_knob_name)]
ThreadClass = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
ThreadPattern = Annotated[str, Field(min_length=1), AfterValidator(check_pattern)]
_VARIABLE_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
VariableName = Annotated[str, Field(pattern=_VARIABLE_NAME)]


def is_factor(knob: str) -> bool:
    """Whether a knob stands for something outside the DBMS: a setting of the workload, or of the kernel."""
    return is_workload_knob(knob) or is_kernel_knob(knob)


class Clash(SpecModel):
    """Values of two or more knobs that a DBMS refuses together."""

    values: Annotated[dict[KnobName, Value], Field(min_length=2)] = Field(description="The values, by knob.")
    words: str = Field(min_length=1, description="What the DBMS says to them.")

    def is_in(self, configuration: Mapping[str, Value]) -> bool:
        """Whether a configuration sets all these values."""
        pairs = self.values.items()
        return all(name in configuration and same_value(configuration[name], value) for name, value in pairs)


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
    environment: dict[VariableName, TemplateOrPassword] = Field(
        default_factory=dict, description="Environment variables of all commands: server, tools, generators."
    )
    version: Annotated[list[VersionArgument], Field(min_length=1)] | None = Field(
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
    min_memory_mib: int = Field(
        default=64,
        ge=16,
        description="Least memory with which it starts; a workload that limits it to less (`memory_mib`) is refused.",
    )
    config_files: dict[FileName, ConfigFile] = Field(
        default_factory=dict, description="Files that the server reads, by name; they lie in {config}."
    )
    writing: dict[Apply, Writing] = Field(
        default_factory=dict, description="How knobs are passed, by their `apply`, unless they say it themselves."
    )
    booleans: Annotated[list[str], Field(min_length=2, max_length=2)] = Field(
        default=["off", "on"], description="How false and true are written."
    )
    readback: Readback = Field(
        default=Readback(),
        description="How the values in force are asked for. Absent: the DBMS cannot be asked, and the values of all "
        "knobs are taken on trust.",
    )
    introspect: Introspection | None = Field(
        default=None, description="How `knobscope introspect` gets the list of all its knobs."
    )
    connection: Connection | None = Field(
        default=None, description="How YCSB reaches it; absent when only other generators do."
    )
    loading: Loading = Field(default=Loading(), description="How YCSB's data is loaded once.")
    rewrite: list[str] = Field(
        default_factory=list,
        description="Statements that store YCSB's table anew in the order of its key, for parameter `rewrite` of a "
        "workload; they come between loading and `loading.finish`.",
    )
    generators: dict[Name, list[Template]] = Field(
        default_factory=dict,
        description="Other load generators that can drive it, by the names of their files: the arguments with which "
        "they reach it, instead of {connection}.",
    )
    files: Files = Field(default=Files(), description="Which files hold what.")
    threads: dict[ThreadClass, ThreadPattern] = Field(
        default_factory=dict,
        description="What its threads are for, for `watch: [waits]`: class -> regular expression (RE2), searched in "
        "the thread's name and in the title of its process; the first that is found counts. `session` are the threads "
        "that serve clients: what an operation waits for is what these wait for. A thread that serves clients and that "
        "no pattern names is a `session` too, another one is of a class of its own name.",
    )
    session_thread: str | None = Field(
        default=None,
        description="Statement that returns the operating system's number of the thread that serves the connection, "
        "for `trace: true`: each request of a session is attributed to the transaction or query at that time. NULL: "
        "the session has no thread of its own. Absent: the DBMS does not know it; one that lives in its client needs "
        "no statement.",
    )
    statements: StatementCounts | None = Field(
        default=None, description="How it is asked what it did to the rows of each table, for `measure: [statements]`."
    )
    parts: dict[PartName, Part] = Field(
        default_factory=dict,
        description="What of its data may lie on another device than the rest, for `layout` of a study.",
    )
    knobs: dict[KnobName, Knob] = Field(min_length=1, description="Everything a study may vary.")
    clashes: list[Clash] = Field(
        default_factory=list, description="Values that it refuses together, though it takes each without the others."
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield what does not fit between the parts of the file."""
        if self.version is None and self.version_sql is None:
            yield Misfit(("version",), "neither `version` nor `version_sql`", "one of them")
        if self.version is not None and self.version_sql is not None:
            yield Misfit(("version_sql",), "both `version` and `version_sql`", "one of them")
        yield from self._find_idle_questions()
        yield from self._find_unreached_server()
        yield from self._find_unknown_clashes()
        yield from self._find_unknown_files()
        for apply, writing in self.writing.items():
            yield from self._find_wrong_writing(("writing", apply), apply, writing, named=True)
        for name, knob in self.knobs.items():
            if knob.writing is not None:
                yield from self._find_wrong_writing(("knobs", name, "writing"), knob.apply, knob.writing, named=False)
            yield from self._find_missing_entries(name)
            variable = self.variable_of(name)
            if variable is not None and not re.fullmatch(_VARIABLE_NAME, variable):
                location = (*self.location_of_writing(name), "variable")
                yield Misfit(location, f"{variable!r} for {name}", "a name of letters, digits and _, or an `alias`")
        for name, part in self.parts.items():
            if part.writing is not None:
                yield from self._find_wrong_writing(("parts", name, "writing"), "restart", part.writing, named=False)

    @property
    def running_programs(self) -> dict[str, Program]:
        """The programs that runs depend on: all but one that is only asked for statements."""
        used = {command[0] for location, command in self._commands() if location[0] != "statements"}
        asked = {self.statements.command[0]} if self.statements else set()
        return {name: program for name, program in self.programs.items() if name in used or name not in asked}

    def _find_unknown_files(self) -> Iterator[Misfit]:
        """Yield programs and files of commands that neither `programs` nor `paths` has."""
        for location, command in self._commands():
            if command[0] not in self.programs:
                yield Misfit((*location, 0), repr(command[0]), f"a name under `programs`: {sorted(self.programs)}")
            elif any(Path(place).name == "env" for place in self.programs[command[0]].find):
                expected = "the program itself, with fixed variables under `environment`, and knobs with `variable`"
                yield Misfit((*location, 0), f"{command[0]!r}, which starts another program", expected)
            yield from find_bare_paths(location, command)
        for name, arguments in self.generators.items():
            yield from find_bare_paths(("generators", name), arguments)
        for location, text in self._texts():
            for _, name in names_in([text], "path"):
                if name not in self.paths:
                    yield Misfit(location, f"{{path.{name}}}", f"a name under `paths`: {sorted(self.paths)}")

    def _find_unknown_clashes(self) -> Iterator[Misfit]:
        """Yield knobs in `clashes` that there are not, and values that they do not take."""
        for index, clash in enumerate(self.clashes):
            for name, value in sorted(clash.values.items()):
                location = ("clashes", index, "values", name)
                if name not in self.knobs:
                    yield Misfit(location, repr(name), f"a knob of {self.name}")
                elif (problem := self.knobs[name].problem_with(value)) is not None:
                    yield Misfit(location, show_value(value), f"another value: it {problem}")

    def _find_idle_questions(self) -> Iterator[Misfit]:
        """Yield questions that nobody could be asked."""
        questions = {
            "readback": self.readback.by_client,
            "version_sql": self.version_sql,
            "session_thread": self.session_thread,
            "introspect": self.introspect is not None and (self.introspect.query or self.introspect.trials),
        }
        for key, question in questions.items():
            if self.connection is None and question:
                yield Misfit((key,), "a question for a connection", "`connection`, which is missing")
        if self.connection is None and self.files.tables is not None and self.files.tables.query is not None:
            yield Misfit(("files", "tables", "query"), "a question for a connection", "`connection`, which is missing")
        for name, part in self.parts.items():
            if self.connection is None and part.load is not None:
                yield Misfit(("parts", name, "load"), "statements for a connection", "`connection`, which is missing")

    def _find_unreached_server(self) -> Iterator[Misfit]:
        """Yield connections, and arguments of generators, that do not lead to the server that `lifecycle` starts."""
        if self.lifecycle is None:
            return
        texts: dict[tuple[str, ...], Iterable[str]] = {
            ("generators", name): arguments for name, arguments in self.generators.items() if arguments
        }
        if self.connection is not None:
            texts["connection", "properties"] = self.connection.properties.values()
        expected = (
            "one of them, since a study starts a server of its own there; one that runs already is observed by "
            "`knobscope attach`"
        )
        for location, parts in texts.items():
            if not any(place in text for text in parts for place in _PLACES):
                yield Misfit(location, "neither {port} nor {socket}", expected)

    def _find_missing_entries(self, name: str) -> Iterator[Misfit]:
        """Yield values of a knob for which `by_value` does not say how they are written."""
        knob, writing = self.knobs[name], self.writing_of(name)
        if writing is None or writing.by_value is None:
            return
        location = (*self.location_of_writing(name), "by_value")
        if not knob.possible_values:
            yield Misfit(location, f"the number {name}", "booleans and enums only: they have a value each")
        for value in knob.possible_values:
            if writing.of_value(value) is None:
                yield Misfit(location, f"nothing for {show_value(value)} of {name}", "an entry for each value")

    def _commands(self) -> Iterator[tuple[tuple[Value, ...], list[str]]]:
        """Yield every command with its location."""
        life = self.lifecycle
        commands: dict[tuple[Value, ...], list[str] | None] = {
            ("version",): self.version,
            ("readback", "command"): self.readback.command,
            ("statements", "command"): self.statements.command if self.statements else None,
        }
        if life is not None:
            for part in ("init", "start", "ready"):
                commands["lifecycle", part] = getattr(life, part)
            commands["lifecycle", "stop", "command"] = life.stop.command
            commands |= {("lifecycle", "setup", index): command for index, command in enumerate(life.setup)}
        return ((location, command) for location, command in commands.items() if command is not None)

    def _texts(self) -> Iterator[tuple[tuple[Value, ...], str]]:
        """Yield every text that may hold {path.NAME}, with its keys."""
        lists: list[tuple[tuple[Value, ...], Iterable[tuple[Value, str]]]] = [
            (location, enumerate(command)) for location, command in self._commands()
        ]
        lists.append((("environment",), self.environment.items()))
        lists += [(("generators", name), enumerate(arguments)) for name, arguments in self.generators.items()]
        if self.connection is not None:
            lists.append((("connection", "properties"), self.connection.properties.items()))
        lists += [
            (("config_files", name, "lines"), enumerate(file.lines or [])) for name, file in self.config_files.items()
        ]
        yield from (((*location, key), text) for location, texts in lists for key, text in texts)

    def _find_wrong_writing(
        self, location: tuple[Value, ...], apply: Apply, writing: Writing, *, named: bool
    ) -> Iterator[Misfit]:
        """Yield that knobs would be written to something that is not there, or does not take them."""
        if (missing := writing.missing_part(named=named)) is not None:
            shown = getattr(writing, writing.kind)
            text = " ".join(shown) if isinstance(shown, list) else shown
            yield Misfit((*location, writing.kind), repr(text), f"it to contain {missing}")
        moments = writing.moments(apply)
        if apply != "load" and "init" in moments:
            found = f"`init` for {apply}"
            yield Misfit((*location, "at"), found, "[start]: data is loaded once for all values of such a knob")
        for moment in moments if writing.to_command and self.lifecycle is not None else []:
            command = getattr(self.lifecycle, moment)
            if command is None or "{knobs}" not in command:
                expected = f"{{knobs}} in the command `lifecycle.{moment}`"
                yield Misfit((*location, writing.kind), "arguments", expected)
        if writing.client is not None and self.connection is None:
            yield Misfit((*location, "client"), "a property of a client", "`connection`, which is missing")
        if writing.file is not None:
            yield from self._find_wrong_file((*location, "file"), writing, writing.file)

    def _find_wrong_file(self, location: tuple[Value, ...], writing: Writing, name: str) -> Iterator[Misfit]:
        if name not in self.config_files:
            yield Misfit(location, repr(name), f"a name under `config_files`: {sorted(self.config_files)}")
            return
        is_yaml = self.config_files[name].yaml is not None
        if (writing.line is not None and is_yaml) or (writing.key is not None and not is_yaml):
            yield Misfit(location, f"`{writing.kind}` for {name}", "`line` for files of lines, `key` for those in YAML")
        if any(isinstance(text, dict) != is_yaml for text in (writing.by_value or {}).values()):
            yield Misfit(
                (*location[:-1], "by_value"), "another kind of entry", "keys for YAML, lists of lines otherwise"
            )

    def location_of_writing(self, knob: str) -> tuple[Value, ...]:
        """Return the keys below which this file says how a knob is written."""
        return ("knobs", knob, "writing") if self.knobs[knob].writing else ("writing", self.knobs[knob].apply)

    def writing_of(self, knob: str) -> Writing | None:
        """How a knob is written: as it says itself, or as all with its `apply`; None when nothing says it.

        A layout knob is written as its part says, with a directory as its value; a setting of the workload or
        of the kernel is nothing to the DBMS.
        """
        if is_factor(knob):
            return None
        if (part := self.part_of(knob)) is not None:
            return part.writing
        return self.knobs[knob].writing or self.writing.get(self.knobs[knob].apply)

    def variable_of(self, knob: str) -> str | None:
        """Return the environment variable that a knob is written to; None where it is written in another way."""
        writing = self.writing_of(knob)
        if writing is None or writing.variable is None:
            return None
        return writing.variable.replace("{knob}", self.knobs[knob].alias or knob)

    @property
    def layout_parts(self) -> dict[str, Part]:
        """The parts that the layout of a study names, by the names that it gives them; they have knobs."""
        return {name: part for name, part in self.parts.items() if part_knob(name) in self.knobs}

    def part_of(self, knob: str) -> Part | None:
        """Return the part whose device a knob of a study's layout chooses; None for every other knob."""
        return next((part for name, part in self.layout_parts.items() if part_knob(name) == knob), None)

    def list_chosen(self, baseline: Mapping[str, Value]) -> list[str]:
        """Return the settings of a study's default configuration that are not built in: of the spec, and `baseline`."""
        chosen = {
            name: (baseline.get(name, knob.default), knob.default if knob.built_in is None else knob.built_in)
            for name, knob in self.knobs.items()
        }
        return [
            f"{name} = {self.write(value)} (built in: {self.write(built_in)})"
            for name, (value, built_in) in chosen.items()
            if not same_value(value, built_in)
        ]

    def list_risks(self, configuration: Mapping[str, Value], names: Iterable[str]) -> list[str]:
        """Return the knobs of these whose values risk committed data in a configuration; missing ones have defaults."""
        whole = {name: knob.default for name, knob in self.knobs.items()} | dict(configuration)
        return [name for name in names if name in self.knobs and self.knobs[name].risks(whole[name], whole)]

    def write(self, value: Value) -> str:
        """Return a value as the DBMS wants it written."""
        if isinstance(value, bool):
            return self.booleans[int(value)]
        return f"{value:g}" if isinstance(value, float) else str(value)
