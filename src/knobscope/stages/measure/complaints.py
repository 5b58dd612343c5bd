"""What server and load generator complained of first, in their own words, for the reason of a run that failed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from knobscope.generators import GeneratorError
from knobscope.processes import read_log
from knobscope.servers import Instance, ServerFailedError
from knobscope.stages.measure.validity import RunFailedError

#: Words of a line that says what went wrong, in the logs of all DBMSs and generators that have specs.
_COMPLAINT = re.compile(
    r"\b(errors?|fatal|panic|\w*exception|aborted|cannot|can't|could not|failed|refused|denied|invalid|unknown"
    r"|unsupported|unrecogni[sz]ed|not defined|not support\w*|not permitted|no such"
    r"|no space left|out of memory|i/o error|bad file format|corrupt\w*)\b",
    re.IGNORECASE,
)
#: How logs of MariaDB and MySQL, and of PostgreSQL, mark a line that need not be why something failed.
_MILD = re.compile(r"\[(warning|note|system)\]|\bWARNING:", re.IGNORECASE)
#: A count of none, as sysbench and a generator of one's own print it in every run, and the name of such a column.
_NONE = re.compile(r"\berrors?\"?\s*[:=]\s*0\b|(?:^|,)errors(?=,|$)", re.IGNORECASE)
#: How the load client begins a line about an operation that failed.
_OPERATION = "failed "
#: What YCSB writes in every run, and PostgreSQL where it is asked too early whether it is ready.
_HARMLESS = (
    "DBWrapper: report latency for each error",
    "the database system is starting up",
    "the database system is not yet accepting connections",
)
_LONGEST = 300


def find_complaint(text: str) -> str | None:
    """Return the first line of a log that says that something went wrong, None when there is none.

    Lines of the load client about single operations come first, warnings last.
    """
    lines = [line.strip() for line in text.splitlines()]
    operations = [line.removeprefix(_OPERATION) for line in lines if line.startswith(_OPERATION)]
    told = [line for line in lines if not any(harmless in line for harmless in _HARMLESS)]
    complaints = [line for line in told if _COMPLAINT.search(_NONE.sub("", line))]
    complaints.sort(key=lambda line: _MILD.search(line) is not None)
    first = next(iter([*operations, *complaints]), None)
    return first if first is None or len(first) <= _LONGEST else f"{first[:_LONGEST]} ..."


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
