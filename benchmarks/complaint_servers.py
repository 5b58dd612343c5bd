"""Servers of complaints.py, started by hand on modelled devices: all that is started ends with its world."""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knobscope.devices import bring_up, load_device, take_down
from knobscope.errors import UserError
from knobscope.processes import find_service_user
from knobscope.specs import Device

ROOT = Path(__file__).resolve().parents[1]
_READY_S, _END_S = 60, 60


@dataclass
class World:
    """Where one complaint happens: everything that it starts ends with the stack, the last first."""

    stack: ExitStack
    home: Path
    user: str | None = field(default_factory=find_service_user)

    def open_device(self, name: str, **change: Any) -> Path:
        """Bring a modelled device up, changed as a spec would; return where it is mounted."""
        spec = load_device(name, ROOT).model_dump(mode="json")
        spec["name"] = self.home.name.replace("_", "-").lower()
        spec["emulate"]["model"] |= change
        device = Device.model_validate(spec)
        self.stack.callback(_take_down, device)
        mount = bring_up(device, Path("/"))
        return self.make_directory(mount / "server")

    def make_directory(self, path: Path) -> Path:
        """Make a directory of the user that runs servers."""
        path.mkdir()
        if self.user is not None:
            shutil.chown(path, self.user)
        return path

    def run(self, *command: str | Path) -> None:
        """Run a command to its end."""
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False, user=self.user, cwd="/"
        )
        if done.returncode:
            raise SystemExit(f"{command[0]}: {done.stderr.strip()[-2000:] or done.stdout.strip()[-2000:]}")

    def start(self, *command: str | Path, end: signal.Signals = signal.SIGTERM, as_root: bool = False) -> int:
        """Start a server or a load; return its process."""
        log = (self.home / f"{Path(command[0]).name}.log").open("ab")
        words = [str(word) for word in command]
        user = None if as_root else self.user
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, user=user, cwd=self.home)
        self.stack.callback(_end, process, end)
        return process.pid

    def wait(self, *command: str | Path) -> None:
        """Wait until a command succeeds."""
        deadline = time.monotonic() + _READY_S
        while subprocess.run(
            [str(word) for word in command], capture_output=True, check=False, user=self.user, cwd="/"
        ).returncode:
            if time.monotonic() > deadline:
                raise SystemExit(f"the server does not answer: {' '.join(map(str, command))}")
            time.sleep(0.2)


@contextmanager
def open_world() -> Iterator[World]:
    """Yield a world with a home of its own, which servers' users may write to; both end with it."""
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="complaint-", dir="/tmp"))
        stack.callback(shutil.rmtree, home)
        world = World(stack, home)
        home.chmod(0o777)
        yield world


def _take_down(device: Device) -> None:
    try:
        take_down(device, Path("/"))
    except UserError as busy:  # another program has a copy of our mounts; it goes with this process
        print(busy, file=sys.stderr)


def _end(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    process.send_signal(number)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Postgresql:
    """A PostgreSQL that runs, and how its clients reach it."""

    world: World
    pid: int

    @classmethod
    def start(cls, world: World, mount: Path, scale: int, **settings: Any) -> "Postgresql":
        """Start one with the tables of pgbench."""
        programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        data = mount / "data"
        world.run(programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
        options = {"port": 54997, "unix_socket_directories": world.home, "listen_addresses": "", **settings}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        pid = world.start(programs / "postgres", "-D", data, *words, end=signal.SIGINT)
        world.wait("pg_isready", "-q", "-h", world.home, "-p", "54997")
        server = cls(world, pid)
        if scale:
            world.run("pgbench", "-i", "-q", "-s", str(scale), *server.client)
        return server

    @property
    def client(self) -> list[str]:
        """The words with which its clients find it."""
        return ["-h", str(self.world.home), "-p", "54997", "-U", "postgres", "postgres"]

    def ask(self, statement: str) -> None:
        """Run a statement."""
        self.world.run("psql", "-q", "-c", statement, *self.client)

    def load(self, *options: str, script: str | None = None) -> None:
        """Start pgbench."""
        more: list[str] = []
        if script is not None:
            file = self.world.home / "script.sql"
            file.write_text(script)
            more = ["-f", str(file)]
        self.world.start("pgbench", "-n", "-T", "600", *options, *more, *self.client)


def start_mariadb(world: World, mount: Path, rows: int, *settings: str) -> tuple[int, list[str]]:
    """Start a MariaDB with a table of sysbench; return its process, and the words of sysbench without the load."""
    data, socket = mount / "data", world.home / "s"
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]
    world.run(*install, "--skip-test-db")
    words = ["--no-defaults", f"--datadir={data}", f"--socket={socket}", "--skip-networking", f"--tmpdir={world.home}"]
    pid = world.start("/usr/sbin/mariadbd", *words, f"--pid-file={world.home / 'pid'}", *settings)
    client = ["mariadb", "--no-defaults", "-uroot", f"--socket={socket}"]
    world.wait(*client, "-e", "select 1")
    world.run(*client, "-e", "create database sbtest")
    sysbench = ["sysbench", f"--mysql-socket={socket}", "--mysql-user=root", f"--table-size={rows}", "--time=600"]
    world.run(*sysbench, "oltp_point_select", "prepare")
    return pid, sysbench


def start_redis(world: World, mount: Path, *settings: str) -> tuple[int, list[str]]:
    """Start a Redis; return its process, and the words of redis-benchmark."""
    socket = str(world.home / "s")
    pid = world.start(
        "redis-server", "--port", "0", "--unixsocket", socket, "--dir", str(mount), "--save", "", *settings
    )
    world.wait("redis-cli", "-s", socket, "ping")
    return pid, ["redis-benchmark", "-q", "-s", socket, "-n", "100000000"]
