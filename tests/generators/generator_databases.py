"""Sessions on SQLite files, and a PostgreSQL server of our own."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from waiting import PATIENCE_S

from knobscope.generators import Session
from knobscope.processes import supervise
from knobscope.servers.instance import find_free_ports

RECORDS = 500
COLUMNS = ", ".join(f"field{number} text" for number in range(10))
POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=Path())

SessionFactory = Callable[..., Session]


def sqlite_session(database: Path, directory: Path, **changes: object) -> Session:
    standard: dict[str, object] = {
        "properties": {"recordcount": str(RECORDS), "readproportion": "0.5", "updateproportion": "0.5"},
        "binding": "knobscope.JdbcBinding",
        "connection": {"jdbc.url": f"jdbc:sqlite:{database}"},
        "init": ["pragma busy_timeout=5000", "pragma synchronous=off"],
        "readback": None,
        "directory": directory,
        "threads": 2,
    }
    return Session(**(standard | changes))  # type: ignore[arg-type]


class Postgres:
    """A server on 127.0.0.1 that belongs to an ordinary user."""

    def __init__(self, home: Path, user: str | None) -> None:
        self.user, self.data, self.log = user, home / "data", home / "log"
        self.sockets = home / "s"
        self.server: subprocess.Popen[bytes] | None = None
        self.port = find_free_ports()[0]
        made_as = ["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        assert self._run(["initdb", "-D", str(self.data), *made_as]).wait(PATIENCE_S) == 0, self.log.read_text()

    def _run(self, command: list[str]) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return supervise([str(POSTGRES / command[0]), *command[1:]], stdout=log, stderr=log, user=self.user)

    def start(self) -> None:
        where = ["-p", str(self.port), "-k", str(self.sockets), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        self.server = self._run(["postgres", "-D", str(self.data), *where])
        deadline = time.monotonic() + PATIENCE_S
        while self._run(["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).wait() != 0:
            assert self.server.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop at once, without a checkpoint."""
        if self.server is not None:
            self.server.send_signal(signal.SIGQUIT)
            self.server.wait(PATIENCE_S)

    def ask(self, query: str) -> str:
        """Return what a query answers, as text."""
        command = [POSTGRES / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-Atc", query]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def session(self, directory: Path, **changes: object) -> Session:
        standard: dict[str, object] = {
            "connection": {
                "jdbc.url": f"jdbc:postgresql://127.0.0.1:{self.port}/postgres",
                "jdbc.user": "postgres",
                "jdbc.password": "not needed",
            },
            "init": ["set synchronous_commit=off"],
            "readback": {"query": "select name, setting from pg_settings"},
        }
        return sqlite_session(directory, directory, **(standard | changes))
