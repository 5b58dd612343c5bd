"""What models compute: canonical values, how values are written, which program is meant."""

from pathlib import Path

import pytest

from knobscope.specs import Dbms, Knob, find_program, read_spec
from knobscope.specs.models.dbms import Program

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def server() -> Dbms:
    return read_spec(HERE / "good/dbms/server.yaml", Dbms, None)[1]


def knob(**fields: object) -> Knob:
    return Knob.model_validate({"apply": "restart", "mechanism": "other", "source": "https://example.org", **fields})


def test_equal_numbers_are_one_setting() -> None:
    real = knob(type="real", range=[0, 10], default=1)
    assert real.canonical(1) == 1.0
    assert isinstance(real.canonical(1), float)
    assert real.canonical(1 / 3) == real.canonical(0.333333)


def test_canonical_reals_survive_being_written(server: Dbms) -> None:
    real = server.knobs["share"]
    for value in (0.1 + 0.2, 1e-7 / 3, 123456.789, 1e300):
        assert float(server.write(real.canonical(value))) == real.canonical(value)


def test_values_are_written_as_the_dbms_wants_them(server: Dbms) -> None:
    assert [server.write(value) for value in (False, True)] == ["no", "yes"]
    assert server.write(0.5) == "0.5"
    assert server.write(-1) == "-1"


def test_one_is_not_true() -> None:
    number = knob(type="enum", values=[0, 1], default=1)
    assert number.problem_with(True) is not None
    assert number.problem_with(1) is None


def test_special_values_do_not_widen_the_range() -> None:
    number = knob(type="integer", range=[1, 10], default=0, special={0: "off"})
    assert number.problem_with(0) is None
    assert number.problem_outside(0) is not None
    assert number.problem_with(11) is not None


def test_a_default_that_depends_on_the_machine_is_words_and_no_value(server: Dbms) -> None:
    knob = server.knobs["log_size"]
    worded = knob.model_copy(update={"built_in": "a tenth of the machine's memory"})
    assert list(worded.find_misfits()) == []
    assert (worded.own_default, worded.default) == (None, knob.default)
    assert [misfit.location for misfit in knob.model_copy(update={"built_in": "8MB"}).find_misfits()] == [("built_in",)]


def test_newest_program_wins(tmp_path: Path) -> None:
    for version in ("9.6", "15", "9.10", "other"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "server").touch(mode=0o755)
    (tmp_path / "18").mkdir()
    (tmp_path / "18/server").touch(mode=0o644)  # cannot be executed
    program = Program(find=["surely-not-here", f"{tmp_path}/*/server", "sh"], package="x")
    assert find_program(program) == tmp_path / "15/server"
    assert find_program(Program(find=["surely-not-here"], package="x")) is None


def test_a_relative_path_begins_in_the_fleet_or_else_where_the_specs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, own = tmp_path / "fleet", tmp_path / "studies"
    monkeypatch.setenv("KNOBSCOPE_FLEET", str(fleet))
    program = Program(find=["specs/generators/load"])
    for home in (own, fleet):
        (home / "specs/generators").mkdir(parents=True)
    monkeypatch.chdir(own)
    assert find_program(program) is None
    assert program.places.startswith(f"specs/generators/load (in {fleet} or {own}")
    for home in (own, fleet):
        (home / "specs/generators/load").touch(mode=0o755)
        assert find_program(program) == home / "specs/generators/load"
