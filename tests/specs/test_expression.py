"""The language of `requires` agrees with Python where both are defined, and never executes anything."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knobscope.errors import UserError
from knobscope.specs import Expression

NAMES = ["a", "b", "word", "flag", "threads"]
WORDS = ["", "x", "off", "wal", "it's"]
VALUES = st.fixed_dictionaries(
    {
        "a": st.integers(-1000, 1000),
        "b": st.floats(-1e6, 1e6),
        "word": st.sampled_from(WORDS),
        "flag": st.booleans(),
        "threads": st.integers(0, 64),
    }
)
LEAVES = st.one_of(
    st.integers(0, 10**20).map(str),
    st.floats(0, 1e9).map(repr),
    st.sampled_from(WORDS).map(repr),
    st.sampled_from([*NAMES, "true", "false", "True", "False"]),
)
COMPARISONS = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or", "+", "-", "*", "/", *COMPARISONS]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        st.tuples(inner, st.sampled_from(COMPARISONS), inner, st.sampled_from(COMPARISONS), inner).map(" ".join),
        inner.map(lambda text: f"(not {text})"),
        inner.map(lambda text: f"(-{text})"),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.tuples(inner, inner).map(lambda items: f"({', '.join(items)})"),
    )


EXPRESSIONS = st.recursive(LEAVES, grow, max_leaves=12)
#: Pieces of Python from which text that is not in the language is put together.
PYTHON = """
a word flag __import__ eval exec open print globals ().__class__ . ( ) [ ] { } , : := ; = == 'x' 1 2.5 1j b'' f'{a}'
lambda for in if else not and or is await yield * ** // % @ ~ + - / & | ^ << ... None import os
"""
PIECES = st.sampled_from([*PYTHON.split(), "\\", "\n", "#", "\t"])


def ask_python(text: str, values: dict[str, object]) -> bool | type[Exception]:
    """Return what Python makes of it; the text comes from the strategies above, never from outside."""
    try:
        with little_memory():
            return bool(eval(text, {"__builtins__": {}, "true": True, "false": False}, values))  # noqa: S307
    except (TypeError, ArithmeticError, MemoryError) as error:
        return type(error)


@contextmanager
def little_memory() -> Iterator[None]:
    """Let Python have 256 MiB more and no byte above: it also multiplies words, and `'x' * 10000000000` fills it."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_words_that_would_fill_the_memory_are_no_numbers() -> None:
    assert ask_python("'x' * 10000000000", {}) is MemoryError
    with pytest.raises(UserError, match="is no number"):
        Expression("'x' * 10000000000 == 'x'").holds({})


def test_every_operator_agrees_with_python() -> None:
    """Of drawn expressions, few have an operator whose answer another operator would not give as well."""
    orders = COMPARISONS[:6]
    texts = [f"{left} {order} threads" for left in ("a + b", "a - b", "a * b", "a / b", "-a") for order in orders]
    texts += [f"a {first} b {second} threads" for first, second in product(orders, repeat=2)]
    texts += ["a in [b, threads]", "a not in [b, threads]", "a in (b, threads) in [flag]", "not a", "not a == b"]
    texts += ["a and b", "a or b", "a and b or threads", "a or b and threads", "a < b and b < threads or flag"]
    cases = product(map(Expression, texts), product((-2, 0, 1, 3), repeat=3))
    for expression, (a, b, threads) in cases:
        values = {"a": a, "b": b, "threads": threads, "flag": a > threads}
        expected = ask_python(expression.text, {**values})
        if isinstance(expected, type):
            with pytest.raises(UserError, match="division by zero"):
                expression.holds(values)
        else:
            assert expression.holds(values) is expected, f"{expression.text} with {values}"


@given(EXPRESSIONS, VALUES)
@settings(max_examples=100, deadline=None)
def test_agrees_with_python(text: str, values: dict[str, object]) -> None:
    expected = ask_python(text, values)
    try:
        assert Expression(text).holds(values) is expected  # type: ignore[arg-type]
    except UserError as error:
        # Python also calculates with words and lists: `'x' * 3`. Here that is an error.
        assert isinstance(expected, type) or "is no number" in str(error)


HEARD = {"exec", "import", "open", "os", "subprocess", "socket"}
_EXECUTED: list[str] | None = None


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if _EXECUTED is not None and event.partition(".")[0] in HEARD:
        _EXECUTED.append(f"{event} {arguments}")


sys.addaudithook(_listen)  # hooks stay for good: this one is asleep outside the test


@contextmanager
def listening() -> Iterator[list[str]]:
    """Yield the list of everything that the interpreter executes, imports or opens meanwhile."""
    global _EXECUTED  # noqa: PLW0603 - audit hooks have no other way to be switched
    _EXECUTED = []
    try:
        yield _EXECUTED
    finally:
        _EXECUTED = None


@given(st.one_of(st.lists(PIECES, max_size=12).map(" ".join), st.text(max_size=40)), VALUES)
@settings(max_examples=150, deadline=None)
def test_never_executes_anything(text: str, values: dict[str, object]) -> None:
    with listening() as executed:
        try:
            answer: object = Expression(text).holds(values)  # type: ignore[arg-type]
        except (ValueError, KeyError, UserError):
            answer = None
    assert executed == []
    assert answer in (True, False, None)


def test_the_listener_hears() -> None:
    with listening() as executed:
        eval("__import__('fractions')")  # noqa: S307
    assert executed


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "a.real",
        "a[0]",
        "[x for x in word]",
        "(lambda: 1)()",
        "f'{a}'",
        "(a := 1)",
        "a if b else 1",
        "a ** 2",
        "a // 2",
        "a % 2",
        "+a",
        "~a",
        "a is b",
        "{1, 2}",
        "{1: 2}",
        "[*word]",
        "None",
        "b'x'",
        "1j",
        "...",
        "",
        "a = 1",
        "a > 1; b",
        "a\x00",
        "(" * 500 + "a" + ")" * 500,
    ],
)
def test_what_is_not_in_the_language_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expression|numbers and strings"):
        Expression(text)


def test_a_hyphen_between_letters_belongs_to_a_name_or_a_text_and_a_minus_has_blanks() -> None:
    relation = Expression("election-timeout >= 5 * heartbeat-interval and mode != 'read-only'")
    assert relation.names == {"election-timeout", "heartbeat-interval", "mode"}
    assert relation.holds({"election-timeout": 500, "heartbeat-interval": 100, "mode": "read-write"})
    assert not relation.holds({"election-timeout": 499, "heartbeat-interval": 100, "mode": "read-write"})
    assert not relation.holds({"election-timeout": 500, "heartbeat-interval": 100, "mode": "read-only"})
    assert Expression("a - b == 1 and a-1 == b").holds({"a": 2, "b": 1})


def test_names_leave_constants_out() -> None:
    assert Expression("a >= 2 * b and flag == true and threads in [1, 2]").names == {"a", "b", "flag", "threads"}


def test_impossible_arithmetic_names_the_values() -> None:
    with pytest.raises(UserError, match="`a / b > 1` cannot be evaluated with a=1, b=0: division by zero"):
        Expression("a / b > 1").holds({"a": 1, "b": 0})
    with pytest.raises(UserError, match="'x' is no number"):
        Expression("word * 3 == 'xxx'").holds({"word": "x"})
