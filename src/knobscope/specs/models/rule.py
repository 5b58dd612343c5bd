"""A mismatch rule: a folder with the query that judges, the sentences that tell it, and what else describes it.

`rule.sql` returns numbers, codes and a verdict; `sentence.j2` says them in words; `rule.yaml`, the model below, holds
what is neither. Nothing else in knobscope knows a rule by its name.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from knobscope.shipped import SHIPPED
from knobscope.specs.reading.base import Misfit, SpecModel
from knobscope.specs.reading.source import SpecErrors, SpecProblem, load_document, read_text, show_path
from knobscope.specs.reading.validate import validate_document

#: Folder of the rules that come with knobscope.
SHIPPED_RULES = SHIPPED / "rules" / "mismatch"
#: What a rule may say of a question; `sentence.j2` has a macro for each, named `if_mismatch` and so on.
VERDICTS = ("mismatch", "none", "insufficient")
#: What the comment at the head of `rule.sql` has to say, apart from the claim in its first line.
_HEADINGS = ("Source", "Needs", "Insufficient")

#: Pictures that the report can draw of the runs behind a finding.
RuleFigure = Literal["throughput", "tail", "sizes", "read_sizes", "depth", "shares", "values", "devices"]
#: What a rule may blame of the I/O.
Factor = Literal["write_size", "flush", "reads", "parallelism", "sequentiality"]
_RuleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class RuleThreshold(SpecModel):
    """A number that decides between verdicts; a study may set another one under `thresholds`."""

    default: float = Field(description="Its value where the study says nothing.")
    unit: str = Field(description="What it is measured in, such as `share` (0 to 1) or `ratio`.")
    meaning: str = Field(description="What it decides.")
    source: str = Field(description="Where the default comes from.")
    least: float = Field(default=0, description="The smallest value allowed.")
    most: float | None = Field(default=None, description="The largest value allowed; no limit when absent.")

    @model_validator(mode="after")
    def _is_in_its_range(self) -> "RuleThreshold":
        if problem := self.problem_with(self.default):
            raise Misfit(("default",), f"{self.default:g}", problem)
        return self

    def problem_with(self, value: float) -> str | None:
        """Say what was expected instead of a value that is not allowed; None where it is."""
        if self.most is not None and not self.least <= value <= self.most:
            return f"a number from {self.least:g} to {self.most:g} ({self.unit})"
        return None if value >= self.least else f"a number from {self.least:g} up ({self.unit})"


class RuleCause(SpecModel):
    """The factor that a rule blames, and what fio has to show when it repeats the I/O and changes that factor alone."""

    factor: Factor = Field(
        description="What `knobscope imitate` changes of the slower setting's I/O: its write sizes, flushes or reads "
        "become those of the faster one, 32 are in flight, or the same requests come in random order. "
        "`knobscope remeasure` changes the property of the device that this is about."
    )
    expected: Literal["gain", "no_loss"] = Field(
        description="What confirms the cause: the changed I/O is faster, beyond noise and by most of the difference "
        "between the two settings (docs/how-to/causes.md), or it loses at most 10 %."
    )
    confirmed: str = Field(description="What that means, as the end of a sentence.")
    refuted: str = Field(description="What it means when fio does not show it.")
    requires: str | None = Field(
        default=None,
        description="Key of the evidence that must be true before an experiment makes an *insufficient* finding a "
        "mismatch: what a device cannot show, such as that there is more of what is blamed.",
    )


class RuleEffect(SpecModel):
    """What the rule's columns effect, effect_low and effect_high are a relative change of."""

    label: str = Field(default="Throughput", description="Heading of the number in the report.")
    more: str = Field(default="faster", description="Word for a positive change.")
    less: str = Field(default="slower", description="Word for a negative change.")


