"""Rows of a catalogue become knobs that a spec takes; what cannot become one is counted, with the reason."""

import pytest
import yaml
from pydantic import ValidationError

from knobscope.commands.introspect import learn, read_catalogue, render_knobs
from knobscope.errors import UserError
from knobscope.specs import Introspection, Knob, Trial

ASKED = Introspection(
    query="select name, description from settings",
    types={"bool": "boolean", "int": "integer", "double": "real", "choice": "enum"},
    apply={"start": "restart", "any": "dynamic"},
    source="https://example.org/settings",
)
INTEGER = {"type": "int", "min": "1", "max": "65536", "default": "8", "unit": "kB", "context": "start"}


def knob_of(row: dict[str, object]) -> Knob:
    return Knob.model_validate(read_catalogue(ASKED, {"one": row}).knobs["one"])


def test_a_number_keeps_range_unit_and_default() -> None:
    knob = knob_of(INTEGER)
    assert (knob.type, knob.range, knob.default, knob.unit, knob.apply) == ("integer", [1, 65536], 8, "kB", "restart")
    assert knob.scale == "log"
    assert knob.mechanism == "other"
    assert knob_of({**INTEGER, "max": "100"}).scale == "linear"


def test_what_no_study_varies_is_left_out_by_name() -> None:
    asked = ASKED.model_copy(update={"leave_out": ["port", "ssl*"]})
    catalogue = read_catalogue(asked, dict.fromkeys(("port", "ssl_min", "report", "slots"), INTEGER))
    assert list(catalogue.knobs) == ["report", "slots"]
    assert catalogue.group_left_out() == {"no study varies it": ["port", "ssl_min"]}


def test_reasons_of_the_spec_are_those_of_the_catalogue() -> None:
    asked = ASKED.model_copy(update={"leave_out": {"a query": ["*_list"], "an action": ["optimize"]}})
    rows = dict.fromkeys(("table_list", "optimize", "slots"), INTEGER)
    catalogue = read_catalogue(asked, {**rows, "mode": {"default": "a"}}, described=["mode", "slots"])
    assert list(catalogue.knobs) == ["slots"]
    assert catalogue.left_out == {
        "mode": "only the spec describes it",
        "optimize": "an action",
        "table_list": "a query",
    }


def test_a_setting_with_a_name_of_the_workload_is_no_knob() -> None:
    reason = "`requires` uses its name for the workload"
    assert read_catalogue(ASKED, {"threads": INTEGER}).left_out == {"threads": reason}


def test_each_knob_can_have_its_own_page_and_way_of_writing() -> None:
    asked = ASKED.model_copy(update={"source": "https://example.org/settings#{knob}"})
    row = {**INTEGER, "writing": {"argv": ["-C", "log=(size={value})"]}, "readable": False}
    knob = Knob.model_validate(read_catalogue(asked, {"log.size": row}).knobs["log.size"])
    assert knob.source == "https://example.org/settings#log.size"
    assert knob.writing is not None
    assert knob.writing.argv == ["-C", "log=(size={value})"]
    assert not knob.readable


def test_a_default_outside_the_range_is_special() -> None:
    assert knob_of({**INTEGER, "default": "-1"}).special == {-1: "default"}


def test_large_and_real_numbers_are_exact() -> None:
    assert knob_of({**INTEGER, "max": "18446744073709551615"}).range == [1, 18446744073709551615]
    real = knob_of({"type": "double", "min": "0", "max": "99.999", "default": "90.000000", "context": "any"})
    assert (real.range, real.default, real.scale) == ([0, 99.999], 90, "linear")


@pytest.mark.parametrize(("word", "meant"), [("OFF", False), ("on", True), (0, False), ("1", True)])
def test_booleans_in_any_spelling(word: object, meant: bool) -> None:
    assert knob_of({"type": "bool", "default": word, "context": "any"}).default is meant


def test_values_come_as_a_list_or_a_text_and_give_the_spelling() -> None:
    row = {"type": "choice", "default": "o_direct", "context": "any"}
    for values in ("fsync,O_DIRECT", ["fsync", "O_DIRECT"]):
        knob = knob_of({**row, "values": values})
        assert (knob.values, knob.default) == (["fsync", "O_DIRECT"], "O_DIRECT")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"type": "text"}, "its type is text"),
        ({"context": "internal"}, "a study cannot set it (internal)"),
        ({"default": None}, "no default is reported"),
        ({"max": None}, "no range is reported"),
        ({"max": "1"}, "its range is one value"),
        ({"default": "8kB"}, "'8kB' is no integer"),
        ({"type": "choice"}, "its values are not told"),
        ({"type": "choice", "values": "a,b"}, "its default '8' is none of its values"),
        ({"type": "bool"}, "its default '8' is neither on nor off"),
    ],
)
def test_what_is_no_knob_is_left_out_with_its_reason(change: dict[str, object], reason: str) -> None:
    catalogue = read_catalogue(ASKED, {"one": {**INTEGER, **change}, "two": INTEGER})
    assert list(catalogue.knobs) == ["two"]
    assert catalogue.left_out == {"one": reason}


