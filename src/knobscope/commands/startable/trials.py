"""Starts a server with one knob changed, on a copy of an empty data directory, and asks what is in force."""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from knobscope.commands.startable.bisecting import Outcome
from knobscope.errors import UserError
from knobscope.generators import GeneratorError, read_back
from knobscope.processes import open_temporary
from knobscope.servers import (
    Instance,
    Server,
    ServerFailedError,
    ask_instance,
    compare_effective,
    copy_data,
    initialise_data,
    make_data_directory,
    open_instance,
    read_version,
)
from knobscope.specs import Dbms, Lifecycle, Value, Workload
from knobscope.stages.prepare import load_session

_NO_LOAD = Workload.model_validate({"name": "nothing", "generator": "ycsb", "class": "read", "records": 1})
#: Words of the line of a log from which on it says why; the last lines count when there is none.
_TELLING = ("error", "fatal", "invalid", "cannot")
_LINES, _WORDS = 4, 400
#: Day and time at the start of a line, which differ at each start.
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d[T ][\d:.]+Z?( UTC)? *")


@dataclass
class Trials:
    """Starts of one DBMS, which all begin from the same empty data directory."""

    dbms: Dbms
    life: Lifecycle
    folder: Path
    password: str
    version: str
    threads: int = 1  # connections that ask for the values in force
    starts: int = field(default=0)

    def attempt(self, configuration: Mapping[str, Value]) -> Outcome:
        """Start the server with a configuration, connect the load client, and ask for the values in force."""
        try:
            with self._started(configuration) as instance:
                effective = self._ask(instance, configuration) | ask_instance(instance)
        except (ServerFailedError, GeneratorError) as error:
            return Outcome(_telling_words(error))
        rows, differing = compare_effective(self.dbms, configuration, effective)
        return Outcome(changed={row["knob"]: str(row["effective"]) for row in rows if row["knob"] in differing})

    def refuse(self, name: str, value: Value) -> str | None:
        """Return what the server says when it does not start with this value, None when it starts."""
        try:
            with self._started({name: value}):
                return None
        except ServerFailedError as error:
            return _telling_words(error)

    def read_differing(self, name: str, value: Value) -> str | None:
        """Return the value in force when it is another one than was requested; None when it is the same.

        UserError: the server started with this value before and does not do so now.
        """
        configuration = {name: self.dbms.knobs[name].canonical(value)}
        try:
            with self._started(configuration) as instance:
                effective = self._ask(instance, configuration) | ask_instance(instance)
        except (ServerFailedError, GeneratorError) as error:
            raise UserError(
                f"{self.dbms.name} with {name}={value} did not answer: {error}\n{error.log_tail}"
            ) from error
        rows, differing = compare_effective(self.dbms, configuration, effective)
        return str(rows[0]["effective"]) if differing else None

    def _ask(self, instance: Instance, configuration: Mapping[str, Value]) -> dict[str, str]:
        if self.dbms.connection is None:
            return {}
        statements = instance.session_statements(configuration, "start")
        session = load_session(instance, _NO_LOAD, statements, list(configuration), self.threads)
        session = session.with_connection(instance.knob_properties(configuration, "start"))
        return dict(read_back(session, instance.start).effective)

    @contextmanager
    def _started(self, configuration: Mapping[str, Value]) -> Iterator[Instance]:
        """Yield an instance whose server answers; raises ServerFailedError when it never does."""
        self.starts += 1
        data, log = self.folder / "data", self.folder / f"{self.starts}.log"
        at_init = {name: value for name, value in configuration.items() if self.dbms.knobs[name].apply == "load"}
        try:
            with open_instance(self.dbms, data, self.password) as instance:
                if at_init:
                    _make_data(instance, self.life, at_init, log)
                else:
                    copy_data(self.folder / "empty", data)
                with Server(instance, self.life, configuration, log) as server:
                    server.wait_ready()
                    yield instance
        finally:
            shutil.rmtree(data, ignore_errors=True)
            log.unlink(missing_ok=True)


@contextmanager
def open_trials(dbms: Dbms, threads: int = 1) -> Iterator[Trials]:
    """Yield trials of a DBMS that is known to start with its defaults; nothing is left behind.

    With `threads` the load client opens as many connections: a server may start and serve one of them only.
    UserError: it has no server, a program is missing, or it does not start.
    """
    if dbms.lifecycle is None:
        raise UserError(f"{dbms.name} lives in its client; expected a DBMS with a server, which may refuse to start")
    with open_temporary("knobscope-trials-", Path("/var/tmp")) as folder:  # noqa: S108 - what is private is made in it
        folder.chmod(0o711)  # the server's user has to pass
        try:
            with open_instance(dbms, folder / "empty") as instance:
                _make_data(instance, dbms.lifecycle, {}, folder / "init.log")
                version = read_version(instance) or "unknown"
                yield Trials(dbms, dbms.lifecycle, folder, instance.password, version, threads)
        except ServerFailedError as error:
            raise UserError(f"{dbms.name} does not start with its defaults: {error}\n{error.log_tail}") from error


def _make_data(instance: Instance, life: Lifecycle, at_init: Mapping[str, Value], log: Path) -> None:
    """Make an empty data directory of which a server started once, in good order."""
    make_data_directory(instance.data)
    initialise_data(instance, at_init, log)
    with Server(instance, life, at_init, log) as server:
        server.wait_ready()
        server.set_up()
        server.stop()


def _telling_words(error: ServerFailedError | GeneratorError) -> str:
    stripped = (_STAMP.sub("", line.strip()) for line in error.log_tail.splitlines())
    lines = [line for line in stripped if line]
    first = next((at for at, line in enumerate(lines) if any(word in line.lower() for word in _TELLING)), -_LINES)
    return " | ".join(lines[first:][:_LINES])[:_WORDS] or str(error)
