"""One data directory of a DBMS with its own directories and ports, and the commands of its spec filled in."""

import os
import re
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Literal
from urllib.parse import quote

from knobscope.errors import UserError
from knobscope.processes import (
    Sandbox,
    find_service_user,
    hold_directory,
    make_own_directory,
    make_shared_directory,
    open_network,
    open_sandbox,
    remove_if_abandoned,
    remove_shared,
    share_directory,
    supervise,
    write_shared,
)
from knobscope.servers.parts import PARTS, PartHome, attach_statements
from knobscope.specs import (
    Dbms,
    Moment,
    Program,
    Value,
    Writing,
    clients_directory,
    find_path,
    find_paths,
    find_program,
    fleet_directory,
    installed_with,
)
from knobscope.specs.models.template import URL

#: Knob -> value, canonical.
Configuration = Mapping[str, Value]

_PREFIX = "knobscope-run-"
#: Directories below which studies keep their data.
_OF_STUDIES = {".knobscope", ".knobscope-devices"}
_PORTS = ("port", "port2", "port3")
#: Link to a data directory whose path not every DBMS would understand.
_ALIAS = "d"
#: Signs that no shell script, URL, pattern or configuration file reads as something else.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+-]+")


class _Path(str):
    """A path that a template may take as a part of a URL: {socket:url}."""

    __slots__ = ()

    def __format__(self, form: str) -> str:
        """Return it as it is, or percent-encoded."""
        return quote(self, safe="") if form == URL else super().__format__(form)


