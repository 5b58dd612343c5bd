"""The knobs of imported runs: what their texts are as values, and what the table and the DBMS's spec say of them."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.cells import TRUTH, Problems, is_default_word, read_numbers, read_truth
from knobscope.cells.spelling import find_scales
from knobscope.commands.importing.designed import MOST_LEVELS, choose_levels, find_typical
from knobscope.commands.importing.runs import ImportedTable
from knobscope.specs import Dbms, Knob, Value

_SOURCE = "https://example.org/imported"


class ImportedKnob:
    """The values of one knob in the table, of one type, in the order that counts as raising it.

    `problems` are texts that cannot be read, each with what was expected instead.
    """

    def __init__(
        self, texts: Sequence[str], spec: Knob | None, facts: Mapping[str, Any], decimal: str | None = None
    ) -> None:
        self.facts, self.problems = facts, dict[str, str]()
        self.is_default_measured = True
        self.levels: list[Value] | None = None  # None: each value is one
        self.order = _split(facts.get("order"))
        baseline = [facts["baseline"]] if "baseline" in facts else []
        every = [text for text in dict.fromkeys([*baseline, *texts]) if not self._is_default(text, spec)]
        self.special = _split(facts.get("special")) or list(map(str, spec.special if spec is not None else ()))
        plain = [text for text in every if text not in self.special] or every
        unit = facts.get("unit") or (spec.unit if spec is not None else None)
        if not unit and spec is not None and spec.range is not None:
            unit = "B"  # DBMSs take 1M for 1048576, whatever the number counts
        self.numbers = read_numbers(plain, decimal=decimal, target=_target(plain, unit))
        self.truth = read_truth(plain) or {}
        self.type = self._common_type()
        if spec is not None and spec.type == "integer" and self._are_whole():
            self.type = "integer"  # tools write 37.0
        elif spec is not None and spec.type == "boolean" and all(text.lower() in TRUTH for text in plain):
            self.type, self.truth = "boolean", {text: TRUTH[text.lower()] for text in plain}
        if spec is not None and _fits(spec, self.type):
            self.type = spec.type
        self.known = spec if spec is not None and spec.type == self.type else None
        if self.type == "enum" and not self.order and self.known is None:
            self._question_mixture()
        values = {text: self._convert(text) for text in every}
        default = self.known.own_default if self.known is not None else None
        #: The value in the default configuration; `imported_knobs` refuses a knob without one.
        self.reference: Any = values[facts["baseline"]] if "baseline" in facts else default
        of_default = dict.fromkeys([] if self.reference is None else texts, self.reference)
        self.values: dict[str, Any] = {text: values.get(text, of_default.get(text)) for text in [*baseline, *texts]}

    def _is_default(self, text: str, spec: Knob | None) -> bool:
        """Whether a text stands for the default instead of being a value of the knob."""
        listed = [*self.order, *map(str, (spec.values if spec is not None else None) or ())]
        return is_default_word(text) and text not in listed and text != self.facts.get("baseline")

    def _common_type(self) -> str:
        if self.order:
            return "enum"
        if self.truth:
            return "boolean"
        if self.numbers.unread or not self.numbers.values:
            return "enum"
        return "integer" if all(isinstance(value, int) for value in self.numbers.values.values()) else "real"

    def _are_whole(self) -> bool:
        """Whether all values are whole numbers, however they are written."""
        numbers = self.numbers.values.values()
        return self.type == "real" and all(float(number).is_integer() for number in numbers)

    def _question_mixture(self) -> None:
        """Note texts that are no numbers among those that are, and numbers that can mean two things."""
        if self.numbers.problem is not None:
            text, why, remedy = self.numbers.problem
            self.problems[text] = f"a number that can mean one thing only: this one {why}; {remedy}"
        elif self.numbers.values:
            hint = "column `special` names words with a meaning of their own, column `order` all values of such a knob"
            expected = f"a number, as other values of the knob are; {hint}"
            self.problems |= dict.fromkeys(self.numbers.unread, expected)

    def look_at_design(self, counts: Mapping[str, int]) -> None:
        """Choose the levels at which a model looks at a design, whose texts are in so many rows each.

        Effects are against a typical value where the default is unknown, or beyond all values that the design has.
        """
        rows: Counter[Value] = Counter()
        for text, count in counts.items():
            if self.values[text] is not None:
                rows[self.values[text]] += count
        if not rows:
            return
        is_number = self.type in ("integer", "real")
        if self.reference not in rows and not (
            # Among many values it replaces a level; among few no row has it, and a model knows nothing of it.
            is_number
            and self.reference is not None
            and len(rows) > MOST_LEVELS
            and min(rows) <= self.reference <= max(rows)
        ):
            self.is_default_measured, self.reference = False, find_typical(rows)
            self.values |= {text: self.reference for text, value in self.values.items() if value is None}
        special = [self._convert(text) for text in self.special]
        if is_number:
            self.levels = choose_levels(rows, self.reference, special)
        elif self.type == "enum" and len(rows) > 1:  # a spec may list more values than the design has
            self.levels = [value for value in self.spec()["values"] if value in rows]

    @property
    def is_unordered(self) -> bool:
        """Whether nobody said which of its words is more."""
        return self.type == "enum" and not self.order and (self.known is None or self.known.values is None)

    def spec(self) -> dict[str, Any]:
        """Return the knob as a spec has it."""
        about: dict[str, Any] = {"mechanism": "other", "source": _SOURCE}
        if self.known is not None:
            about |= self.known.model_dump(
                exclude_unset=True, exclude={"requires", "when", "writing", "alias", "reads_back", "built_in"}
            )
        about |= {key: self.facts[key] for key in ("unit", "expect", "mechanism", "durability") if key in self.facts}
        if self.is_unordered:
            about.pop("expect", None)  # raising it means nothing
        if (about["mechanism"], about.get("expect")) != ("other", "none"):
            about.pop("control", None)  # the table knows better than the spec
        values = [*self.values.values(), self.reference]
        about |= {
            "type": self.type,
            "apply": "restart",
            "default": self.reference,
        }
        if self.type in ("integer", "real"):
            self._add_range(about, values)
        elif self.type == "enum":
            choices = dict.fromkeys([*(self.order or about.get("values") or []), *values])
            about["values"] = [*choices, *(["other"] if len(choices) < 2 else [])]
        return about

    def _add_range(self, about: dict[str, Any], values: Sequence[Value]) -> None:
        """Add the range that the numbers span, special ones apart."""
        special = {self._convert(text): "special" for text in self.special}
        about["special"] = {**special, **about.get("special", {})}
        ends: list[Any] = [value for value in values if value not in about["special"]] + (about.get("range") or [])
        low, high = min(ends, default=0), max(ends, default=1)
        about["range"] = [low, high if high > low else low + 1]
        if low <= 0:
            about.pop("scale", None)

    def _convert(self, text: str) -> Value:
        if self.type == "enum":
            return self._find_listed(text)
        if self.type == "boolean":
            return self.truth.get(text, False)
        number = self.numbers.values.get(text)
        if number is None:
            number = read_numbers([text]).values.get(text)
        if number is None:
            return text  # a special value that is a word
        return float(f"{number:.6g}") if self.type == "real" else int(number)

    def _find_listed(self, text: str) -> Value:
        """Return the value of the spec that a text spells: the word, the number, or the word in other letters."""
        listed = (self.known.values if self.known is not None else None) or []
        number = self.numbers.values.get(text)
        words = {value: str(value) for value in listed}
        same = [value for value, word in words.items() if word == text]
        same += [value for value in listed if not isinstance(value, str | bool) and value == number]
        same += [value for value, word in words.items() if word.lower() == text.lower()]
        return same[0] if same else text


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in text.split("|")] if text is not None else []


def imported_knobs(
    table: ImportedTable, known_dbms: Mapping[str, Dbms], decimal: str | None, problems: Problems
) -> dict[str, dict[str, ImportedKnob]]:
    """Return DBMS -> knob -> its values; `known_dbms` are the specs of DBMSs that there are.

    Adds values that cannot be read, and knobs whose value in the default configuration nobody says, to the `problems`
    of the table; without any, DBMSs of which no run changes a knob.
    """
    texts: dict[tuple[str, str], dict[str, int]] = {}  # values, with the line of each
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for run in table.runs:
        for knob, text in run.settings.items():
            texts.setdefault((run.case.dbms, knob), {}).setdefault(text, run.line.number)
            counts[run.case.dbms, knob][text] += 1
    knobs: dict[str, dict[str, ImportedKnob]] = {run.case.dbms: {} for run in table.runs}
    for (dbms, knob), lines in texts.items():
        spec = known_dbms[dbms].knobs.get(knob) if dbms in known_dbms else None
        imported_knob = ImportedKnob(list(lines), spec, table.knob_facts.get((dbms, knob), {}), decimal)
        for text, expected in imported_knob.problems.items():
            problems.add(table.path, lines.get(text, min(lines.values())), "value", f"{text!r} for {knob}", expected)
        if table.is_designed and not imported_knob.problems:
            imported_knob.look_at_design(counts[dbms, knob])
        if imported_knob.reference is None and not imported_knob.problems:
            why = f"no spec or catalogue of {dbms} has its default"
            expected = f"the value of {knob} in the default configuration: {why}"
            problems.add(table.path, min(lines.values()), "baseline", "nothing", expected)
        knobs[dbms][knob] = imported_knob
    for dbms in [] if problems.found else [name for name, of_dbms in knobs.items() if not of_dbms]:
        line = min(run.line.number for run in table.runs if run.case.dbms == dbms)
        expected = "at least one row of it with `knob` and `value`: a study varies something"
        problems.add(table.path, line, "knob", f"no run of {dbms} that changes a knob", expected)
    return knobs


def _target(texts: Sequence[str], unit: str | None) -> dict[str, float] | None:
    """Return by what to multiply numbers with each unit in the texts, for a knob that counts in `unit`."""
    if unit is None:
        return None
    count, own = _split_unit(unit)
    if not count:
        return None
    written = {_split_unit(text)[1] for text in texts if text[-1:].isalpha()} - {""}
    scales = find_scales({own, *written}, 1024) if written else None
    return None if scales is None else {name: scales[0][name] / (scales[0][own] * count) for name in written}


def _split_unit(text: str) -> tuple[float, str]:
    """Return number and unit of a text such as 8kB; 1 where there is only the unit."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµμ/% ")
    number = read_numbers([digits]).values.get(digits, 1) if digits else 1
    return number, text[len(digits) :].strip()


def _fits(spec: Knob, kind: str) -> bool:
    """Whether values of this type are values of the type that the spec gives the knob."""
    return spec.type in (kind, "enum") or (kind, spec.type) == ("integer", "real")
