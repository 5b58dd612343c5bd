"""A load generator in addition to YCSB: a program with arguments, and the name of the parser that reads its output."""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from knobscope.specs.models.programs import PathName, Program, find_bare_paths
from knobscope.specs.models.template import GeneratorArgument, GeneratorFileLine, names_in
from knobscope.specs.models.writing import FileName
from knobscope.specs.reading.base import Misfit, Name, SpecModel, Value
from knobscope.specs.reading.source import show_value

#: The generators that are built in: their workloads need no file in specs/generators.
YCSB = "ycsb"
TPCC = "tpcc"
TPCH = "tpch"
TPCDS = "tpcds"
BUILT_IN = (YCSB, TPCC, TPCH, TPCDS)

OutputParser = Literal["pgbench", "sysbench", "redis_benchmark", "db_bench", "wtperf", "fio", "generic"]
OUTPUT_PARSERS: tuple[str, ...] = get_args(OutputParser)

GeneratorCommand = Annotated[list[GeneratorArgument], Field(min_length=1)]


class Generator(SpecModel):
    """One load generator. Commands are argument lists, never seen by a shell; they begin with a name of `programs`."""

    name: Name = Field(description="The file's name without .yaml.")
    description: str = Field(description="What it is.")
    programs: dict[str, Program] = Field(min_length=1, description="Executables by the name that commands call them.")
    paths: dict[PathName, Program] = Field(
        default_factory=dict,
        description="Other files and directories that commands name as {path.NAME}: scripts, jars.",
    )
    parameters: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Value] = Field(
        default_factory=dict, description="What a workload may choose, with its defaults; {parameter.NAME} in commands."
    )
    files: dict[FileName, list[GeneratorFileLine]] = Field(
        default_factory=dict,
        description="Files that it reads, each a list of lines, by name; they lie in {out}. A program is better a file "
        "of its own, under `paths`.",
    )
    load: list[GeneratorCommand] = Field(
        min_length=1, description="Commands that make the data, one after the other, once for all runs."
    )
    run: GeneratorCommand = Field(
        description="The load. It is called twice in a run: for the warm-up, and to be measured."
    )
    bound: Literal["time", "requests"] = Field(
        default="time",
        description="What ends it: {seconds}, or {requests}, a number that is taken from the speed of the warm-up.",
    )
    warmup_requests: int = Field(
        default=1000,
        gt=0,
        description="Operations of a first short warm-up, for a generator bound by their number. There is one with "
        "`warmup_s: 0`, too: its speed sets the number of the run.",
    )
    parser: OutputParser = Field(description="Which parser reads its output.")
    record_bytes: int = Field(
        default=1024, gt=0, description="Size of a record as loaded, for the check whether the disk has room."
    )
    source: str | None = Field(default=None, pattern=r"^https?://", description="Its documentation.")

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield commands of unknown programs, unknown parameters, and a load that nothing would end."""
        for location, command in self._commands():
            if command[0] not in self.programs:
                yield Misfit((*location, 0), repr(command[0]), f"a name under `programs`: {sorted(self.programs)}")
            yield from find_bare_paths(location, command)
        for location, texts in [*self._commands(), *((("files", name), lines) for name, lines in self.files.items())]:
            for namespace, names in (
                ("parameter", self.parameters),
                ("records_per", self.parameters),
                ("path", self.paths),
            ):
                for index, name in names_in(texts, namespace):
                    if name not in names:
                        group = "paths" if namespace == "path" else "parameters"
                        expected = f"a name under `{group}`: {sorted(names)}"
                        yield Misfit((*location, index), f"{{{namespace}.{name}}}", expected)
        for name, value in self.parameters.items():
            if (wanted_value := self.expected_of(name, value)) is not None:
                yield Misfit(("parameters", name), show_value(value), wanted_value)
        wanted = "{seconds}" if self.bound == "time" else "{requests}"
        if not any(wanted in text for text in self.run):
            yield Misfit(("run",), f"a command without {wanted}", f"it, for a generator that is bound by {self.bound}")

    @property
    def load_parameters(self) -> frozenset[str]:
        """Return the parameters on which the data depends: those in `load`, and in the files that it may read."""
        texts = [text for command in self.load for text in command]
        unread = dict(self.files)
        for text in texts:  # grows with the files that are read
            is_whole = text.replace("{out}/", "").find("{out}") >= 0
            for name in [name for name in unread if is_whole or f"{{out}}/{name}" in text]:
                texts += unread.pop(name)
        return frozenset(name for namespace in ("parameter", "records_per") for _, name in names_in(texts, namespace))

    def expected_of(self, parameter: str, value: Value) -> str | None:
        """Say what a parameter takes instead of this value, None when it takes it."""
        texts = [text for _, command in self._commands() for text in command]
        texts += [line for lines in self.files.values() for line in lines]
        divides = any(name == parameter for _, name in names_in(texts, "records_per"))
        is_count = type(value) is int and value >= 1
        return None if is_count or not divides else "a whole number from 1 on, by which `records` is divided"

    def _commands(self) -> Iterator[tuple[tuple[Value, ...], list[str]]]:
        yield from ((("load", index), command) for index, command in enumerate(self.load))
        yield ("run",), self.run
