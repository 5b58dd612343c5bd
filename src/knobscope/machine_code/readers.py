"""Which functions of a DBMS read which of its settings, and how many calls these are from a request to storage.

He et al. (PVLDB 16(7), 2023) follow a knob from the source code to the system calls of I/O. Machine code says the same
where there is no source: a setting has a variable, some functions refer to it, and these call others. Where the
variable is, the program tells in one of two ways. Most DBMSs keep a table of settings: a pointer to the name, and soon
after it one to the variable. Others make an object for each setting when they start, and hand name and variable to the
function that makes it. A setting that lives in a structure of each connection has no variable of its own, and is not
found.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from knobscope.machine_code.program import Function, Loaded, Program
from knobscope.specs import Dbms, find_program

#: Calls to the kernel that read, write, flush or allocate files. Missing are those by which sockets and messages are
#: read and written, too: `read` and `write`, at the offset that the kernel keeps, and the streams of the C library.
_REQUESTS = re.compile(
    r"(p(read|write)v?(64)?(v2)?|readv|writev|f(data)?sync|syncfs|sync_file_range|msync|readahead|copy_file_range|"
    r"(posix_)?f(advise|allocate)(64)?|ftruncate(64)?|io_(submit|getevents)|io_uring_\w+|aio_\w+)"
)
#: In more calls a function gets nearly everywhere.
MOST_CALLS = 5
#: How far behind the pointer to its name, in bytes and in pointers, the pointer to a setting's variable may be.
_FURTHEST, _MOST_POINTERS = 200, 15
#: What is passed for more settings than this is no variable of any of them.
_MOST_SETTINGS = 3
#: A function that refers to more settings than this, and more than this share, reads the configuration.
_MANY_SETTINGS, _MANY_SHARE = 12, 0.05
#: A function that more than this number, and share, of all functions call is a service: memory, messages, errors. That
#: it calls something says nothing of those that call it.
_SERVICE_CALLERS, _SERVICE_SHARE = 50, 0.01
#: Functions so many bytes apart are e times less likely to belong together: object files lie one after the other.
_TOGETHER = 8000.0
#: What the neighbours say counts half when they weigh as much as this one at no distance would.
_HALF = 0.5
_THIS = "rdi"  # the register of a method's object


@dataclass(frozen=True)
class Reader:
    """A function that refers to a setting's variable."""

    address: int
    name: str
    #: Names of the functions from here to a request to storage, this one and the request included; empty where it is
    #: more than five calls away.
    path: tuple[str, ...]

    @property
    def calls(self) -> int | None:
        """How many calls it is from here to a request to storage."""
        return len(self.path) - 1 if self.path else None


@dataclass(frozen=True)
class Code:
    """What the code of a DBMS says of its settings: the readers of those whose variable was found.

    `unread` are settings of a table whose variable no function refers to: what they would steer is no part of the
    program (Debian's Redis has no active defragmentation).
    """

    readers: Mapping[str, tuple[Reader, ...]]
    unread: frozenset[str] = frozenset()

    def nearest(self, setting: str) -> Reader | None:
        """Return the reader with the fewest calls to a request to storage, if any leads there."""
        leading = [reader for reader in self.readers.get(setting, ()) if reader.path]
        return min(leading, key=lambda reader: (len(reader.path), reader.address), default=None)


def find_server(dbms: Dbms) -> Path | None:
    """Return the server's program, if it is installed; a DBMS that lives in its client has none."""
    return None if dbms.lifecycle is None else find_program(dbms.programs[str(dbms.lifecycle.start[0])])


def read_code(program: Program, settings: Collection[str]) -> Code:
    """Find who reads each setting, and how these get to a request to storage."""
    listed, listed_in_part = _find_in_tables(program, settings)
    references: dict[int, set[int]] = defaultdict(set)  # address of data -> functions that refer to it
    calls: dict[int, list[int | str]] = {}
    makers: set[int] = set()
    handed: dict[str, set[int]] = {}
    for function in program.functions():
        for address in function.references:
            references[address].add(function.start)
        calls[function.start] = function.calls
        for name, addresses in _find_handed(program, function, settings):
            makers.add(function.start)
            handed.setdefault(name, set()).update(addresses)
    readers: dict[str, set[int]] = {}
    for variables in (
        listed,
        _choose_own(handed),
        listed_in_part,
    ):  # a table of options may point to what only sets one
        for name, addresses in variables.items():
            readers[name] = readers.get(name) or set().union(*(references[address] for address in addresses)) - makers
    unread = frozenset(name for name in listed if name not in handed and not readers[name])
    ignored = _find_configuring(readers, len(settings))
    steps = _find_steps(calls, program.count)
    return Code(
        {
            name: tuple(
                Reader(start, program.name(start), _follow(program, steps, start)) for start in sorted(starts - ignored)
            )
            for name, starts in readers.items()
        },
        unread,
    )


