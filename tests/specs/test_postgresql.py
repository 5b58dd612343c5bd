"""The PostgreSQL spec says the truth: the installed server describes its knobs the same way."""

import subprocess
from pathlib import Path

import pytest

from knobscope.specs import Dbms, find_program, read_spec

ROOT = Path(__file__).parents[2]
POSTGRESQL = read_spec(ROOT / "specs/dbms/postgresql.yaml", Dbms, None)[1]
SERVER = find_program(POSTGRESQL.programs["postgres"])
TYPES = {"BOOLEAN": "boolean", "INTEGER": "integer", "REAL": "real", "ENUM": "enum"}
WORDS = {"TRUE": True, "FALSE": False, "on": "on"}
#: What the server decides by itself: the spec gives the value that this comes to.
RESOLVED = {"wal_buffers": "-1"}

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(SERVER is None, reason="PostgreSQL is not installed"),
]


@pytest.fixture(scope="module")
def described() -> dict[str, list[str]]:
    """Return name -> [context, group, type, default, min, max, ...], from the server's own description."""
    command = [str(SERVER), "--describe-config"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split("\t")[0]: line.split("\t")[1:] for line in lines}


def is_version_15() -> bool:
    done = subprocess.run([str(SERVER), "--version"], capture_output=True, text=True, check=True)
    return "PostgreSQL) 15" in done.stdout


def test_there_are_many_knobs() -> None:
    assert len(POSTGRESQL.knobs) >= 30


@pytest.mark.parametrize("name", [name for name, knob in POSTGRESQL.knobs.items() if knob.apply != "load"])
def test_knob_is_as_the_server_describes_it(described: dict[str, list[str]], name: str) -> None:
    knob = POSTGRESQL.knobs[name]
    context, _, kind, default, low, high = described[name][:6]
    assert knob.type == TYPES[kind]
    assert (knob.apply == "restart") == (context == "postmaster")
    for value in [*(knob.range or []), *knob.special]:
        assert float(low) <= float(value) <= float(high)
    if is_version_15():
        if kind in ("INTEGER", "REAL"):
            assert default == RESOLVED.get(name, default)
            assert name in RESOLVED or float(default) == knob.default
        else:
            assert WORDS.get(default, default) == knob.default
