"""Disturbances: what ends a run from outside and so says nothing about its knobs.

An operator or the system's OOM killer ends a server or a load client, the disk is full, the device answers with errors,
somebody else has the port. Such a run is measured again; see `Measurer` for what follows when that does not help.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from knobscope.generators import GeneratorError
from knobscope.processes import find_full, find_sent_signal, find_system_error
from knobscope.servers import Instance, MemoryLimit, Server, ServerFailedError
from knobscope.stages.measure.complaints import read_logs, status_of
from knobscope.stages.measure.validity import RunFailedError

#: A server that was killed is known to be gone a moment after its clients have lost it.
_END_S = 0.5


@contextmanager
def telling_of_limit(limit: MemoryLimit) -> Iterator[None]:
    """Say of a failure that it is the limit's doing, when a process was killed for memory meanwhile.

    A run that went on without that process fails: what it was there for, a dump for instance, was not done.
    """
    words = f"a process was killed for memory: the workload allows {limit.mib} MiB (memory_mib)"
    try:
        yield
    except (RunFailedError, ServerFailedError, GeneratorError) as error:
        if limit.has_killed:
            error.args = (f"{error}; {words}", *error.args[1:])
        raise
    if limit.has_killed:
        raise RunFailedError("failed_run", words)


@contextmanager
def notice_disturbance(instance: Instance, server: Server | None, limit: MemoryLimit) -> Iterator[None]:
    """Give a failure a `disturbance` when something outside of the DBMS seems to be its cause.

    To be entered when the server has been started, and left before it is ended. A process that was killed because of
    the workload's memory limit was not disturbed: limit and configuration belong together.
    """
    try:
        yield
    except (RunFailedError, ServerFailedError, GeneratorError) as error:
        if server is not None:
            server.quote()  # for whoever reads its log: its clients may have noticed first
        sign = None if limit.has_killed else _find_sign(error, instance, server)
        if sign is None:
            raise
        raise RunFailedError(status_of(error), str(error), error.log_tail, disturbance=sign) from error


def _find_sign(
    error: RunFailedError | ServerFailedError | GeneratorError, instance: Instance, server: Server | None
) -> str | None:
    if isinstance(error, GeneratorError) and error.kind == "lost":
        return str(error)
    client_code = error.exit_code if isinstance(error, GeneratorError) else None
    ends = {"the load client": client_code, "the server": None if server is None else _wait_for_end(server)}
    for who, code in ends.items():
        if (sent := find_sent_signal(code)) is not None:
            return f"{who} was ended by {sent}, which knobscope did not send"
    logs = [str(error), error.log_tail, read_logs(instance, "client"), read_logs(instance, "server")]
    if (system_error := find_system_error("\n".join(logs))) is not None:
        return f"a log says '{system_error}'"
    directories = {"the data": [instance.data, *(home.directory for home in instance.homes.values())]}
    directories["temporary files (TMPDIR)"] = [instance.runtime]
    return find_full(directories)


def _wait_for_end(server: Server) -> int | None:
    """Return the exit code of a server that has ended, None while it lives."""
    try:
        return server.process.wait(_END_S)
    except subprocess.TimeoutExpired:
        return None