@dataclass(frozen=True)
class Instance:
    """A data directory and what its server and clients need to meet: ports, sockets, password."""

    dbms: Dbms
    data: Path
    runtime: Path  # private directory for sockets, password file, client files; only we write to it
    ports: tuple[int, ...]  # one for each of _PORTS
    password: str
    user: str | None  # whom all commands run as, when we are root
    network: int | None = None  # descriptor of the network namespace in which they meet; None: the machine's own
    sandbox: Sandbox | None = None  # the other namespaces in which they meet; None: the machine's own
    homes: Mapping[str, PartHome] = field(
        default_factory=dict
    )  # by knob: parts that lie next to the data, or elsewhere

    @property
    def port(self) -> int:
        """The port that clients use."""
        return self.ports[0]

    @property
    def config(self) -> Path:
        """Directory of the files that the server reads."""
        return self.runtime / "c"

    @cached_property
    def placeholders(self) -> dict[str, str | SimpleNamespace]:
        """What the placeholders of the spec stand for."""
        return {
            "data": _Path(self.runtime / _ALIAS if needs_alias(self.data) else self.data),
            **{name: str(port) for name, port in zip(_PORTS, self.ports, strict=True)},
            "socket": _Path(self.runtime / "s"),
            "config": _Path(self.config),
            "password": self.password,
            "password_file": _Path(self.config / "password"),
            "path": find_paths(self.dbms.paths),
        }

    @property
    def environment(self) -> dict[str, str]:
        """Environment of all commands: ours, in a locale that knows every path, and what the spec adds."""
        return {**os.environ, "LC_ALL": "C.UTF-8", **self._added_variables()}

    def environment_with(self, configuration: Configuration, moment: Moment) -> dict[str, str]:
        """Return the environment of the commands that also get the knobs of a configuration."""
        return self.environment | self._add_knobs("variable", self._added_variables(), configuration, moment)

    def _added_variables(self) -> dict[str, str]:
        return {name: self.fill(text) for name, text in self.dbms.environment.items()}

    def start(
        self,
        command: list[str],
        /,
        *,
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
        cwd: str | Path | None = "/",
        env: dict[str, str] | None = None,
        end_signal: str | None = None,
        reach: Sequence[Path] = (),
    ) -> "subprocess.Popen[bytes]":
        """Start a command of the spec, or a client, under a keeper: never as root, and in the instance's network.

        It gets at the data, and at the directories of `reach`, wherever they lie.
        """
        return supervise(
            command,
            user=self.user,
            network=self.network,
            sandbox=self.sandbox,
            reach=[*self._reach(command[0]), *reach],
            end_signal=end_signal,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env=env or self.environment,
            keep=[*self.dbms.environment, *filter(None, map(self.dbms.variable_of, self.dbms.knobs))],
        )

    def _reach(self, program: str) -> list[Path]:
        """Return what a command has to get at, though it may lie below a directory that only root may enter."""
        homes = [home.directory for home in self.homes.values()]
        named = [path for wanted in self.dbms.paths.values() if (path := find_path(wanted)) is not None]
        for path in (Path(program), *named):
            if _OF_STUDIES & set(path.resolve().parts):
                raise UserError(f"{self.dbms.name}: {path} belongs to the data of studies, which no spec may name")
        own = [self.data, *homes, self.runtime]
        return [*own, clients_directory(), fleet_directory(), Path(program), *installed_with(Path(program)), *named]

    def fill(self, text: str) -> str:
        """Return a text of the spec with its placeholders filled."""
        return text.format(**self.placeholders)

    def fill_command(self, command: list[str], configuration: Configuration, moment: Moment) -> list[str]:
        """Return a command of the spec ready to run: program found, placeholders filled, knobs inserted."""
        filled = [fill_program(self.dbms.programs[command[0]])]
        for part in command[1:]:
            filled += self.knob_arguments(configuration, moment) if part == "{knobs}" else [self.fill(part)]
        return filled

    def knob_arguments(self, configuration: Configuration, moment: Moment) -> list[str]:
        """Return the arguments that pass the knobs of a configuration."""
        arguments: list[str] = []
        for name, value, writing in self.knobs_at(configuration, moment):
            if writing.to_command:
                parts = writing.argv if writing.argv is not None else writing.of_value(value)
                arguments += [self.fill_knob(part, name, value) for part in parts or []]
        return arguments

    def session_statements(self, configuration: Configuration, moment: Moment) -> list[str]:
        """Return the statements that open parts of the data on every connection, and those that set knobs for all."""
        is_start = moment == "start"
        opening = attach_statements(self.dbms, self.homes) if is_start else []
        of_parts = [part.knob for part in self.dbms.layout_parts.values() if part.knob is not None and is_start]
        return opening + [
            self.fill_knob(template, name, value)
            for name, value, writing in self.knobs_at(configuration, moment)
            if writing.sql is not None
            for template in (writing.sql, *of_parts)
        ]

    def connection_properties(self) -> dict[str, str]:
        """Return the properties of the client binding, filled in."""
        connection = self.dbms.connection
        return {key: self.fill(text) for key, text in connection.properties.items()} if connection else {}

    def knob_properties(self, configuration: Configuration, moment: Moment) -> dict[str, str]:
        """Return the properties of the client binding that pass knobs."""
        return self._add_knobs("client", self.connection_properties(), configuration, moment)

    def _add_knobs(
        self,
        kind: Literal["client", "variable"],
        usual: Mapping[str, str],
        configuration: Configuration,
        moment: Moment,
    ) -> dict[str, str]:
        """Return the properties, or variables, that pass knobs; several may add to one."""
        changed: dict[str, str] = {}
        for name, value, writing in self.knobs_at(configuration, moment):
            target = getattr(writing, kind)
            if target is not None:
                key = self.fill_knob(target, name, value)
                before = changed.get(key, usual.get(key, ""))
                changed[key] = self.fill_knob(writing.value, name, value, before)
        return changed

    def knobs_at(self, configuration: Configuration, moment: Moment) -> Iterator[tuple[str, Value, Writing]]:
        """Yield the knobs that are set at this moment, with how they are written, in the order of the spec.

        A statement may end what another one needs: SQLite takes no page size after `auto_vacuum`. Nothing is said to
        the server about a part that lies with the data, or that a link leads to.
        """
        order = {name: number for number, name in enumerate(self.dbms.knobs)}
        for name, value in sorted(configuration.items(), key=lambda item: order.get(item[0], len(order))):
            writing = self.dbms.writing_of(name)
            if self.dbms.part_of(name) is not None and (writing is None or name not in self.homes):
                continue
            assert writing is not None, name  # noqa: S101 - the checks of the spec saw to it
            if moment in writing.moments(self.dbms.knobs[name].apply):
                yield name, value, writing

    def fill_knob(self, template: str, name: str, value: Value, before: str = "") -> str:
        """Return a text under `writing` filled for a knob and its value; `before`: what its property says so far."""
        knob = self.dbms.knobs[name]
        home = self.homes.get(name)
        written = self.dbms.write(value) if home is None else str(home.path)
        names = {"knob": knob.alias or name, "value": written, "unit": knob.unit or "", "property": before}
        return template.format(**self.placeholders, **names)


