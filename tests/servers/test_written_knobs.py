"""Every way to hand over a knob, and what a server finds in its files."""

import os
import re
import stat
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from waiting import wait_until

from knobscope.errors import UserError
from knobscope.servers import (
    Instance,
    ServerFailedError,
    ask_instance,
    compare_effective,
    make_data_directory,
    open_instance,
    write_config_files,
)
from knobscope.specs import Dbms, Value, read_spec
from knobscope.specs.reading.inherit import load_extended
from knobscope.specs.reading.validate import validate_document

GOOD = Path(__file__).parents[1] / "specs/good/dbms"


@pytest.fixture(scope="module")
def written() -> Dbms:
    """A spec with configuration files."""
    return read_spec(GOOD / "written.yaml", Dbms, None)[1]


def changed(dbms: Dbms, **keys: object) -> Dbms:
    """The same spec with other values at its top."""
    data = load_extended(GOOD / f"{dbms.name}.yaml")
    data.data.update(keys)
    return validate_document(data, Dbms)


def read_files(instance: Instance, configuration: dict[str, Value]) -> tuple[str, dict[str, object]]:
    write_config_files(instance, configuration, "start")
    return (instance.config / "a.conf").read_text(), yaml.safe_load((instance.config / "b.yaml").read_text())


def test_files_hold_fixed_content_then_knobs(written: Dbms, tmp_path: Path) -> None:
    with open_instance(written, tmp_path / "data") as instance:
        lines, keys = read_files(instance, {"delay": 5, "sync": "batch"})
        assert lines == f"dir {instance.data}\npass {instance.password}\ndelay 5ms\n"
        assert keys == {"sync": "batch", "seeds": [{"host": f"127.0.0.1:{instance.port}"}]}
        assert read_files(instance, {})[1]["sync"] == "periodic"
        assert stat.S_IMODE((instance.config / "a.conf").stat().st_mode) == (0o640 if instance.user else 0o600)
        assert len(set(instance.ports)) == 3


def test_a_load_time_knob_can_also_reach_every_start(written: Dbms, tmp_path: Path) -> None:
    configuration: dict[str, Value] = {"page": 2, "sums": True, "delay": 3}
    with open_instance(written, tmp_path) as instance:
        assert instance.knob_arguments(configuration, "init") == ["--page=2", "--sums"]
        assert instance.knob_arguments(configuration, "start") == ["--page=2"]
        assert instance.knob_arguments({"sums": False}, "init") == []


def test_paths_and_environment_are_filled(written: Dbms, tmp_path: Path) -> None:
    with open_instance(written, tmp_path) as instance:
        assert instance.environment["SECRET"] == instance.password
        assert instance.environment["MESSAGES"] == "/etc"
        assert instance.environment["PATH"] == os.environ["PATH"]


