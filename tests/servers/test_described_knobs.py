"""How reports show the settings of a configuration, to be copied."""

from knobscope.specs import Dbms
from knobscope.text.settings import describe_settings


def test_places_of_an_instance_stay_as_the_spec_has_them_and_are_explained(postgresql: Dbms) -> None:
    writing = {"argv": ["--tool={path.tool}", "{data}/{knob}={value}"]}
    knob = postgresql.knobs["fsync"].model_copy(
        update={"writing": postgresql.writing["restart"].model_copy(update=writing)}
    )
    dbms = postgresql.model_copy(update={"knobs": {"fsync": knob}})
    assert describe_settings(dbms, {"fsync": False}) == [
        "--tool={path.tool} {data}/fsync=off",
        "# {path.tool}: tool of your installation",
        "# {data}: the data directory of your server",
    ]
