"""What is forbidden is what `requires` does not allow, checked against the language of `requires` itself."""

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from knobscope.commands.export.forbidden import forbid
from knobscope.commands.export.formats import to_smac
from knobscope.specs import Case, Dbms
from knobscope.stages.plan import DesignSpace
from knobscope.stages.plan.search_space import Parameter, SearchSpace

if TYPE_CHECKING:
    import ConfigSpace  # takes a second, in each process that collects the tests

ABOUT = {"apply": "dynamic", "mechanism": "other", "source": "https://example.org"}
KNOBS: dict[str, dict[str, Any]] = {
    "a": {"type": "integer", "range": [0, 4], "default": 3},
    "b": {"type": "integer", "range": [0, 4], "default": 2},
    "word": {"type": "enum", "values": ["x", "y", "z"], "default": "x"},
    "flag": {"type": "boolean", "default": True},
    "big": {"type": "integer", "range": [0, 100000], "default": 2},
    "off": {"type": "integer", "range": [10, 20], "default": 10, "special": {0: "off"}},
}


def make_space(dbms: Dbms, requires: str, names: list[str]) -> SearchSpace:
    knobs = {
        name: dbms.knobs[name].model_copy(update={"requires": requires if name == names[0] else None}) for name in KNOBS
    }
    changed = dbms.model_copy(update={"knobs": knobs})
    parameters = []
    for name in names:
        knob = knobs[name]
        ends = dict(zip(("low", "high"), knob.range or (), strict=False))
        choices = () if knob.range else tuple(knob.values or (False, True))
        parameters.append(Parameter(name, knob, knob.default, special=tuple(knob.special), choices=choices, **ends))
    default = {name: knobs[name].default for name in names}
    space = DesignSpace(changed, {}, default, {"threads": 3, "records": 100})
    return SearchSpace(Case("d", "v", "w"), changed, tuple(parameters), {}, {}, space, [])


@pytest.fixture
def dbms(sqlite: Dbms) -> Dbms:
    """A DBMS with knobs of all kinds."""
    content = sqlite.model_dump(mode="json", by_alias=True, exclude={"knobs"}, exclude_unset=True)
    return Dbms.model_validate({**content, "knobs": {name: {**ABOUT, **knob} for name, knob in KNOBS.items()}})


@pytest.mark.parametrize(
    "requires",
    [
        "a >= b",
        "a > b",
        "a >= b or word == 'x'",
        "big <= 1000 * (threads - 2)",
        "big <= b or flag",
        "big > 1 or word == 'x'",
        "5 <= big or flag",
        "threads > big or flag",
        "a != 2",
        "not (a > 3)",
        "word != 'z' or a == 0",
        "(word in ['x', 'y'] and flag) or b < 3",
        "a < 4 and b < 4",
        "0 < a < 4 or word == 'x'",
        "a * 2 <= threads + 3",
        "flag or word == 'x'",
        "flag",
        "records > 10",
    ],
)
def test_clauses_forbid_exactly_what_requires_forbids(dbms: Dbms, requires: str) -> None:
    names = ["a", "b", "word", "flag", "big"]
    space = make_space(dbms, requires, names)
    clauses, complete = forbid(space, "a")
    assert complete
    drawn = product(range(5), range(5), "xyz", (False, True), (0, 1, 2, 3, 4, 5, 100000))
    settings = [dict(zip(names, one, strict=True)) for one in drawn]
    read = read_space(space, clauses)
    assert [one for one in settings if is_legal(read, one) is not space.allows(one)] == []


def read_space(space: SearchSpace, clauses: list[dict[str, Any]]) -> "ConfigSpace.ConfigurationSpace":
    import ConfigSpace

    default = {one.name: one.start for one in space.parameters}
    content = to_smac(space)
    assert content["forbiddens"] == clauses
    if not space.allows(default):
        pytest.fail("a constraint must hold for the default")
    return ConfigSpace.ConfigurationSpace.from_serialized_dict(content)


def is_legal(space: "ConfigSpace.ConfigurationSpace", values: dict[str, Any]) -> bool:
    import ConfigSpace

    try:
        ConfigSpace.Configuration(space, values=values)
    except ConfigSpace.exceptions.ForbiddenValueError:
        return False
    return True


@pytest.mark.parametrize("requires", ["big + a > 3 or flag", "big != 5000 or word == 'x'", "off >= big or word == 'x'"])
def test_what_cannot_be_said_is_given_up_and_noted(dbms: Dbms, requires: str) -> None:
    space = make_space(dbms, requires, ["big", "a", "word", "flag", "off"])
    assert forbid(space, "big") == ([], False)
    (big,) = (one for one in to_smac(space)["hyperparameters"] if one["name"] == "big")
    assert big["meta"]["requires"] == requires
    assert big["meta"]["not_expressed"] == ["requires"]


def test_a_range_that_never_breaks_it_needs_no_clause(dbms: Dbms) -> None:
    assert forbid(make_space(dbms, "big >= 0", ["big"]), "big") == ([], True)
