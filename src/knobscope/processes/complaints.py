"""What a program complained of first, in its own words."""

import re

#: Words of a line that says what went wrong, in the logs of all DBMSs and generators that have specs.
_COMPLAINT = re.compile(
    r"\b(errors?|fatal|panic|\w*exception|aborted|cannot|can't|could not|failed|refused|denied|invalid|unknown"
    r"|unsupported|unrecogni[sz]ed|not defined|not support\w*|not permitted|no such"
    r"|no space left|out of memory|i/o error|bad file format|corrupt\w*)\b|^[\w.]*Error(?::|$)",
    re.IGNORECASE,
)
#: How logs of MariaDB and MySQL, and of PostgreSQL, mark a line that need not be why something failed.
_MILD = re.compile(r"\[(warning|note|system)\]|\bWARNING:", re.IGNORECASE)
#: A count of none, as sysbench and a generator of one's own print it in every run, and the name of such a column.
_NONE = re.compile(r"\berrors?\"?\s*[:=]\s*0\b|(?:^|,)errors(?=,|$)", re.IGNORECASE)
#: Frames of a Python program, whose source may name any exception, down to the line that says which one it was; and
#: what the interpreter ignored.
_FRAMES = r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*"
_PYTHON = re.compile(rf"^(?:Exception ignored in: .*\n{_FRAMES}.*|(?:Exception in thread .*:\n)?{_FRAMES})", re.M)
#: How the load client begins a line about an operation that failed.
_OPERATION = "failed "
#: What YCSB writes in every run, MariaDB in a network of its own, and PostgreSQL where it is asked too early whether it
#: is ready.
_HARMLESS = (
    "DBWrapper: report latency for each error",
    "the database system is starting up",
    "the database system is not yet accepting connections",
    "failed to retrieve the MAC address",
)
_LONGEST = 300


def find_complaint(text: str) -> str | None:
    """Return the first line of a log that says that something went wrong, None when there is none.

    Lines of the load client about single operations come first, warnings last.
    """
    lines = [line.strip() for line in _PYTHON.sub("", text).splitlines()]
    operations = [line.removeprefix(_OPERATION) for line in lines if line.startswith(_OPERATION)]
    told = [line for line in lines if not any(harmless in line for harmless in _HARMLESS)]
    complaints = [line for line in told if _COMPLAINT.search(_NONE.sub("", line))]
    complaints.sort(key=lambda line: _MILD.search(line) is not None)
    first = next(iter([*operations, *complaints]), None)
    return first if first is None or len(first) <= _LONGEST else f"{first[:_LONGEST]} ..."
