"""A run of YCSB's client on another machine: the same steps and the same result as on this one."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from knobscope.generators.clients import client_files, java_options
from knobscope.generators.events import Client
from knobscope.generators.failure import GeneratorError
from knobscope.generators.session import PROPERTIES, Session
from knobscope.generators.ycsb import YcsbRun
from knobscope.processes import make_shared_directory
from knobscope.remote import ClockOffset, RemoteError, RemoteMachine

#: What ssh ends with when it has lost the other machine; the client never does.
_SSH_FAILED = 255


@contextmanager
def telling_of_loss() -> Iterator[None]:
    """Turn what a machine does not do any more into a GeneratorError."""
    try:
        yield
    except RemoteError as error:
        raise GeneratorError("lost", str(error)) from error


class RemoteYcsbRun(YcsbRun):
    """A run whose client works on another machine; times are those of our clock, from which that one is `offset`.

    `window` as of YcsbRun. What the session says of environment and user is for this machine. Errors of the machine are
    GeneratorErrors.
    """

    def __init__(self, session: Session, machine: RemoteMachine, offset: ClockOffset, **window: Any) -> None:
        self._machine, self._offset = machine, offset
        super().__init__(session, **window)

    def wait_measuring(self, timeout: float) -> int:
        """Wait for the end of the warm-up; returns its time by our clock in nanoseconds since 1970."""
        return self._here(super().wait_measuring(timeout))

    def wait_measured(self, timeout: float) -> int:
        """Wait for the end of the measured window; returns its time by our clock in nanoseconds since 1970."""
        return self._here(super().wait_measured(timeout))

    def _here(self, at_ns: int) -> int:
        return at_ns - round(self._offset.offset_ns)

    def _open(self, own: Mapping[str, str]) -> Client:
        session, machine = self._session, self._machine
        files, class_path = client_files(session.library, session.driver)
        make_shared_directory(session.directory, None)  # for the log alone
        with telling_of_loss():
            home = machine.provide(files)
            for name, text in session.texts(machine.private, own).items():
                machine.write(name, text)
            jars = ":".join(str(home / name) for name in class_path)
            properties = str(machine.private / PROPERTIES)
            java = ["java", *java_options(session.jvm), "-cp", jars]
            command = [*java, "site.ycsb.Client", "-t", "-P", properties]
            return Client(command, session.directory / "client.log", Path("/"), machine.start)

    def _wait_for(self, name: str, timeout: float) -> dict[str, Any]:
        try:
            return super()._wait_for(name, timeout)
        except GeneratorError as error:
            if error.exit_code != _SSH_FAILED:
                raise
            lost = f"the connection to {self._machine.name} was lost before '{name}'"
            raise GeneratorError("lost", lost, error.log_tail, error.exit_code) from error

    def _read(self, name: str) -> str:
        with telling_of_loss():
            return self._machine.read(f"out/{name}")