def fill_program(wanted: Program) -> str:
    """Return the path of a program; raises UserError with the command that installs it when there is none."""
    program = find_program(wanted)
    if program is None:
        raise UserError(f"no program at {wanted.places}; install it: {wanted.remedy}")
    return str(program)


@contextmanager
def open_instance(
    dbms: Dbms, data: Path, password: str | None = None, homes: Mapping[str, PartHome] | None = None
) -> Iterator[Instance]:
    """Yield an instance on a data directory; its private directory is removed at the end."""
    remove_stale_directories()
    user = find_service_user()
    runtime, holding = _make_runtime()
    homes = homes or {}
    reach = [data, runtime, *(home.directory for home in homes.values())]
    stack = ExitStack()
    try:
        network = stack.enter_context(open_network())
        sandbox = stack.enter_context(open_sandbox(reach))
        secret = password or secrets.token_hex(16)
        share_directory(runtime, user)
        make_shared_directory(runtime / PARTS, user)
        homes = {knob: _with_alias(home, runtime / PARTS) for knob, home in homes.items()}
        instance = Instance(dbms, data, runtime, find_free_ports(), secret, user, network, sandbox, homes)
        if needs_alias(data):
            (runtime / _ALIAS).symlink_to(data.absolute())
        make_own_directory(runtime / "s", user)
        make_shared_directory(instance.config, user)
        write_shared(instance.config / "password", instance.password + "\n", user)
        yield instance
    finally:
        try:
            stack.close()
        finally:
            remove_shared(runtime)
            os.close(holding)


def _with_alias(home: PartHome, folder: Path) -> PartHome:
    """Return a home with a link in a folder to it, by the name of its directory, where it needs one."""
    if not needs_alias(home.directory):
        return home
    alias = folder / home.directory.name
    alias.symlink_to(home.directory.absolute())
    return replace(home, alias=alias)


def find_free_ports() -> tuple[int, ...]:
    """Return ports on 127.0.0.1 that nobody listens on at this moment, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in _PORTS]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return tuple(int(sock.getsockname()[1]) for sock in sockets)


def _temporary_directory() -> Path:
    usual = Path(tempfile.gettempdir())
    return Path("/tmp") if needs_alias(usual) else usual  # noqa: S108 - mkdtemp makes what is private in it


def remove_stale_directories() -> None:
    """Remove private directories of processes that were killed before they could."""
    for path in _temporary_directory().glob(f"{_PREFIX}*"):
        remove_if_abandoned(path, remove_shared)


def needs_alias(path: Path) -> bool:
    """Whether a path has blanks, quotes, umlauts or the like in it."""
    return not _PLAIN_PATH.fullmatch(str(path.absolute()))


def _make_runtime() -> tuple[Path, int]:
    """Make a private directory; return it with the descriptor that holds it."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_temporary_directory()))
        try:
            return path, hold_directory(path)
        except FileNotFoundError:
            continue
