"""What the threads of a DBMS are for; apart from the models of specs, which take long to import."""

import re
from collections.abc import Mapping

from knobscope.patterns import find_first

#: The class of threads that serve clients: an operation waits for what these wait for.
SESSION = "session"
#: The class of threads that clients wake, and that pass operations on to others: their time is no budget.
LISTENER = "listener"
#: The class of the processes that keep a server or client in its namespaces; the load client's own begin so, too.
OURS = "knobscope"


def class_of_thread(patterns: Mapping[str, str], name: str, title: str, *, serves: bool) -> str:
    """Return the class of a thread by its name and the title of its process, in which patterns are searched.

    The first pattern that is found counts, else whether it `serves` clients, else its name without its number.
    """
    if (first := find_first(tuple(patterns.values()), name, title)) is not None:
        return list(patterns)[first]
    if serves:
        return SESSION
    printable = re.sub(r"[^ -~]", "", name)
    return re.sub(r"(?<![A-Za-z0-9])\d+|\d+$", "", printable).strip(" -_/:#.[]") or "(no name)"
