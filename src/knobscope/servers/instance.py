"""One data directory of a DBMS with its private places, and the commands of its spec filled in for it."""

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

from knobscope.errors import UserError
from knobscope.servers.user import find_service_user
from knobscope.specs import Dbms, Moment, Program, Value, Writing, find_paths, find_program

__all__ = ["Configuration", "Instance", "fill_program", "open_instance"]

#: Knob -> value, canonical.
Configuration = Mapping[str, Value]

_PREFIX = "knobscope-"
_PORTS = ("port", "port2", "port3")


@dataclass(frozen=True)
class Instance:
    """A data directory and what its server and clients need to meet: ports, sockets, password."""

    dbms: Dbms
    data: Path
    runtime: Path  # private directory for sockets, password file, client files
    ports: tuple[int, ...]  # one for each of _PORTS
    password: str
    user: str | None  # whom servers run as, when we are root

    @property
    def port(self) -> int:
        """The port that clients use."""
        return self.ports[0]

    @property
    def config(self) -> Path:
        """Directory of the files that the server reads."""
        return self.runtime / "c"

    @cached_property
    def places(self) -> dict[str, str | SimpleNamespace]:
        """What the placeholders of the spec stand for."""
        return {
            "data": str(self.data),
            **{name: str(port) for name, port in zip(_PORTS, self.ports, strict=True)},
            "socket": str(self.runtime / "s"),
            "config": str(self.config),
            "password": self.password,
            "password_file": str(self.runtime / "s" / "password"),
            "path": find_paths(self.dbms.paths),
        }

    @property
    def environment(self) -> dict[str, str]:
        """Environment of all commands: ours, and what the spec adds."""
        return {**os.environ, **{name: self.fill(text) for name, text in self.dbms.environment.items()}}

    def fill(self, text: str) -> str:
        """Return a text of the spec with its placeholders filled."""
        return text.format(**self.places)

    def fill_command(self, command: list[str], configuration: Configuration, moment: Moment) -> list[str]:
        """Return a command of the spec ready to run: program found, placeholders filled, knobs in their place."""
        filled = [fill_program(self.dbms.programs[command[0]])]
        for part in command[1:]:
            filled += self.knob_arguments(configuration, moment) if part == "{knobs}" else [self.fill(part)]
        return filled

    def knob_arguments(self, configuration: Configuration, moment: Moment) -> list[str]:
        """Return the arguments that hand over the knobs of a configuration."""
        arguments: list[str] = []
        for name, value, writing in self.knobs_at(configuration, moment):
            if writing.to_command:
                parts = writing.argv if writing.argv is not None else writing.of_value(value)
                arguments += [self.fill_knob(part, name, value) for part in parts or []]
        return arguments

    def session_statements(self, configuration: Configuration, moment: Moment) -> list[str]:
        """Return the statements that set knobs on every connection."""
        return [
            self.fill_knob(writing.sql, name, value)
            for name, value, writing in self.knobs_at(configuration, moment)
            if writing.sql is not None
        ]

    def connection_properties(self) -> dict[str, str]:
        """Return the properties of the client binding, filled in."""
        connection = self.dbms.connection
        return {key: self.fill(text) for key, text in connection.properties.items()} if connection else {}

    def knob_properties(self, configuration: Configuration, moment: Moment) -> dict[str, str]:
        """Return the properties of the client binding that hand over knobs."""
        return {
            self.fill_knob(writing.client, name, value): self.fill_knob(writing.value, name, value)
            for name, value, writing in self.knobs_at(configuration, moment)
            if writing.client is not None
        }

    def knobs_at(self, configuration: Configuration, moment: Moment) -> Iterator[tuple[str, Value, Writing]]:
        """Yield the knobs that are handed over at this moment, with how they are written."""
        for name, value in configuration.items():
            writing = self.dbms.writing_of(name)
            assert writing is not None, name  # noqa: S101 - the checks of the spec saw to it
            if moment in writing.moments(self.dbms.knobs[name].apply):
                yield name, value, writing

    def fill_knob(self, template: str, name: str, value: Value) -> str:
        """Return a text under `writing` filled for a knob and its value."""
        knob = self.dbms.knobs[name]
        written = self.dbms.write(name, value)
        return template.format(**self.places, knob=knob.alias or name, value=written, unit=knob.unit or "")


def fill_program(wanted: Program) -> str:
    """Return the path of a program; raises UserError with the command that installs it when there is none."""
    program = find_program(wanted)
    if program is None:
        raise UserError(f"no program at {', '.join(wanted.find)}; install it: {wanted.remedy}")
    return str(program)


@contextmanager
def open_instance(dbms: Dbms, data: Path, password: str | None = None) -> Iterator[Instance]:
    """Yield an instance on a data directory; its private directory is removed at the end."""
    remove_stale_directories()
    runtime = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    user = find_service_user() if dbms.lifecycle is not None else None
    instance = Instance(dbms, data, runtime, find_free_ports(), password or secrets.token_hex(16), user)
    try:
        _make_private_directories(instance)
        yield instance
    finally:
        shutil.rmtree(runtime, ignore_errors=False)


def _make_private_directories(instance: Instance) -> None:
    """Make the directories that client and server share; as root they belong to the server's user."""
    sockets = instance.runtime / "s"
    for directory in (sockets, instance.config):
        directory.mkdir(mode=0o700)
    secret = sockets / "password"
    secret.touch(mode=0o600)
    secret.write_text(instance.password + "\n")
    if instance.user is not None:
        instance.runtime.chmod(0o711)
        for path in (sockets, secret, instance.config):
            shutil.chown(path, instance.user, instance.user)


def find_free_ports() -> tuple[int, ...]:
    """Return ports on 127.0.0.1 that nobody listens on at this moment, all different."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in _PORTS]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return tuple(int(probe.getsockname()[1]) for probe in probes)


def remove_stale_directories() -> None:
    """Remove private directories of processes that were killed before they could."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}[0-9]*-*"):
        owner = path.name.removeprefix(_PREFIX).split("-")[0]
        with suppress(FileNotFoundError):  # its owner, or somebody else who looks, removes it at this moment
            if path.stat().st_uid == os.geteuid() and not Path("/proc", owner).exists():
                shutil.rmtree(path)