class RuleSpec(SpecModel):
    """What a rule is, apart from its query and its sentences."""

    name: _RuleName = Field(description="The folder's name.")
    title: str = Field(description="What a mismatch of this rule is called, in a few words.")
    question: str = Field(description="What the rule asks, as a question.")
    needs: list[str] = Field(min_length=1, description="Tables and views of the study's database that the query reads.")
    thresholds: dict[_RuleName, RuleThreshold] = Field(
        default_factory=dict,
        description="Its own thresholds, which the query reads as getvariable('NAME'). `fdr` and `min_effect` belong "
        "to the study and are there for every rule.",
    )
    figures: list[RuleFigure] = Field(
        default=["throughput", "sizes", "depth", "shares"],
        description="Pictures that speak for a mismatch, the most telling ones first: the report shows two, and the "
        "rest on demand.",
    )
    effect: RuleEffect = Field(default=RuleEffect(), description="What its effects are changes of.")
    subject: str = Field(
        default="Default configuration", description="What a mismatch without a knob is about; may be empty."
    )
    explained: Literal["effect", "time", "nothing"] = Field(
        default="effect",
        description="What `knobscope remeasure` looks for the cause of: the effect of a knob's value, the time that "
        "the configuration itself takes per operation, or of nothing: its effects are not on throughput.",
    )
    penalty: Literal["io", "measured"] = Field(
        default="io",
        description="What a penalty is: `io`, what better I/O would gain, so that the time in which the device is busy "
        "limits it; `measured`, the ratio of two figures that were measured, whatever made them differ.",
    )
    cause: RuleCause | None = Field(
        default=None, description="The factor of the I/O that it blames; absent: fio cannot test it."
    )
    held_by: dict[_RuleName, Factor] = Field(
        default_factory=dict,
        description="Values of `held_by` in the evidence, and the factor that each blames, of a rule about what a "
        "configuration takes itself (`explained: time`): `knobscope remeasure` changes that property of a modelled "
        "device.",
    )
    unasked: dict[_RuleName, str] = Field(
        default_factory=dict,
        description="Codes of `obstacle` in the evidence which mean that the design of a study does not ask the "
        "question, with what it would take to ask it, e.g. {no_tier: a device of another tier}. The report lists these "
        "in one line, and not among the questions that could not be judged.",
    )
    reads_findings: bool = Field(
        default=False, description="Whether it judges what other rules found (table `earlier_findings`), after them."
    )


@dataclass(frozen=True)
class Rule:
    """A rule that was read: what `rule.yaml` says, and where it lies."""

    folder: Path
    about: RuleSpec

    @property
    def name(self) -> str:
        """Its name, which is that of its folder."""
        return self.about.name

    @property
    def query_file(self) -> Path:
        """The query that judges."""
        return self.folder / "rule.sql"

    @property
    def about_file(self) -> Path:
        """What is neither query nor sentence."""
        return self.folder / "rule.yaml"

    @property
    def sentence_file(self) -> Path:
        """The sentences, one macro for each verdict."""
        return self.folder / "sentence.j2"

    @property
    def files(self) -> list[Path]:
        """All files that the rule consists of."""
        return [self.query_file, self.about_file, self.sentence_file]

    @cached_property
    def header(self) -> dict[str, str]:
        """What the comment at the head of the query tells, by heading; the claim is that of the empty heading."""
        return _read_header(read_text(self.query_file), self.name)


def shipped_rules() -> list[str]:
    """Return the names of the rules that come with knobscope, in alphabetical order."""
    return sorted(path.parent.name for path in SHIPPED_RULES.glob("*/rule.yaml"))


def read_rule(folder: Path) -> Rule:
    """Read a rule's folder; raises SpecErrors with all problems of its files."""
    about, problems = _read_about(folder)
    problems += [*_check_query(folder / "rule.sql", folder.name), *_check_sentence(folder / "sentence.j2")]
    if about is None or problems:
        raise SpecErrors(problems)
    return Rule(folder, about)


