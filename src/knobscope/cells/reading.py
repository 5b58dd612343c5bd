"""What the texts of a column stand for: numbers, truth values, words, or runs that failed.

A column is read as a whole: one word among 404 numbers is a question to whoever wrote the table, not a category.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from knobscope.cells.numbers import Numbers, read_numbers
from knobscope.cells.spelling import FAILURE_WORDS, MISSING_WORDS, TRUTH, is_default_word
from knobscope.specs import Value
from knobscope.text.formats import plural


@dataclass(frozen=True)
class Reading:
    """The value of each distinct text of a column, what was done, and what cannot be read."""

    values: dict[str, Value]
    note: str
    problems: list[tuple[str, str]] = field(default_factory=list)  # a text, and what was expected instead of it
    failed: list[str] = field(default_factory=list)  # texts that stand for a run that failed
    decimal: str = ""  # what separates decimals, where the column shows it


def read_factor(
    texts: Sequence[str],
    name: str,
    *,
    values: Mapping[str, str],
    decimal: str | None = None,
    doubt_points: bool = False,
    is_category: bool = False,
) -> Reading:
    """Read the distinct texts of a column of settings; `values` is what words stand for, `is_category` that all do."""
    meant = {text: values.get(text, text) for text in texts}
    if is_category:
        return Reading(dict(meant), "words")
    distinct = list(dict.fromkeys(meant.values()))
    truth = read_truth(distinct)
    if truth is not None:
        return Reading({text: truth[word] for text, word in meant.items()}, "true or false")
    numbers = read_numbers(distinct, decimal=decimal, doubt_points=doubt_points)
    if numbers.problem is not None:
        problem = _explain(numbers, meant)
        return Reading({}, "", [problem])
    if not numbers.values:
        missing = [text for text, word in meant.items() if word.lower() in MISSING_WORDS]
        expected = f"a value in every row, or --category {name} where this is one"
        return Reading(dict(meant), "words", [(text, expected) for text in missing])
    problems = [
        (text, _expect_number(name, text, len(numbers.values)))
        for text, word in meant.items()
        if word in numbers.unread
    ]
    note = ", ".join(["numbers", *numbers.notes])
    read_values: dict[str, Value] = {
        text: numbers.values[word] for text, word in meant.items() if word in numbers.values
    }
    return Reading(read_values, note, problems, decimal=numbers.decimal)


def read_measured(texts: Sequence[str], failed: Sequence[str], *, decimal: str | None, doubt_points: bool) -> Reading:
    """Read the distinct texts of a measured column; `failed` are more texts or numbers that stand for a failed run."""
    failure_texts = [text for text in texts if text in failed or text.lower() in FAILURE_WORDS]
    numbers = read_numbers(
        [text for text in texts if text not in failure_texts], decimal=decimal, kilo=1000, doubt_points=doubt_points
    )
    if numbers.problem is not None:
        return Reading({}, "", [_explain(numbers, {})])
    codes = read_numbers([text for text in failed if text not in failure_texts]).values
    failure_texts += [text for text, value in numbers.values.items() if value in codes.values()]
    actual = set(numbers.values.values())
    absent = [text for text in failed if text not in texts and codes.get(text) not in actual]
    expected = "a number; --failed-value WORD says that a word stands for a failed run"
    read_values: dict[str, Value] = {text: value for text, value in numbers.values.items() if text not in failure_texts}
    note = ", ".join(["numbers", *numbers.notes, *(f"none of them the failed value {text}" for text in absent)])
    return Reading(read_values, note, [(text, expected) for text in numbers.unread], failure_texts, numbers.decimal)


def read_truth(texts: Sequence[str]) -> dict[str, bool] | None:
    """Return the truth value of each text, None where one is none, or all are digits and may be counts."""
    lower = [text.lower() for text in texts]
    if all(text in TRUTH for text in lower) and not all(text.isdigit() for text in lower):
        return {text: TRUTH[text.lower()] for text in texts}
    return None


def _explain(numbers: Numbers, meant: Mapping[str, str]) -> tuple[str, str]:
    text, why, remedy = numbers.problem or ("", "", "")
    original = next((key for key, word in meant.items() if word == text), text)
    return original, f"a number that can mean one thing only: this one {why}; {remedy}"


def _expect_number(name: str, text: str, numbers: int) -> str:
    hint = f"--value {name}:{text}=NUMBER says what it stands for"
    default = "the default's value: a word for it is no number; " if is_default_word(text) else "a number: "
    context = f"the column holds {plural(numbers, 'other value')} that are numbers"
    if not text:
        return f"a value in every row: {context}"
    return f"{default}{context}; {hint}, --category {name} that all of them are words".replace("\u00a0", " ")