BY_FORM = Introspection(
    types={"integer": "integer", "decimal": "real", "switch": "boolean", "quantity": "integer", "enum": "enum"},
    apply="restart",
    reach=10,
    source="https://example.org/settings",
)


@pytest.mark.parametrize(
    ("default", "shape"),
    [
        ("32", {"type": "integer", "range": [3, 320], "default": 32}),
        ("1", {"type": "integer", "range": [1, 10], "default": 1}),
        ("0.25", {"type": "real", "range": [0.025, 2.5], "default": 0.25}),
        ("yes", {"type": "boolean", "default": True}),
        ("10000ms", {"type": "integer", "range": [1000, 100000], "default": 10000, "unit": "ms"}),
        ("16.0 MiB", {"type": "integer", "range": [2, 160], "default": 16, "unit": "MiB"}),
        ("64MiB/s", {"type": "integer", "range": [6, 640], "default": 64, "unit": "MiB/s"}),
    ],
)
def test_a_default_alone_gives_type_and_range(default: str, shape: dict[str, object]) -> None:
    knob = Knob.model_validate(read_catalogue(BY_FORM, {"one": {"default": default}}).knobs["one"])
    assert {key: getattr(knob, key) for key in shape} == shape
    assert knob.apply == "restart"


@pytest.mark.parametrize(
    ("default", "reason"),
    [
        ("0", "no range is reported"),
        ("-1", "no range is reported"),
        ("18446744073709551615", "no range is reported"),
        ("1.0e100", "no range is reported"),
        ("3.5 MiB", "its type is text"),
        ("lz4", "its type is text"),
        ("", "its type is text"),
    ],
)
def test_a_default_that_gives_none_is_left_out(default: str, reason: str) -> None:
    assert read_catalogue(BY_FORM, {"one": {"default": default}}).left_out == {"one": reason}


def test_a_trial_tells_what_the_first_pattern_found_in_the_answer_tells() -> None:
    trial = Trial(
        statements=["SET {knob} no-such-value"],
        says={
            r"one of the following: (?P<values>[^)]+)": {"type": "enum"},
            r"between (?P<min>-?\d+) and (?P<max>-?\d+)": {"type": "integer"},
            "": {"context": "any"},
        },
    )
    assert learn(trial, "must be one of the following: a, b") == {"type": "enum", "values": "a, b"}
    assert learn(trial, "must be between -1 and 9 inclusive") == {"type": "integer", "min": "-1", "max": "9"}
    assert learn(trial, "OK") == {"context": "any"}
    slow = Trial(statements=["SET {knob} 7"], says={"^(a|aa)+$": {}, "(x)?a(?P<unit>b)?(?P<default>!)": {}})
    assert learn(slow, 4000 * "a" + "!") == {"default": "!"}  # Python's search tries one way after another, and hangs
    row = {"default": "b", **learn(trial, "must be one of the following: a, b")}
    assert read_catalogue(BY_FORM, {"one": row}).knobs["one"]["values"] == ["a", "b"]


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ({"(": {}}, "a regular expression of RE2"),
        ({"(?P<maximum>.)": {}}, "'maximum'"),
        ({"a": {"kind": "enum"}}, "'kind'"),
    ],
)
def test_a_trial_that_nobody_can_read_is_refused(says: dict[str, dict[str, str]], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Trial(statements=["SET {knob} 7"], says=says)


def test_an_unknown_column_is_an_error_not_a_silence() -> None:
    with pytest.raises(UserError, match="'maximum' for one"):
        read_catalogue(ASKED, {"one": {**INTEGER, "maximum": "5"}})


def test_the_text_is_yaml_that_gives_the_knobs_back() -> None:
    rows = {
        "a": {"type": "choice", "values": "off,on,1", "default": "off", "context": "any", "description": "A: b\n  # c"},
        "b": INTEGER,
        "c": {**INTEGER, "type": "text"},
    }
    catalogue = read_catalogue(ASKED, rows)
    text = render_knobs("some", "1.2", catalogue)
    assert yaml.safe_load(text)["knobs"] == catalogue.knobs
    assert "2 of 3 settings" in text
    assert "# Left out, its type is text (1): c\n" in text