def test_variables_hold_fixed_text_then_knobs_and_reach_the_server_alone(
    written: Dbms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_WORKERS", "3")  # also one that we have ourselves
    spec = changed(written, programs={"tool": {"find": ["printenv"], "package": "coreutils"}})
    configuration: dict[str, Value] = {"workers": 3, "trace": 1, "verify": 0}
    data = tmp_path / "data"
    make_data_directory(data)
    with open_instance(spec, data) as instance:
        assert instance.environment_with(configuration, "init")["TOOL_DEBUG"] == "base=1,verify=0"
        asked = instance.start(
            [instance.fill_command(["tool"], {}, "start")[0], "TOOL_WORKERS", "TOOL_DEBUG"],
            stdout=subprocess.PIPE,
            env=instance.environment_with(configuration, "start"),
        )
        assert asked.communicate()[0].decode().split() == ["3", "base=1,trace=1,verify=0"]
        assert instance.environment["TOOL_DEBUG"] == "base=1"


def test_the_documented_variables_are_written_as_the_page_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/adding-a-dbms.md").read_text()
    (block,) = re.findall(r"^```yml\n(knobs:\n  GOMAXPROCS:.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    file = tmp_path / "written.yaml"
    file.write_text((GOOD / file.name).read_text().partition("knobs:\n")[0] + block)
    spec = read_spec(file, Dbms, None)[1]
    usual = {name: knob.default for name, knob in spec.knobs.items()}
    with open_instance(spec, tmp_path) as instance:
        environment = instance.environment_with(usual, "start")
    for name in ("GOMAXPROCS", "GODEBUG"):
        assert f"`{name}={environment[name]}`" in page


@pytest.mark.parametrize("text", ["ldapi://{socket:url}%2Fs", "{{{data}}} {config:url}"])
def test_a_path_can_be_a_part_of_a_url(written: Dbms, tmp_path: Path, text: str) -> None:
    spec = changed(written, generators={"bench": [text, "{port}"]})
    with open_instance(spec, tmp_path) as instance:
        socket, config = (quote(str(instance.placeholders[name]), safe="") for name in ("socket", "config"))
        expected = f"ldapi://{socket}%2Fs" if "socket" in text else f"{{{tmp_path}}} {config}"
        assert instance.fill(spec.generators["bench"][0]) == expected
        assert "/" not in config


@pytest.mark.real
@pytest.mark.skipif(not Path("/usr/sbin/slapd").exists(), reason="slapd is not installed")
def test_a_server_is_reached_at_a_url_that_names_its_socket(written: Dbms, tmp_path: Path) -> None:
    spec = changed(written, generators={"bench": ["ldapi://{socket:url}%2Fs"]})
    with open_instance(spec, tmp_path) as instance:
        url, configuration = instance.fill(spec.generators["bench"][0]), instance.config / "slapd.conf"
        configuration.write_text("include /etc/ldap/schema/core.schema\n")
        configuration.chmod(0o644)
        server = instance.start(["/usr/sbin/slapd", "-d", "0", "-f", str(configuration), "-h", url])
        search = ["/usr/bin/ldapsearch", "-x", "-H", url, "-s", "base", "-b", ""]
        try:
            assert wait_until(lambda: server.poll() is not None or instance.start(search).wait(30) == 0)
            assert server.poll() is None
        finally:
            server.terminate()
            server.wait(30)


def test_a_command_is_asked_and_its_failure_has_its_words(written: Dbms, tmp_path: Path) -> None:
    spec = changed(
        written,
        programs={"tool": {"find": ["printf"], "package": "coreutils"}},
        readback={"command": ["tool", "delay\n5ms\n"], "parser": "pairs"},
    )
    with open_instance(spec, tmp_path) as instance:
        assert ask_instance(instance) == {"delay": "5ms"}
    spec = changed(
        written,
        programs={"tool": {"find": ["ls"], "package": "coreutils"}},
        readback={"command": ["tool", "surely/not/here"], "parser": "pairs"},
    )
    with open_instance(spec, tmp_path) as instance, pytest.raises(ServerFailedError, match="exit code 2") as caught:
        ask_instance(instance)
    assert str(caught.value).startswith("`readback.command`: /")
    assert "surely" in caught.value.log_tail


def test_a_build_in_a_closed_place_finds_its_libraries(written: Dbms, tmp_path: Path) -> None:
    """A run saw the programs of a build below /tmp or in a home directory, and not the libraries next to `bin`."""
    for folder in ("bin", "lib", "private"):
        (tmp_path / "build" / folder).mkdir(parents=True)
        (tmp_path / "build" / folder / "words").write_text("delay\n5ms\n")
    tool = tmp_path / "build/bin/tool"
    tool.write_text('#!/bin/sh\nhere=$(dirname "$0")\ncat "$here/../lib/words"\ntest ! -e "$here/../private/words"\n')
    tool.chmod(0o755)
    spec = changed(
        written,
        programs={"tool": {"find": [str(tool)], "package": "coreutils"}},
        readback={"command": ["tool"], "parser": "pairs"},
    )
    (tmp_path / "data").mkdir()
    with open_instance(spec, tmp_path / "data") as instance:
        assert ask_instance(instance) == {"delay": "5ms"}


@pytest.mark.parametrize(
    ("program", "answer", "parser", "words"),
    [
        ("echo", '[{{"knob": "delay", "value": "5"}}]', "json", "there is no 'name'"),
        ("printf", "delay=5ms\nother=1\n", "pairs", "it finds delay=5ms there, and none of the knobs, such as page"),
        ("printf", "delay=5ms\nother=1\n", "pairs", "it begins with 'delay=5ms"),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_mistake_of_the_spec(
    written: Dbms, tmp_path: Path, program: str, answer: str, parser: str, words: str
) -> None:
    """It was reported as a configuration that the DBMS refuses, or as one whose values read back None."""
    spec = changed(
        written,
        programs={"tool": {"find": [program], "package": "coreutils"}},
        readback={"command": ["tool", answer], "parser": parser},
    )
    with open_instance(spec, tmp_path) as instance, pytest.raises(UserError) as caught:
        ask_instance(instance)
    assert f"{parser} cannot read what `readback.command` gives" in str(caught.value)
    assert words in str(caught.value)


def test_a_dbms_that_cannot_be_asked_is_trusted(written: Dbms, tmp_path: Path) -> None:
    data = load_extended(GOOD / "written.yaml")
    del data.data["readback"]
    spec = validate_document(data, Dbms)
    with open_instance(spec, tmp_path) as instance:
        assert ask_instance(instance) == {}
    rows, differing = compare_effective(spec, {"delay": 5}, {})
    assert (rows[0]["effective"], differing) == (None, {})
    asked = changed(written, readback={"file": "{data}/OPTIONS-*", "parser": "ini"})
    assert compare_effective(asked, {"delay": 5}, {})[1] == {"delay": "delay=5 is not read back (by `readback.file`)"}


def test_a_knob_that_is_read_back_under_another_name_is_found(written: Dbms) -> None:
    asked = changed(written, readback={"file": "{data}/settings.json", "parser": "json"})
    for names, words in (
        ({"log.delay": "5", "log.delays": "1"}, ", which has log.delay"),
        ({"delays": "5"}, ", which has delays"),
        ({"other": "5"}, ""),
    ):
        _, differing = compare_effective(asked, {"delay": 5}, names)
        assert differing == {"delay": f"delay=5 is not read back (by `readback.file`{words})"}


def test_the_newest_file_tells_what_is_in_force(written: Dbms, tmp_path: Path) -> None:
    spec = changed(written, readback={"file": "{data}/OPTIONS-*", "parser": "ini"})
    data = tmp_path / "data"
    make_data_directory(data)
    with open_instance(spec, data) as instance:
        with pytest.raises(ServerFailedError, match=r"no file OPTIONS-\*"):
            ask_instance(instance)
        for number in (7, 8):
            (data / f"OPTIONS-{number}").write_text(f"[x]\n delay={number}\n")
            (data / f"OPTIONS-{number}").chmod(0o644)
            os.utime(data / f"OPTIONS-{number}", (number, number))
        assert ask_instance(instance) == {"delay": "8"}
