"""How knobs are passed: as arguments, statements, properties of the client, or lines and keys of a file."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from knobscope.specs.models.template import FileLine, WrittenKnob, WrittenValue, find_wrong_texts
from knobscope.specs.reading.base import Misfit, SpecModel, Value

Apply = Literal["load", "restart", "dynamic"]
#: When a knob is passed: as data is made and loaded, or as a run starts.
Moment = Literal["init", "start"]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}$")]

_KINDS = ("argv", "sql", "client", "variable", "line", "key", "by_value")
#: Of these the ones that have a `value`, and of those again the ones to which several knobs may add.
_WITH_VALUE, _WITH_PARTS = ("key", "client", "variable"), ("client", "variable")


class ConfigFile(SpecModel):
    """A file that a server reads, made anew in {config} for every start: fixed settings, then the knobs."""

    lines: list[FileLine] | None = Field(
        default=None, description="Its fixed lines; knobs with `line` add theirs at the end."
    )
    yaml: dict[str, Any] | None = Field(
        default=None, description="Its fixed content, for a file in YAML; knobs with `key` set keys at the top."
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield that it is of no kind or of both, and wrong placeholders."""
        if (self.lines is None) == (self.yaml is None):
            found = "neither `lines` nor `yaml`" if self.lines is None else "both `lines` and `yaml`"
            yield Misfit((), found, "one of them")
        yield from find_wrong_texts(self.yaml, ("yaml",))


class Writing(SpecModel):
    """How a knob is passed: exactly one of `argv`, `sql`, `client`, `variable`, `line`, `key` and `by_value`."""

    argv: list[WrittenKnob] | None = Field(
        default=None, min_length=1, description="Arguments instead of {knobs}, e.g. ['-c', '{knob}={value}']."
    )
    sql: WrittenKnob | None = Field(
        default=None, description="A statement on every connection, e.g. PRAGMA {knob}={value}."
    )
    client: WrittenKnob | None = Field(
        default=None, description="Name of a property of the client binding, e.g. rocksdb.{knob}."
    )
    variable: WrittenKnob | None = Field(
        default=None,
        exclude_if=lambda name: name is None,
        description="Name of an environment variable of the server (of the generator, for a DBMS without one), e.g. "
        "{knob}.",
    )
    file: FileName | None = Field(
        default=None, description="A name under `config_files`, for `line`, `key` and `by_value`."
    )
    line: WrittenKnob | None = Field(default=None, description="A line of that file, e.g. {knob} {value}.")
    key: WrittenKnob | None = Field(default=None, description="A key at the top of that YAML file, e.g. {knob}.")
    value: WrittenValue = Field(
        default="{value}",
        description="What `key`, `client` or `variable` is set to, e.g. {value}{unit} for 10ms, or "
        "{property};{knob}={value} for a part of a URL to which other knobs add theirs.",
    )
    by_value: dict[bool | int | float | str, list[WrittenKnob] | dict[str, Any]] | None = Field(
        default=None,
        description="For each value of the knob what is written: a list of arguments (empty: none), with `file` a list "
        "of lines, with a YAML file the keys to set (those set to nothing are removed).",
    )
    at: list[Moment] | None = Field(
        default=None,
        min_length=1,
        description="When it is passed: `init` (making and loading data), `start` (every run). Without: [init] "
        "for load, [start] for the others. A load-time knob that the server also wants at every start needs "
        "[init, start].",
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield that it is not exactly one way, and keys that do not belong to this way."""
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            found = f"both `{kinds[0]}` and `{kinds[1]}`" if kinds else f"none of {', '.join(_KINDS)}"
            yield Misfit((), found, "one of them")
            return
        kind = kinds[0]
        if kind in ("line", "key") and self.file is None:
            yield Misfit((kind,), f"`{kind}` without `file`", "a name under `config_files` as `file`")
        if self.file is not None and kind not in ("line", "key", "by_value"):
            yield Misfit(("file",), f"this key together with `{kind}`", "it with `line`, `key` or `by_value` only")
        if self.value != "{value}" and kind not in _WITH_VALUE:
            yield Misfit(("value",), f"this key together with `{kind}`", "it with `key`, `client` or `variable` only")
        elif "{property}" in self.value and kind not in _WITH_PARTS:
            yield Misfit(("value",), "{property} together with `key`", "it with `client` or `variable` only")

    @property
    def kind(self) -> str:
        """Which of the ways it is."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @property
    def to_command(self) -> bool:
        """Whether it adds arguments to a command."""
        return self.argv is not None or (self.by_value is not None and self.file is None)

    def missing_part(self, *, named: bool) -> str | None:
        """Return {knob} (with `named`) or {value} when the text does not hold it."""
        if self.by_value is not None:
            return None
        value = self.value if self.kind in _WITH_VALUE else ""
        texts = [*(self.argv or []), self.sql, self.client, self.variable, self.line, self.key, value]
        text = " ".join(part for part in texts if part is not None)
        wanted = ["{knob}", "{value}"] if named else ["{value}"]
        return " and ".join(part for part in wanted if part not in text) or None

    def moments(self, apply: Apply) -> list[Moment]:
        """When a knob with this `apply` is passed."""
        return self.at or (["init"] if apply == "load" else ["start"])

    def of_value(self, value: Value) -> "list[str] | dict[str, Any] | None":
        """Return what `by_value` says for a value, None when it says nothing."""
        return next((text for key, text in (self.by_value or {}).items() if same_value(key, value)), None)


def same_value(first: Value, second: Value) -> bool:
    """Compare without Python's 1 == True."""
    return isinstance(first, bool) == isinstance(second, bool) and first == second
