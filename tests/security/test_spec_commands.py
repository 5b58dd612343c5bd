"""A spec is code: its commands leave neither their user nor their run, and none runs under `snakemake -n`."""

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from waiting import wait_until

from knobscope.generators import CommandRun, GeneratorCall, load_data
from knobscope.processes import SERVICE_USER
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

CANARY_S = "1000.125"
EVERYBODYS = ("/tmp", "/var/tmp", "/dev/shm")
NAME = "left-by-a-command"
SEGMENT = str(0x6B6E6F62)
PROBER = Path(__file__).with_name("prober.py")
#: Writes who runs it and what it could do in a file of its own, then does what its command should.
TELLING = """#!/bin/sh
/usr/bin/python3 {prober} "{seen}/$1-$$" {port} {pid} {name} || exit 1
case $1 in
  version) echo telling 1.0 ;;
  start) exec sleep 600 ;;
  readback) echo knob=1 ;;
esac
"""


@dataclass(frozen=True)
class Canary:
    """What no command may get at: a port of the machine, and a process of the user that commands run as."""

    port: int
    process: "subprocess.Popen[bytes]"


@pytest.fixture
def canary() -> Iterator[Canary]:
    account = pwd.getpwnam(SERVICE_USER)
    sleeper = ["/bin/sleep", CANARY_S]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        process = subprocess.Popen(sleeper, user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd="/")
        yield Canary(listening.getsockname()[1], process)
        process.kill()
        process.wait()


@pytest.fixture
def seen(open_directory: Path, canary: Canary) -> Path:
    folder = open_directory / "seen"
    folder.mkdir()
    folder.chmod(0o777)
    program = open_directory / "telling"
    told_to = {"prober": open_directory / "prober", "port": canary.port, "pid": canary.process.pid, "name": NAME}
    program.write_text(TELLING.format(seen=folder, **told_to))
    shutil.copy(PROBER, open_directory / "prober")
    (open_directory / "prober").chmod(0o644)
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


def told(seen: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what the commands have written, by the command's name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in seen.glob("*[0-9]"):
        found.setdefault(path.name.rpartition("-")[0], []).append(json.loads(path.read_text()))
    return found


def require_confined(commands: Iterable[dict[str, Any]], canary: Canary, *directories: Path) -> None:
    """Check that nobody got out, or saw of the directories of everybody more than those of the run."""
    ours = {kind: str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("net", "pid", "ipc", "mnt", "user")}
    visible = {f"{folder}/{NAME}" for folder in EVERYBODYS} | set(map(str, directories))
    visible |= {f"{folder}/{ROOT.relative_to(folder).parts[0]}" for folder in EVERYBODYS if ROOT.is_relative_to(folder)}
    for command in commands:
        assert command["user"] == pwd.getpwnam(SERVICE_USER).pw_uid
        assert not command["connects"]
        assert not command["signals"]
        assert not command["user namespace"]
        assert [kind for kind, name in command["namespaces"].items() if name == ours[kind]] == []
        assert "prober" in str(command["processes"])
        assert CANARY_S not in str(command["processes"])
        assert set(command["seen"]) <= visible
    assert canary.process.poll() is None
    assert not any(Path(folder, NAME).exists() for folder in EVERYBODYS)
    assert SEGMENT not in Path("/proc/sysvipc/shm").read_text()


def test_no_command_of_a_spec_leaves_its_user_or_its_run(
    telling: Dbms, seen: Path, canary: Canary, open_directory: Path
) -> None:
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
                started_ns = time.time_ns()
                assert run.wait_measuring(1) <= started_ns, "a DBMS in its generator runs before it is watched"
                wait_for(seen, "run")
            server.process.terminate()
            server.stop()
    found = told(seen)
    assert set(found) == {"version", "init", "start", "ready", "setup", "stop", "readback", "load", "run"}
    require_confined([one for several in found.values() for one in several], canary, open_directory, instance.runtime)


def wait_for(seen: Path, name: str) -> None:
    assert wait_until(lambda: any(seen.glob(f"{name}-*[0-9]")))


@pytest.fixture
def study(seen: Path, open_directory: Path) -> Iterator[Path]:
    folder = open_directory / "sandbox"
    for kind in ("dbms", "devices", "workloads", "generators", "studies"):
        (folder / "specs" / kind).mkdir(parents=True)
    (folder / "specs/devices/local-disk.yaml").symlink_to(ROOT / "specs/devices/local-disk.yaml")
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
            "devices": ["local-disk"],
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
    assert told(seen) == {}


def test_a_pipeline_that_executes_asks_for_the_version_first(
    study: Path, seen: Path, canary: Canary, open_directory: Path
) -> None:
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
    assert set(told(seen)) == {"version"}
    require_confined(told(seen)["version"], canary, open_directory)
