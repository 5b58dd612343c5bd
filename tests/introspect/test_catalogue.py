"""Rows of a catalogue become knobs that a spec takes; what cannot become one is counted, with the reason."""

import pytest
import yaml

from knobscope.errors import UserError
from knobscope.introspect import read_catalogue, render_knobs
from knobscope.specs import Introspection, Knob

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
    assert catalogue.count_reasons() == {"no study varies it": 2}


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
        ({"default": None}, "no default is told"),
        ({"max": None}, "no range is told"),
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
    assert "1 its type is text" in text
