"""Servers as a person starts them by hand: as an ordinary user, on a device of their own, in a cgroup or none."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from json_documents import read_document
from loop_devices import Loop
from waiting import wait_until

from knobscope.processes import find_service_user
from knobscope.servers.instance import find_free_ports

ROOT = Path(__file__).parents[3]


def find_hierarchy() -> Path:
    """The mount of cgroup v2; without one the test is skipped."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line:
            return Path(line.split()[4])
    pytest.skip("this machine has no cgroup v2")


@contextlib.contextmanager
def open_cgroup(name: str) -> Iterator[Path]:
    """A cgroup with another one in it, as a container has them; whoever is still there at the end goes to the root."""
    outer = find_hierarchy() / f"{name}-{os.getpid()}"
    inner = outer / "inner"
    inner.mkdir(parents=True)
    try:
        yield inner
    finally:
        for group in (inner, outer):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    (find_hierarchy() / "cgroup.procs").write_text(pid)
            group.rmdir()


@dataclass
class Started:
    """A server that runs: its first process, and how it is asked and loaded."""

    process: "subprocess.Popen[bytes]"
    url: str
    load: Callable[[], None]  # a fixed number of changes, each durable when it is answered
    ask: Callable[[], str]  # its settings

    @property
    def pid(self) -> int:
        return self.process.pid

    def describe(self) -> tuple[int | None, str, set[str]]:
        """What attach must not change: that it lives, its settings, and where it is."""
        return self.process.poll(), self.ask(), self.list_cgroups()

    def list_cgroups(self) -> set[str]:
        found = set()
        for pid in (self.pid, *list_children(self.pid)):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a session that ended
                found.add(Path("/proc", str(pid), "cgroup").read_text().splitlines()[-1])
        return found


def list_children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found += [int(entry.name), *list_children(int(entry.name))]
    return found


def run(*command: str, user: str | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, user=user, cwd="/")
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


@contextlib.contextmanager
def start_server(kind: str, mount: Path, group: Path | None) -> Iterator[Started]:
    """Start a server with its data on a mount, in a cgroup; it ends with the block."""
    user = find_service_user()
    folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=mount))
    home = Path(tempfile.mkdtemp(prefix="knobscope-attach-test-", dir="/tmp"))
    with contextlib.ExitStack() as stack:
        for directory in (folder, home):
            stack.callback(shutil.rmtree, directory)
            if user is not None:
                shutil.chown(directory, user)
        yield from _start(kind, folder, home, user, group)


def _start(kind: str, folder: Path, home: Path, user: str | None, group: Path | None) -> Iterator[Started]:
    command, ready, finish = _KINDS[kind](folder, home, user)
    if user is not None:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    if group is not None:
        command = ["sh", "-c", 'echo 0 > "$0"; exec "$@"', str(group / "cgroup.procs"), *command]
    process = subprocess.Popen(command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: process.poll() is not None or ready())
        assert process.poll() is None, f"{kind} did not start"
        yield finish(process)
    finally:
        process.send_signal(signal.SIGINT if kind == "postgresql" else signal.SIGTERM)
        process.wait(60)


def _succeeds(*command: str, user: str | None = None) -> bool:
    return subprocess.run(command, capture_output=True, check=False, user=user, cwd="/").returncode == 0