@cache
def read_shipped_rule(name: str) -> Rule:
    """Read a rule that comes with knobscope, once: its files stay the same while the program runs.

    To parse the queries and sentences of all of them takes most of the time of reading a study, which every job of it
    does: they are looked at when they are used, and by `knobscope rules`.
    """
    about, problems = _read_about(SHIPPED_RULES / name)
    if about is None or problems:
        raise SpecErrors(problems)
    return Rule(SHIPPED_RULES / name, about)


def _read_about(folder: Path) -> tuple[RuleSpec | None, list[SpecProblem]]:
    """Return what `rule.yaml` says, if it can be read, and its problems."""
    document = load_document(folder / "rule.yaml")
    try:
        about = validate_document(document, RuleSpec)
    except SpecErrors as error:
        return None, error.problems
    named = about.name == folder.name
    return about, [] if named else [
        document.problem(("name",), repr(about.name), f"the folder's name, {folder.name!r}")
    ]


def _check_query(path: Path, name: str) -> Iterator[SpecProblem]:
    """Yield what is wrong with a query as far as that can be determined without a database."""
    import duckdb

    if not path.is_file():
        yield SpecProblem(show_path(path), 1, "", "no such file", "the query of the rule")
        return
    text = read_text(path, "the query of the rule")
    header = _read_header(text, name)
    if "" not in header:
        yield SpecProblem(show_path(path), 1, "", "no claim", f"a first line `-- {name}: what a mismatch is`")
    for heading in _HEADINGS:
        if heading not in header:
            expected = f"a line `-- {heading}: ...` in the comment at its head"
            yield SpecProblem(show_path(path), 1, "", f"no {heading.lower()!r}", expected)
    try:
        statements = duckdb.extract_statements(text)
    except duckdb.Error as error:
        yield SpecProblem(show_path(path), line_of(str(error)), "", str(error).splitlines()[0], "one SQL query")
        return
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        yield SpecProblem(show_path(path), 1, "", f"{len(statements)} statements", "one SELECT")


def line_of(message: str) -> int:
    """Return the line of a query that a message of DuckDB names; 1 where it names none."""
    match = re.search(r"LINE (\d+):", message)
    return int(match[1]) if match else 1


def _check_sentence(path: Path) -> Iterator[SpecProblem]:
    """Yield what is wrong with the sentences: their syntax, and verdicts that have none."""
    import jinja2

    if not path.is_file():
        yield SpecProblem(show_path(path), 1, "", "no such file", "the sentences of the rule")
        return
    try:
        tree = jinja2.Environment(autoescape=True).parse(read_text(path, "the sentences of the rule"))
    except jinja2.TemplateSyntaxError as error:
        yield SpecProblem(show_path(path), error.lineno, "", str(error.message), "a Jinja template")
        return
    except RecursionError:
        yield SpecProblem(show_path(path), 1, "", "a template that is nested too deep", "a Jinja template")
        return
    macros = {node.name for node in tree.find_all(jinja2.nodes.Macro)}
    for verdict in VERDICTS:
        if f"if_{verdict}" not in macros:
            expected = f"{{% macro if_{verdict}() %}} ... {{% endmacro %}}, which says a finding of that verdict"
            yield SpecProblem(show_path(path), 1, "", f"no macro `if_{verdict}`", expected)


def _read_header(text: str, name: str) -> dict[str, str]:
    """Return heading -> paragraph of the comment at the head of a query; the claim has the empty heading."""
    paragraphs: dict[str, list[str]] = {}
    heading: str | None = None
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        content = line[2:].strip()
        begin = re.match(rf"({name}|[A-Z][A-Za-z_]*(?: [a-z]+)*): (.*)", content)
        if begin and not line.startswith("--  "):
            heading, content = ("" if begin[1] == name else begin[1]), begin[2]
        if heading is not None:
            paragraphs.setdefault(heading, []).append(content)
    return {key: " ".join(lines) for key, lines in paragraphs.items()}