def _find_in_tables(
    program: Program, settings: Collection[str]
) -> tuple[Mapping[str, set[int]], Mapping[str, set[int]]]:
    """Return the variables of settings whose name stands in a table before them, and of those named there in part.

    A part of a DBMS that adds settings of its own may name them without its prefix, which is the first word.
    """
    without_prefix: dict[str, list[str]] = defaultdict(list)
    for name in settings:
        if "_" in name:
            without_prefix[name.partition("_")[2]].append(name)
    whole: dict[str, set[int]] = defaultdict(set)
    in_part: dict[str, set[int]] = defaultdict(set)
    addresses = sorted(program.words)
    for number, address in enumerate(addresses):
        text = program.text(program.words[address])
        if text is None or (text not in settings and text not in without_prefix):
            continue
        behind = (
            place for place in addresses[number + 1 : number + 1 + _MOST_POINTERS] if place - address <= _FURTHEST
        )
        variable = next(
            (program.words[place] for place in behind if program.kind(program.words[place]) == "variables"), None
        )
        if variable is None:
            continue
        if text in settings:
            whole[text].add(variable)
        for name in without_prefix.get(text, ()):
            in_part[name].add(variable)
    return whole, _keep_parts(in_part, settings)


def _keep_parts(in_part: Mapping[str, set[int]], settings: Collection[str]) -> Mapping[str, set[int]]:
    """Keep parts of which at least half of the settings are found under such names: a `bin` need not be log_bin."""
    parts, found = (Counter(name.partition("_")[0] for name in names if "_" in name) for names in (settings, in_part))
    return {
        name: variables
        for name, variables in in_part.items()
        if 2 * found[part := name.partition("_")[0]] >= parts[part]
    }


def _find_handed(program: Program, function: Function, settings: Collection[str]) -> Iterable[tuple[str, set[int]]]:
    """Yield the settings whose name a function passes, with the variables that it passes with it."""
    for loaded in function.handed:
        for argument in loaded:
            if (text := program.text(argument.address)) is not None and text in settings:
                yield text, _list_variables(program, loaded)
                break


def _list_variables(program: Program, loaded: Iterable[Loaded]) -> set[int]:
    return {
        argument.address
        for argument in loaded
        if argument.register != _THIS and program.kind(argument.address) == "variables"
    }


def _choose_own(handed: Mapping[str, set[int]]) -> dict[str, set[int]]:
    """Keep what was passed for the fewest settings: locks and defaults go with many."""
    times = Counter(address for addresses in handed.values() for address in addresses)
    own: dict[str, set[int]] = {}
    for name, addresses in handed.items():
        least = min((times[address] for address in addresses), default=_MOST_SETTINGS + 1)
        if least <= _MOST_SETTINGS:
            own[name] = {address for address in addresses if times[address] == least}
    return own


def _find_configuring(readers: Mapping[str, set[int]], settings: int) -> set[int]:
    """Return the functions that refer to so many settings that they read, set or show the configuration."""
    times = Counter(function for functions in readers.values() for function in functions)
    return {function for function, count in times.items() if count > max(_MANY_SETTINGS, _MANY_SHARE * settings)}


def _find_steps(calls: Mapping[int, list[int | str]], functions: int) -> dict[int, int | str]:
    """Return function -> what it calls on the shortest way to a request to storage, for those that get there soon."""
    callers: dict[int, set[int]] = defaultdict(set)
    for caller, callees in calls.items():
        for callee in callees:
            if isinstance(callee, int):
                callers[callee].add(caller)
    limit = max(_SERVICE_CALLERS, _SERVICE_SHARE * functions)
    services = {callee for callee, direct_callers in callers.items() if len(direct_callers) > limit}
    steps: dict[int, int | str] = {}
    for caller, callees in calls.items():
        requests = [callee for callee in callees if isinstance(callee, str) and _REQUESTS.fullmatch(callee)]
        if requests and caller not in services:
            steps[caller] = requests[0]
    edge = sorted(steps)
    for _ in range(1, MOST_CALLS):
        further: dict[int, int] = {}
        for callee in edge:
            for caller in callers[callee]:
                if caller not in steps and caller not in services:
                    further.setdefault(caller, callee)
        steps.update(further)
        edge = sorted(further)
    return steps


def _follow(program: Program, steps: Mapping[int, int | str], start: int) -> tuple[str, ...]:
    """Return the names on the way from a function to a request; nothing where there is no way."""
    path: list[str] = []
    at: int | str | None = start if start in steps else None
    while isinstance(at, int):
        path.append(program.name(at))
        at = steps[at]
    return (*path, at) if at is not None else ()


def compare_neighbours(values: Mapping[str, float], code: Code) -> dict[str, float]:
    """Return for each setting the mean value of those settings that are read near it; 0 where nothing is near.

    What is read in the same object file mostly belongs to the same part of the DBMS. A neighbour weighs e times less
    every 8,000 bytes of code; where all of them together weigh little, so does what they say.
    """
    points = [(reader.address, values[name], name) for name in values for reader in code.readers.get(name, ())]
    if not points:
        return dict.fromkeys(values, 0.0)
    addresses, point_values = np.array([point[0] for point in points], float), np.array([point[1] for point in points])
    names = np.array([point[2] for point in points])
    near: dict[str, float] = {}
    for name in values:
        means = []
        for reader in code.readers.get(name, ()):
            weights = np.exp(-np.abs(addresses - reader.address) / _TOGETHER) * (names != name)
            means.append(float(weights @ point_values) / (float(weights.sum()) + _HALF))
        near[name] = float(np.mean(means)) if means else 0.0
    return near
