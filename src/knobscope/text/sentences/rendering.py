"""Renders `sentence.j2` of a rule for a finding.

A template sees the columns of the finding, its evidence (`evidence`), what is done to the knob (`change`), what other
knobs are changed to meanwhile (`beside`, also at the end of `change`), what comes of it (`effect_words`, and `outcome`
with the case in it), whether the DBMS has a spec, as a watched command has not (`has_spec`), the functions below and
the macros of `phrases.j2`. It runs in Jinja's sandbox: a rule may come from somebody else.
"""

import math
import time
import traceback
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from knobscope.errors import UserError
from knobscope.specs import Dbms, Rule, RuleEffect
from knobscope.specs.reading.source import read_text, show_path
from knobscope.text.formats import (
    NO_CLEAR_EFFECT,
    describe_beside,
    describe_effect,
    describe_move,
    describe_setting,
    format_count,
    format_fold,
    format_micros,
    format_number,
    format_seconds,
    format_share,
    format_size,
    format_value,
    list_names,
    loosen_units,
    plural,
)
from knobscope.text.sentences import limits

if TYPE_CHECKING:
    import jinja2

_VALUE = float | None
#: Macros of `phrases.j2` that a template can use.
_PHRASES = ("caveat", "difference", "in_sweep", "obstacle", "part_of", "unjudged", "waits_would_tell")
#: What a template sees in addition to the columns of a finding; the last three where it has a change, or an effect.
_WORDS = ("beside", "has_spec", "setting", "change", "effect_words", "outcome")
#: What code of a template can raise.
_MISTAKES = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)


def _effect(
    change: float,
    low: _VALUE = None,
    high: _VALUE = None,
    more: str = "faster",
    less: str = "slower",
    is_clear: bool | None = None,
) -> str:
    """Say a relative change (-0.5: half) with its interval."""
    return describe_effect(_log(change), _known_log(low), _known_log(high), more, less, is_clear)


def _log(change: float) -> float:
    return math.log1p(change) if change > -1 else -math.inf


def _known_log(change: _VALUE) -> _VALUE:
    return None if change is None else _log(change)


def _fold(ratio: _VALUE) -> str:
    """Return a ratio as a factor: 3.1x."""
    return format_fold(None if ratio is None else math.log(ratio) if ratio > 0 else -math.inf)


#: Filters of a template, which are also there as functions.
_FORMATS = {
    "count": format_count,
    "effect_of": _effect,
    "fold": _fold,
    "micros": format_micros,
    "moves": describe_move,
    "names": list_names,
    "number": format_number,
    "plural": plural,
    "seconds": format_seconds,
    "share": format_share,
    "size": format_size,
}


