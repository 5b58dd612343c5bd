"""What another user of the machine can reach while a server runs: nothing."""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest
from shipped_specs import shipped_dbms

from knobscope.processes import make_shared_directory
from knobscope.servers import Instance, Server, open_instance
from knobscope.specs import Dbms, Workload, find_path, find_program
from knobscope.stages.prepare import copy_snapshot, prepare_snapshot

STRANGER = Path(__file__).with_name("stranger.py")
LISTENING = ["postgresql", "redis"]
OF_THE_FLEET = ["postgresql18", "mysql", "valkey", "cassandra"]

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user: needs root")]


@pytest.fixture(
    params=[
        *LISTENING,
        pytest.param("mariadb", marks=pytest.mark.long),
        *(pytest.param(name, marks=pytest.mark.fleet) for name in OF_THE_FLEET),
    ]
)
def dbms(request: pytest.FixtureRequest) -> Dbms:
    spec = shipped_dbms(request.param)
    missing = [wanted for wanted in spec.programs.values() if find_program(wanted) is None]
    missing += [wanted for wanted in spec.paths.values() if find_path(wanted) is None]
    if missing:
        pytest.skip(f"no {missing[0].find[-1]}; {missing[0].remedy}")
    return spec


@contextmanager
def running(dbms: Dbms, workload: Workload, scratch: Path) -> Iterator[Instance]:
    """A server on a copy of loaded data, as in a run."""
    assert dbms.lifecycle is not None
    snapshot = prepare_snapshot(dbms, workload, {}, scratch)
    make_shared_directory(scratch / "run", "knobscope")
    copy_snapshot(snapshot, scratch / "run" / "data")
    with (
        open_instance(dbms, scratch / "run" / "data", snapshot.password) as instance,
        Server(instance, dbms.lifecycle, {}, instance.runtime / "server.log") as server,
    ):
        server.wait_ready()
        yield instance


def test_a_stranger_reads_nothing_and_connects_to_nothing(
    dbms: Dbms, short_workload: Workload, open_directory: Path, tmp_path: Path
) -> None:
    with running(dbms, short_workload, open_directory) as instance:
        paths = [path for top in (open_directory, instance.runtime) for path in [top, *top.rglob("*")]]
        sockets = [str(path) for path in paths if stat.S_ISSOCK(path.lstat().st_mode)]
        secrets = [str(path) for path in paths if str(path) not in sockets]
        processes = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if of_the_run(path, instance)]
        secrets += [str(path / name) for path in processes for name in ("environ", "fd", "mem")]
        assert len(secrets) > 10
        assert processes != []
        found = ask_stranger(tmp_path, secrets, sockets, list(instance.ports))
        assert found == []
        lines = b""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it has ended
                lines += path.read_bytes()
        assert instance.password.encode() not in lines


def of_the_run(cmdline: Path, instance: Instance) -> bool:
    try:
        return (
            str(instance.data).encode() in cmdline.read_bytes()
            or str(instance.runtime).encode() in cmdline.read_bytes()
        )
    except (FileNotFoundError, ProcessLookupError):
        return False


def ask_stranger(folder: Path, paths: list[str], sockets: list[str], ports: list[int]) -> list[str]:
    program = Path("/var/tmp") / f"knobscope-stranger-{os.getpid()}.py"  # where everybody can read it
    shutil.copy(STRANGER, program)
    program.chmod(0o644)
    asked = json.dumps({"paths": paths, "sockets": sockets, "ports": ports})
    command = ["runuser", "-u", "nobody", "--", "/usr/bin/python3", str(program)]
    try:
        done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=3000, check=True, cwd="/")
    finally:
        program.unlink()
    found: list[str] = json.loads(done.stdout)
    return found


def test_the_stranger_of_these_tests_can_see_what_is_open(tmp_path: Path) -> None:
    assert ask_stranger(tmp_path, ["/etc/hostname", "/etc/shadow"], [], []) == ["/etc/hostname"]


AS_POSTGRES = ["psql", "-w", "-h127.0.0.1", "-p{port}", "-Upostgres", "-cselect 1", "postgres"]
AS_ROOT = ["mariadb", "--no-defaults", "-h127.0.0.1", "-P{port}", "-uroot", "-e", "select 1"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("postgresql", AS_POSTGRES),
        ("mariadb", AS_ROOT),
        pytest.param("mysql", AS_ROOT, marks=pytest.mark.fleet),
    ],
)
def test_without_a_network_of_its_own_a_server_asks_for_a_password(
    name: str, client: list[str], short_workload: Workload, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no network namespace can be made, strangers reach the port, and get no further."""
    spec = shipped_dbms(name)
    if any(find_program(wanted) is None for wanted in spec.programs.values()):
        pytest.skip(f"no {name} here")
    monkeypatch.setattr("knobscope.servers.instance.open_network", nullcontext)
    with running(spec, short_workload, open_directory) as instance:
        command = ["runuser", "-u", "nobody", "--", *(part.format(port=instance.port) for part in client)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd="/")
    assert done.returncode != 0
    assert "password" in done.stderr.lower() or "denied" in done.stderr.lower(), done.stderr
