"""The PostgreSQL spec says the truth: the installed server has these knobs and defaults, and takes all of these values.

`postgres -C knob` prints a value without starting a server, after it has checked the ones it was given.
"""

import subprocess

import pytest
from shipped_specs import shipped_dbms

from knobscope.servers import compare_effective
from knobscope.specs import Value, find_program

POSTGRESQL = shipped_dbms("postgresql")
KNOBS = {name: knob for name, knob in POSTGRESQL.knobs.items() if knob.apply != "load"}
SERVER = find_program(POSTGRESQL.programs["postgres"])
TYPES = {"BOOLEAN": "boolean", "INTEGER": "integer", "REAL": "real", "ENUM": "enum"}
#: Unset, it depends on shared_buffers; the spec has what that comes to with the default.
DECIDED_BY_THE_SERVER = {"wal_buffers": "-1"}

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(SERVER is None, reason="PostgreSQL is not installed"),
]


def call(*arguments: str) -> str:
    """Return what the server prints; a value that it refuses makes it fail."""
    done = subprocess.run([str(SERVER), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a directory with a configuration file that says nothing."""
    folder = tmp_path_factory.mktemp("postgresql")
    (folder / "postgresql.conf").touch()
    return str(folder)


def values_of(name: str) -> list[Value]:
    knob = KNOBS[name]
    return [*(knob.values or knob.range or [False, True]), *knob.special]


def test_there_are_many_knobs() -> None:
    assert len(POSTGRESQL.knobs) >= 30


@pytest.mark.parametrize("name", KNOBS)
def test_all_values_are_taken(name: str, empty: str) -> None:
    for value in values_of(name):
        canonical = KNOBS[name].canonical(value)
        arguments = [part.format(knob=name, value=POSTGRESQL.write(canonical)) for part in argv(name)]
        answer = call("-C", name, "-D", empty, *arguments).strip()
        assert compare_effective(POSTGRESQL, {name: canonical}, {name: answer})[1] == {}, answer


def argv(name: str) -> list[str]:
    return POSTGRESQL.writing[KNOBS[name].apply].argv or []


def test_defaults_are_those_of_version_15(empty: str) -> None:
    if "PostgreSQL) 15" not in call("--version"):
        pytest.skip("another version is installed; the spec has the defaults of version 15")
    answers = {name: call("-C", name, "-D", empty).strip() for name in KNOBS}
    assert {name: answers.pop(name) for name in DECIDED_BY_THE_SERVER} == DECIDED_BY_THE_SERVER
    defaults = {name: KNOBS[name].default for name in answers}
    assert compare_effective(POSTGRESQL, defaults, answers)[1] == {}


def test_types_and_when_a_change_takes_effect() -> None:
    described = {line.split("\t")[0]: line.split("\t") for line in call("--describe-config").splitlines()}
    told = {name: (TYPES[described[name][3]], described[name][1] == "postmaster") for name in KNOBS}
    assert told == {name: (knob.type, knob.apply == "restart") for name, knob in KNOBS.items()}
