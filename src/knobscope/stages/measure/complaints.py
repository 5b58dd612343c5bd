"""What server and load generator complained of first, in their own words, for the reason of a run that failed."""

from collections.abc import Iterator
from contextlib import contextmanager

from knobscope.generators import GeneratorError
from knobscope.processes import find_complaint, read_log
from knobscope.servers import Instance, ServerFailedError
from knobscope.stages.measure.validity import RunFailedError


@contextmanager
def tell_complaints(instance: Instance) -> Iterator[None]:
    """Turn a failure of server, generator or run into RunFailedError, with their first complaints in the reason."""
    try:
        yield
    except (RunFailedError, ServerFailedError, GeneratorError) as error:
        reason = str(error)
        disturbance = error.disturbance if isinstance(error, RunFailedError) else None
        logs = {"load client": read_logs(instance, "client"), "server": read_logs(instance, "server")}
        for who, text in logs.items() if disturbance is None else ():  # what the machine did, no server complains of
            reason = _add(reason, who, text)
        if reason == str(error):
            reason = _add(reason, "log", error.log_tail)
        raise RunFailedError(status_of(error), reason, error.log_tail, disturbance) from error


def _add(reason: str, who: str, text: str) -> str:
    complaint = find_complaint(text)
    return (
        reason if complaint is None or complaint in reason else f"{reason}; first complaint of the {who}: {complaint}"
    )


def read_logs(instance: Instance, name: str) -> str:
    """Return what `client` or `server` has written to its logs, without the middle of long ones."""
    paths = [instance.runtime / f"{name}.log", *sorted((instance.runtime / name).glob("*.log"))]
    return "\n".join(read_log(path) for path in paths if path.is_file())


def status_of(error: Exception) -> str:
    """Return the status of a run that ended with this error."""
    if isinstance(error, RunFailedError):
        return error.status
    if isinstance(error, GeneratorError):
        return {"timeout": "timeout", "refused": "rejected_value", "unreadable": "invalid"}.get(
            error.kind, "failed_run"
        )
    return "failed_start"