class Sentences:
    """Says the findings of a study's rules in words; `dbms` are the specs of its DBMSs, for the units of values."""

    def __init__(self, dbms: Mapping[str, Dbms]) -> None:
        self._dbms = dbms
        self._templates: dict[str, jinja2.Template] = {}  # by rule
        self._seconds: dict[str, float] = {}  # that a rule has left

    def say(self, rule: Rule, finding: Mapping[str, Any]) -> str:
        """Return the sentence of a finding, with plain spaces; `evidence` of the finding is decoded, no text.

        UserError: the template fails, or says nothing.
        """
        import jinja2

        template = self._templates.get(rule.name)
        try:
            source = read_text(rule.sentence_file) if template is None else ""
            began = time.process_time()
            with limits.limited(self._seconds.get(rule.name, limits.SECONDS)):
                if template is None:
                    template = self._templates[rule.name] = _compile(source)
                module = template.make_module({**finding, **self._words(rule.about.effect, finding)})
                text = str(getattr(module, f"if_{finding['verdict']}")())
            remaining_s = self._seconds.get(rule.name, limits.SECONDS)
            self._seconds[rule.name] = remaining_s - (time.process_time() - began)
            if len(text) > limits.CHARACTERS:
                raise limits.TooExpensiveError(f"a sentence of more than {limits.CHARACTERS:,} characters")
        except limits.TooExpensiveError as error:
            raise UserError(f"{show_path(rule.sentence_file)}: {finding['verdict']}: {error}, the limit") from error
        except (jinja2.TemplateError, *_MISTAKES) as error:
            where = f"{show_path(rule.sentence_file)}:{_line_of(error, template)}: {finding['verdict']}"
            raise UserError(f"{where}: found {error}; expected words for the finding {dict(finding)}") from error
        sentence = " ".join(loosen_units(text).split())
        if not sentence:
            raise UserError(
                f"{show_path(rule.sentence_file)}:1: {finding['verdict']}: found an empty text; expected a sentence"
            )
        return sentence

    def say_outcome(self, about: RuleEffect, finding: Mapping[str, Any]) -> str:
        """Say what a finding changes, and what comes of it: Raising a from 1 to 2 makes ycsb-a on nvme 18 % slower."""
        words = self._words(about, finding)
        return loosen_units(f"{words['change']} {words['outcome']}")

    def _words(self, about: RuleEffect, finding: Mapping[str, Any]) -> dict[str, Any]:
        dbms, knob, value = self._dbms.get(str(finding["dbms"])), finding["knob"], finding["value"]
        evidence = finding["evidence"]
        beside = describe_beside(dbms, evidence.get("beside"))
        variables: dict[str, Any] = {
            "setting": lambda name, level: format_value(dbms, name, level),
            "beside": beside,
            "has_spec": dbms is not None,
        }
        if knob is not None and value is not None:
            change = describe_setting(dbms, knob, evidence.get("baseline"), value, evidence.get("step"))
            variables["change"] = f"{change}{beside}"
        if finding["effect"] is not None:
            ends = finding["effect_low"], finding["effect_high"]
            # What makes a mismatch is clear by the study's `fdr`, whatever an interval of 95 % holds.
            is_clear = True if finding["verdict"] == "mismatch" else None
            effect = _effect(finding["effect"], *ends, about.more, about.less, is_clear)
            smallest = evidence.get("smallest")  # effect of which an interval so wide leaves out none
            is_seen = None not in ends and not ends[0] <= 0 <= ends[1]
            is_visible = is_seen and smallest is not None and abs(_log(finding["effect"])) >= math.log1p(smallest)
            variables |= {
                "effect_words": effect,
                "outcome": _outcome(effect, f"{finding['workload']} on {finding['device']}"),
                "evidence": {**evidence, "is_visible": is_visible},
            }
        return variables


def find_unknown(
    template: str, columns: Collection[str], keys: Collection[str] | None
) -> Iterator[tuple[int, str, list[str]]]:
    """Yield what a template names and does not get: the line, the name, and the names that there are.

    `columns` are those of a finding, `keys` those of its evidence (None: not known), apart from which it may have
    `beside`. A key that the template asks for by `is defined` may be missing.
    """
    from jinja2 import meta, nodes

    environment = _environment()
    tree = environment.parse(template)
    variables = {*environment.globals, *columns, *_WORDS}
    names = list(tree.find_all(nodes.Name))
    own = {name.name for name in names if name.ctx != "load"}  # Jinja calls what a branch sets undeclared
    missing = meta.find_undeclared_variables(tree) - variables - own
    for name in names:
        if name.name in missing:
            yield name.lineno, name.name, sorted(variables)
    if keys is None:
        return
    known = {*keys, "beside", *(getattr(test.node, "attr", "") for test in tree.find_all(nodes.Test))}
    for part in tree.find_all(nodes.Getattr):
        if isinstance(part.node, nodes.Name) and part.node.name == "evidence" and part.attr not in known:
            yield part.lineno, f"evidence.{part.attr}", sorted(f"evidence.{key}" for key in keys)


@cache
def _environment() -> "jinja2.Environment":
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        loader=jinja2.PackageLoader("knobscope.text.sentences", ""),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FORMATS)
    environment.globals.update(_FORMATS)
    phrases = environment.get_template("phrases.j2").module
    environment.globals.update({name: getattr(phrases, name) for name in _PHRASES})
    return environment


@lru_cache(maxsize=64)  # a template takes 20 ms to compile, and a rule says its findings with one
def _compile(template: str) -> "jinja2.Template":
    return _environment().from_string(template)


def _outcome(effect: str, case: str) -> str:
    """Return what a change does to a case, as the rest of a sentence: makes ycsb-a on nvme 18 % slower."""
    if effect.startswith(NO_CLEAR_EFFECT):
        return f"has {effect} on {case}"
    return f"leaves {case} {effect}" if effect.startswith("unchanged") else f"makes {case} {effect}"


def _line_of(error: BaseException, template: "jinja2.Template | None") -> int:
    """Return the line of a template in which an error arose; 1 where that is not known."""
    if template is None:
        return getattr(error, "lineno", 1)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return template.get_corresponding_lineno(frames[-1].lineno or 1) if frames else 1
