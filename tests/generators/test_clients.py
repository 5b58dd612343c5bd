"""Finding the clients and the java program."""

from pathlib import Path

import pytest

from knobscope.errors import UserError
from knobscope.generators import find_clients
from knobscope.generators.clients import find_java, java_command
from knobscope.specs import Jvm


def test_the_built_clients_are_found_with_their_class_archive() -> None:
    clients = find_clients()
    command = java_command(Path("/nowhere"), Jvm(options=["-Xmx64m"]))
    archive = next(option for option in command if option.startswith("-XX:SharedArchiveFile="))
    assert Path(archive.partition("=")[2]).is_file()
    assert command[-2:] == ["-cp", str(clients / "knobscope-clients.jar")]
    assert command.index("-Xmx64m") > command.index("-Xmx512m")
    assert {"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"} < set(command)


def test_the_spec_says_what_java_machine_it_wants() -> None:
    command = java_command(Path("/nowhere"), Jvm(heap_mib=2048, jit="tiered"))
    assert "-Xmx2048m" in command
    assert "-XX:TieredStopAtLevel=1" not in command


def test_a_driver_that_was_not_fetched_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KNOBSCOPE_FLEET", str(tmp_path))
    with pytest.raises(UserError, match=r"no jars of the driver a:b:1; fetch them: knobscope drivers"):
        java_command(Path("/nowhere"), Jvm(), driver="a:b:1")


def test_clients_that_are_not_built_are_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KNOBSCOPE_CLIENTS", str(tmp_path))
    with pytest.raises(UserError, match=r"not built: .*KNOBSCOPE_CLIENTS.*run `make setup`"):
        find_clients()


def test_a_missing_java_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="no java program in PATH"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"no java program in .*JAVA_HOME"):
        find_java()
