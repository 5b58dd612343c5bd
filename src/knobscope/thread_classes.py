"""What the threads of a DBMS are for; apart from the models of specs, which take long to import."""

import re
from collections.abc import Mapping

#: The class of threads that serve clients: an operation waits for what these wait for.
SESSION = "session"


def class_of_thread(patterns: Mapping[str, str], name: str, title: str, *, serves: bool) -> str:
    """Return the class of a thread by its name and the title of its process, in which patterns are searched.

    The first pattern that is found counts, else whether it `serves` clients, else its name without its number.
    """
    for thread_class, pattern in patterns.items():
        if re.search(pattern, name) or re.search(pattern, title):
            return thread_class
    if serves:
        return SESSION
    printable = re.sub(r"[^ -~]", "", name)
    return re.sub(r"(?<![A-Za-z0-9])\d+|\d+$", "", printable).strip(" -_/:#.[]") or "(no name)"
