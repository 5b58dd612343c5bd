"""A spec that extends another one: what it takes over, what it replaces, what it drops."""

from pathlib import Path

import pytest

from knobscope.specs import Dbms, SpecErrors, read_spec
from knobscope.specs.models.programs import is_between

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def server() -> Dbms:
    return read_spec(HERE / "good/dbms/server.yaml", Dbms, None)[1]


@pytest.fixture(scope="module")
def fork() -> Dbms:
    return read_spec(HERE / "good/dbms/fork.yaml", Dbms, None)[1]


def test_what_is_not_stated_is_taken_over(server: Dbms, fork: Dbms) -> None:
    assert (fork.name, fork.description) == ("fork", "a fork of the server")
    assert (fork.connection, fork.loading, fork.booleans) == (server.connection, server.loading, server.booleans)
    assert fork.lifecycle is not None
    assert server.lifecycle is not None
    assert fork.lifecycle.start == server.lifecycle.start


def test_entries_are_replaced_and_knobs_changed_key_by_key(server: Dbms, fork: Dbms) -> None:
    assert fork.programs["tool"].install == "setup/fleet.sh fork"
    assert fork.lifecycle is not None
    assert (fork.lifecycle.stop.signal, fork.lifecycle.stop.timeout_s) == ("QUIT", 30)
    assert fork.knobs["log_size"] == server.knobs["log_size"].model_copy(update={"default": 32})
    assert set(fork.knobs) - set(server.knobs) == {"compression", "old_log"}
    assert set(server.knobs) - set(fork.knobs) == {"share"}


def test_a_knob_that_states_its_type_is_new(shelf: Path) -> None:
    text = (shelf / "dbms/fork.yaml").read_text()
    new = "flush: {type: enum, values: [a, b], default: a, apply: restart, mechanism: flush, source: https://x.org}"
    (shelf / "dbms/fork.yaml").write_text(f"{text}  {new}\n")
    flush = read_spec(shelf / "dbms/fork.yaml", Dbms, None)[1].knobs["flush"]
    assert (flush.type, flush.durability, flush.expect) == ("enum", False, None)


def test_a_fork_of_a_fork(shelf: Path) -> None:
    text = "name: third\ndescription: x\nextends: fork\nwithout: [flush]\nknobs: {log_size: {unit: kB}}\n"
    (shelf / "dbms/third.yaml").write_text(text)
    third = read_spec(shelf / "dbms/third.yaml", Dbms, None)[1]
    assert (third.knobs["log_size"].default, third.knobs["log_size"].unit) == (32, "kB")
    assert "flush" not in third.knobs
    assert "share" not in third.knobs


def test_what_is_taken_over_is_named_with_its_file(shelf: Path) -> None:
    (shelf / "dbms/third.yaml").write_text(
        "name: third\ndescription: x\nextends: fork\nprograms: {}\nversion: [toll]\n"
    )
    with pytest.raises(SpecErrors) as caught:
        read_spec(shelf / "dbms/third.yaml", Dbms, None)
    assert "dbms/third.yaml:5: version.0: found 'toll'" in str(caught.value)


@pytest.mark.parametrize(
    ("version", "since", "until", "fits"),
    [
        ("18.6", "18", None, True),
        ("17.11", "18", None, False),
        ("9.10", "9.9", None, True),
        ("17.11", None, "17", True),
        ("18beta1", None, "17", False),
        ("10.11.19-MariaDB", "10.11", "10.11", True),
        ("10.12.1", None, "10.11", False),
    ],
)
def test_versions_are_numbers_and_until_includes_what_belongs_to_it(
    version: str, since: str | None, until: str | None, fits: bool
) -> None:
    assert is_between(version, since, until) == fits


def test_a_fork_without_a_knob_leaves_the_other_spec_as_it_is(shelf: Path) -> None:
    """Both are read once."""
    (shelf / "dbms/less.yaml").write_text("name: less\ndescription: x\nextends: server\nwithout: [share]\n")
    whole, less, again = (
        read_spec(shelf / f"dbms/{name}.yaml", Dbms, None)[1] for name in ("server", "less", "server")
    )
    assert set(whole.knobs) - set(less.knobs) == {"share"}
    assert again == whole
