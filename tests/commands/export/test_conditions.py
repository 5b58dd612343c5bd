"""A knob is active for ConfigSpace exactly where its `when` holds, checked against the language of `when` itself."""

from typing import Any

import pytest

from knobscope.commands.export.conditions import activate
from knobscope.commands.export.formats import to_smac
from knobscope.specs import Case, Dbms
from knobscope.stages.plan import DesignSpace
from knobscope.stages.plan.search_space import Parameter, SearchSpace

ABOUT = {"apply": "dynamic", "mechanism": "other", "source": "https://example.org"}
KNOBS: dict[str, dict[str, Any]] = {
    "size": {"type": "integer", "range": [1, 9], "default": 3},
    "off": {"type": "integer", "range": [10, 20], "default": 0, "special": {0: "off", -1: "automatic"}},
    "word": {"type": "enum", "values": ["x", "y", "z"], "default": "x"},
    "flag": {"type": "boolean", "default": True},
    "big": {"type": "integer", "range": [0, 100000], "default": 2},
    "part": {"type": "real", "range": [0.0, 1.0], "default": 0.5},
}


def make_space(sqlite: Dbms, knob: str, when: str) -> SearchSpace:
    content = sqlite.model_dump(mode="json", by_alias=True, exclude={"knobs"}, exclude_unset=True)
    knobs = {name: {**ABOUT, **one, **({"when": when} if name == knob else {})} for name, one in KNOBS.items()}
    dbms = Dbms.model_validate({**content, "knobs": knobs})
    parameters = []
    for name, one in dbms.knobs.items():
        ends = dict(zip(("low", "high"), one.range or (), strict=False))
        choices = () if one.range else tuple(one.values or (False, True))
        parameters.append(Parameter(name, one, one.default, special=tuple(one.special), choices=choices, **ends))
    default = {name: one.default for name, one in dbms.knobs.items()}
    space = DesignSpace(dbms, {}, default, {"threads": 3, "records": 100})
    return SearchSpace(Case("d", "v", "w"), dbms, tuple(parameters), {}, {}, space, [])


@pytest.mark.parametrize("knob", ["size", "off"])
@pytest.mark.parametrize(
    "when",
    [
        "flag",
        "not flag",
        "word == 'x'",
        "word != 'y' and flag",
        "word in ['x', 'y'] or big > 50000",
        "big >= 50000",
        "big <= 20000 and part < 0.5",
        "word in ['y', 'z'] or (word == 'x' and flag)",
        "flag and threads > 2",
        "records > 10",
    ],
)
def test_active_exactly_where_it_counts(sqlite: Dbms, knob: str, when: str) -> None:
    from ConfigSpace import ConfigurationSpace  # takes a second, in each process that collects the tests

    space = make_space(sqlite, knob, when)
    read = ConfigurationSpace.from_serialized_dict(to_smac(space))
    read.seed(3)
    drawn = [dict(one) for one in read.sample_configuration(200)]
    chooser = f"{knob}.special" if space.dbms.knobs[knob].special else knob
    counts = space.dbms.knobs[knob].condition
    expected = [counts is None or counts.holds({**space.space.facts, **one}) for one in drawn]
    assert [chooser in one for one in drawn] == expected
    if chooser != knob:
        assert all((knob in one) == (one.get(chooser) == "range") for one in drawn)


@pytest.mark.parametrize(
    ("when", "active"),
    [("off > 0", {"range"}), ("off <= 0", {"0", "-1"}), ("off == 0", None), ("off != 5 or flag", None)],
)
def test_special_values_of_another_knob(sqlite: Dbms, when: str, active: set[str] | None) -> None:
    from ConfigSpace import ConfigurationSpace

    space = make_space(sqlite, "size", when)
    (size,) = (one for one in to_smac(space)["hyperparameters"] if one["name"] == "size")
    if active is None:  # a number of the range may be asked for: nothing is said of it
        assert activate(space, "size") is None
        assert size["meta"]["not_expressed"] == ["when"]
        return
    read = ConfigurationSpace.from_serialized_dict(to_smac(space))
    read.seed(4)
    drawn = [dict(one) for one in read.sample_configuration(200)]
    assert {one["off.special"] for one in drawn if "size" in one} == active
    assert {one["off.special"] for one in drawn if "size" not in one} == {"range", "0", "-1"} - active


@pytest.mark.parametrize("when", ["part >= 0.5", "big > size", "threads > 5"])
def test_what_cannot_be_said_leaves_the_knob_free(sqlite: Dbms, when: str) -> None:
    content = to_smac(make_space(sqlite, "off", when))
    (off,) = (one for one in content["hyperparameters"] if one["name"] == "off")
    assert off["meta"]["not_expressed"] == ["when"]
    assert [one["child"] for one in content["conditions"]] == ["off"]  # its range, and nothing else
