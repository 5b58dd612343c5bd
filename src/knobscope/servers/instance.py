"""One data directory of a DBMS with its private places, and the commands of its spec filled in for it."""

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from knobscope.errors import UserError
from knobscope.servers.user import find_service_user
from knobscope.specs import Dbms, Value, find_program

__all__ = ["Configuration", "Instance", "open_instance"]

#: Knob -> value, canonical.
Configuration = Mapping[str, Value]

_PREFIX = "knobscope-"


@dataclass(frozen=True)
class Instance:
    """A data directory and what its server and clients need to meet: port, sockets, password."""

    dbms: Dbms
    data: Path
    runtime: Path  # private directory for sockets, password file, client files
    port: int
    password: str
    user: str | None  # whom servers run as, when we are root

    @property
    def places(self) -> dict[str, str]:
        """What the placeholders of the spec stand for."""
        return {
            "data": str(self.data),
            "port": str(self.port),
            "socket": str(self.runtime / "s"),
            "password": self.password,
            "password_file": str(self.runtime / "s" / "password"),
        }

    def fill_command(self, command: list[str], configuration: Configuration, *, load: bool) -> list[str]:
        """Return a command of the spec ready to run: program found, placeholders filled, knobs in their place."""
        program = find_program(self.dbms.programs[command[0]])
        if program is None:
            wanted = self.dbms.programs[command[0]]
            raise UserError(f"no program at {', '.join(wanted.find)}; install it: apt-get install {wanted.package}")
        filled = [str(program)]
        for part in command[1:]:
            if part == "{knobs}":
                filled += self._knob_arguments(configuration, load=load)
            else:
                filled.append(part.format(**self.places))
        return filled

    def _knob_arguments(self, configuration: Configuration, *, load: bool) -> list[str]:
        arguments: list[str] = []
        for name, value in self._knobs_of(configuration, load=load):
            writing = self.dbms.writing[self.dbms.knobs[name].apply]
            for part in writing.argv or []:
                arguments.append(self._fill_knob(part, name, value))
        return arguments

    def session_statements(self, configuration: Configuration, *, load: bool) -> list[str]:
        """Return the statements that set knobs on every connection."""
        return [
            self._fill_knob(writing.sql, name, value)
            for name, value in self._knobs_of(configuration, load=load)
            if (writing := self.dbms.writing[self.dbms.knobs[name].apply]).sql is not None
        ]

    def _knobs_of(self, configuration: Configuration, *, load: bool) -> Iterator[tuple[str, Value]]:
        for name, value in configuration.items():
            if (self.dbms.knobs[name].apply == "load") == load:
                yield name, value

    def _fill_knob(self, template: str, name: str, value: Value) -> str:
        written = self.dbms.knobs[name].alias or name
        return template.format(**self.places, knob=written, value=self.dbms.write(name, value))

    def connection_properties(self) -> dict[str, str]:
        """Return the properties of the client binding, filled in."""
        return {key: text.format(**self.places) for key, text in self.dbms.connection.properties.items()}


@contextmanager
def open_instance(dbms: Dbms, data: Path, password: str | None = None) -> Iterator[Instance]:
    """Yield an instance on a data directory; its private directory is removed at the end."""
    remove_stale_directories()
    runtime = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    user = find_service_user() if dbms.lifecycle is not None else None
    instance = Instance(dbms, data, runtime, find_free_port(), password or secrets.token_hex(16), user)
    try:
        _make_socket_directory(instance)
        yield instance
    finally:
        shutil.rmtree(runtime, ignore_errors=False)


def _make_socket_directory(instance: Instance) -> None:
    """Make the directory that client and server share; as root it belongs to the server's user."""
    directory = instance.runtime / "s"
    directory.mkdir(mode=0o700)
    secret = directory / "password"
    secret.touch(mode=0o600)
    secret.write_text(instance.password + "\n")
    if instance.user is not None:
        instance.runtime.chmod(0o711)
        for path in (directory, secret):
            shutil.chown(path, instance.user, instance.user)


def find_free_port() -> int:
    """Return a port on 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def remove_stale_directories() -> None:
    """Remove private directories of processes that were killed before they could."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}[0-9]*-*"):
        owner = path.name.removeprefix(_PREFIX).split("-")[0]
        if path.stat().st_uid == os.geteuid() and not Path("/proc", owner).exists():
            shutil.rmtree(path)