def _postgresql(folder: Path, home: Path, user: str | None) -> tuple[Any, ...]:
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    data, port = folder / "data", str(find_free_ports()[0])
    socket = ["-h", str(home), "-p", port, "-U", "postgres"]
    run(str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync", user=user)
    command = [str(programs / "postgres"), "-D", str(data), "-p", port, "-k", str(home), "-c", "shared_buffers=16MB"]

    def finish(process: "subprocess.Popen[bytes]") -> Started:
        run("pgbench", "-i", "-q", "-s", "1", *socket, "postgres", user=user)
        run("psql", *socket, "-c", "checkpoint", "postgres", user=user)
        return Started(
            process,
            f"postgresql://postgres@127.0.0.1:{port}/postgres",
            lambda: void(run("pgbench", "-n", "-c", "2", "-t", "100", *socket, "postgres", user=user)),
            lambda: run("psql", *socket, "-Atc", "select name, setting from pg_settings", "postgres", user=user),
        )

    return command, lambda: _succeeds("pg_isready", "-q", "-h", str(home), "-p", port), finish


def _mariadb(folder: Path, home: Path, user: str | None) -> tuple[Any, ...]:
    data, socket, port = folder / "data", home / "s", str(find_free_ports()[0])
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]
    run(*install, "--skip-test-db", user=user)
    command = ["/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={socket}", f"--port={port}"]
    command += ["--bind-address=127.0.0.1", f"--pid-file={home / 'pid'}", "--innodb-flush-log-at-trx-commit=1"]
    client = ["mariadb", "--no-defaults", "-uroot", f"--socket={socket}"]
    insert = "insert into t.t (x) values (1); " * 100

    def finish(process: "subprocess.Popen[bytes]") -> Started:
        table = "create database t; create table t.t (id int auto_increment primary key, x int) engine=innodb"
        run(*client, "-e", table, user=user)
        return Started(
            process,
            f"mariadb://root@127.0.0.1:{port}/t",
            lambda: void(run(*client, "-e", insert, user=user)),
            lambda: run(*client, "-Ne", "show global variables where variable_name not like '%gtid%'", user=user),
        )

    return [*command], lambda: _succeeds(*client, "-e", "select 1", user=user), finish


def _redis(folder: Path, home: Path, user: str | None) -> tuple[Any, ...]:
    socket, port = str(home / "s"), str(find_free_ports()[0])
    command = ["redis-server", "--port", port, "--unixsocket", socket, "--dir", str(folder)]
    command += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    client = ["redis-cli", "-s", socket]

    def finish(process: "subprocess.Popen[bytes]") -> Started:
        benchmark = ["redis-benchmark", "-q", "-s", socket, "-c", "1", "-n", "200", "-t", "set"]
        return Started(
            process,
            f"redis://127.0.0.1:{port}",
            lambda: void(run(*benchmark, user=user)),
            lambda: run(*client, "config", "get", "*", user=user),
        )

    return command, lambda: _succeeds(*client, "ping", user=user), finish


def void(_: object) -> None:
    """Forget a result."""


_KINDS = {"postgresql": _postgresql, "mariadb": _mariadb, "redis": _redis}


@dataclass
class Attached:
    """A call of attach that watches."""

    process: "subprocess.Popen[str]"
    said: list[str] = field(default_factory=list)

    def wait_watching(self) -> None:
        """Wait until the counters run."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith("knobscope: watching"):
                return
        raise AssertionError(f"attach ended: {''.join(self.said)}")

    def finish(self) -> str:
        """End the window as Ctrl-C does; return what attach prints."""
        self.process.send_signal(signal.SIGINT)
        out, errors = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, f"{''.join(self.said)}{errors}"
        return out


@contextlib.contextmanager
def start_attach(*arguments: str) -> Iterator[Attached]:
    """Call attach in the checkout; whatever happens, it ends with the block."""
    environment = {name: value for name, value in os.environ.items() if not re.match("SUDO_", name)}
    process = subprocess.Popen(
        [sys.executable, "-m", "knobscope", "attach", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        yield Attached(process)
    finally:
        process.kill()
        process.communicate()


def diagnose(server: Started, device: Loop, tmp_path: Path, *options: str) -> tuple[dict[str, Any], str, "Added"]:
    """Watch a fixed load; return what attach says as data and as text, and what the device counted meanwhile."""
    out = tmp_path / "attached.json"
    os.sync()  # nobody knows who dirtied pages before
    with count_added(device) as added, start_attach("--pid", str(server.pid), "--json", str(out), *options) as attached:
        attached.wait_watching()
        with added.watched():
            server.load()
            os.sync()
        text = attached.finish()
    return read_document("attach", out.read_text()), text, added


class Added:
    """What a device counted, by columns of its own sums: while it was certainly watched, and around all of that.

    A `sync` of any process on the machine flushes this device, too, so what comes in between is not the load's alone.
    """

    def __init__(self, device: Loop) -> None:
        self._device = device
        self.least: list[int] = []
        self.most: list[int] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Count what comes while attach watches."""
        before = self._device.read_stat()
        yield
        self.least = self._since(before)

    def _since(self, before: list[int]) -> list[int]:
        return [now - then for then, now in zip(before, self._device.read_stat(), strict=True)]


@contextlib.contextmanager
def count_added(device: Loop) -> Iterator[Added]:
    """Count what comes until attach has ended."""
    added, before = Added(device), device.read_stat()
    yield added
    added.most = added._since(before)
