"""A spec is code: none of its commands runs as root, and none at all under `snakemake -n`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from waiting import wait_until

from knobscope.generators import CommandRun, GeneratorCall, load_data
from knobscope.servers import (
    Server,
    ask_instance,
    initialise_data,
    make_data_directory,
    open_instance,
    read_version,
)
from knobscope.specs import Dbms, Generator, Workload

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="about root")]

#: Says who runs it in a file of its own, then does what its command should.
TELLING = """#!/bin/sh
id -u >"{seen}/$1-$$"
case $1 in
  version) echo telling 1.0 ;;
  start) exec sleep 600 ;;
  readback) echo knob=1 ;;
esac
"""


@pytest.fixture
def seen(open_directory: Path) -> Path:
    folder = open_directory / "seen"
    folder.mkdir()
    folder.chmod(0o777)
    program = open_directory / "telling"
    program.write_text(TELLING.format(seen=folder))
    program.chmod(0o755)
    return folder


@pytest.fixture
def telling(seen: Path) -> Dbms:
    """A DBMS of which every command tells who runs it."""
    return Dbms.model_validate(spec_of(seen.parent / "telling"))


def spec_of(program: Path) -> dict[str, object]:
    return {
        "name": "telling",
        "description": "tells who runs it",
        "programs": {"telling": {"find": [str(program)], "package": "none"}},
        "version": ["telling", "version"],
        "since": "1",
        "lifecycle": {
            "init": ["telling", "init"],
            "start": ["telling", "start", "{knobs}"],
            "ready": ["telling", "ready"],
            "setup": [["telling", "setup"]],
            "stop": {"command": ["telling", "stop"], "timeout_s": 30},
        },
        "readback": {"command": ["telling", "readback"], "parser": "ini"},
        "generators": {"teller": []},
        "writing": {"restart": {"argv": ["--{knob}={value}"]}},
        "knobs": {
            "knob": {
                "type": "integer",
                "range": [1, 2],
                "default": 1,
                "apply": "restart",
                "mechanism": "other",
                "description": "nothing",
                "source": "https://example.org",
            }
        },
        "files": {"data": ["*"]},
    }


TELLER = {
    "name": "teller",
    "description": "a generator that tells who runs it",
    "load": [["telling", "load"]],
    "run": ["telling", "run", "{seconds}"],
    "parser": "sysbench",
    "record_bytes": 1,
    "source": "https://example.org",
}


def who(seen: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in seen.iterdir():
        found.setdefault(path.name.rpartition("-")[0], set()).add(path.read_text().strip())
    return found


def test_no_command_of_a_spec_runs_as_root(telling: Dbms, seen: Path, open_directory: Path) -> None:
    assert telling.lifecycle is not None
    data, log = open_directory / "data", open_directory / "log"
    make_data_directory(data)
    programs = {"telling": {"find": [str(open_directory / "telling")], "package": "none"}}
    generator = Generator.model_validate({**TELLER, "programs": programs})
    load = Workload.model_validate({"name": "load", "generator": "teller", "class": "write", "records": 1})
    with open_instance(telling, data) as instance:
        initialise_data(instance, {}, log)
        assert read_version(instance) == "1.0"
        with Server(instance, telling.lifecycle, {}, log) as server:
            server.wait_ready()
            server.set_up()
            assert ask_instance(instance) == {"knob": "1"}
            call = GeneratorCall(generator, instance, load, {})
            load_data(call)
            with CommandRun(call, warmup_s=0, measure_s=1, interval_ms=250, ask=dict) as run:
                assert run.root_pid > 0
                wait_for(seen, "run")
            server.process.terminate()
            server.stop()
    found = who(seen)
    assert set(found) == {"version", "init", "start", "ready", "setup", "stop", "readback", "load", "run"}
    assert "0" not in set().union(*found.values())


def wait_for(seen: Path, name: str) -> None:
    assert wait_until(lambda: any(path.name.startswith(f"{name}-") and path.stat().st_size for path in seen.iterdir()))


@pytest.fixture
def study(seen: Path, open_directory: Path) -> Iterator[Path]:
    folder = open_directory / "sandbox"
    for kind in ("dbms", "devices", "workloads", "generators", "studies"):
        (folder / "specs" / kind).mkdir(parents=True)
    (folder / "specs/devices/here.yaml").symlink_to(ROOT / "specs/devices/here.yaml")
    programs = {"telling": {"find": [str(open_directory / "telling")], "package": "none"}}
    write(folder / "specs/dbms/telling.yaml", spec_of(open_directory / "telling"))
    write(folder / "specs/generators/teller.yaml", {**TELLER, "programs": programs})
    write(
        folder / "specs/workloads/load.yaml",
        {"name": "load", "description": "one row", "generator": "teller", "class": "write", "records": 1},
    )
    write(
        folder / "specs/studies/telling.yaml",
        {
            "name": "telling",
            "description": "tells who runs it",
            "dbms": ["telling"],
            "devices": ["here"],
            "workloads": {"load": None},
            "knobs": {"telling": {"knob": None}},
        },
    )
    yield folder


def write(path: Path, content: dict[str, object]) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.mark.parametrize(
    "option", ["-n", *(pytest.param(one, marks=pytest.mark.long) for one in ("--summary", "--lint"))]
)
def test_nothing_of_a_spec_runs_when_nothing_is_to_be_done(study: Path, seen: Path, option: str) -> None:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(study)]
    command += ["--profile", str(ROOT / "profiles/default"), "--cores", "1", option]
    command += ["--config", "study=specs/studies/telling.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert "telling" in done.stdout + done.stderr  # it came as far as the study
    assert "found" not in done.stderr, done.stderr  # no complaint about the specs
    assert who(seen) == {}


def test_a_pipeline_that_executes_asks_for_the_version_first(study: Path, seen: Path) -> None:
    spec = study / "specs/dbms/telling.yaml"
    spec.write_text(spec.read_text().replace("since: '1'", "since: '2'"))
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(study)]
    command += [
        "--profile",
        str(ROOT / "profiles/default"),
        "--cores",
        "1",
        "--config",
        "study=specs/studies/telling.yaml",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2, done.stderr
    assert "telling 1.0" in done.stderr
    assert set(who(seen)) == {"version"}
    assert who(seen)["version"] != {"0"}
