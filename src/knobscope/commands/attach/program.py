"""Which DBMS a process is: from its program, as the specs name it."""

import contextlib
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from knobscope.commands.attach.processes import PROC, ProcessEndedError, read_executable
from knobscope.errors import UserError
from knobscope.shipped import SHIPPED
from knobscope.specs import Dbms, Program, ask_version, find_program, read_spec

_MAX_NAME = 15  # of a process
_VERSION = re.compile(r"(\d+(?:\.\d+)*)/bin/")


@dataclass(frozen=True)
class Running:
    """What runs: the program, the spec of its DBMS (None: no spec names it), and its version (None: not known)."""

    program: str
    dbms: Dbms | None
    version: str | None

    @property
    def name(self) -> str:
        """What to call it: PostgreSQL by its spec, else the program."""
        return self.dbms.name if self.dbms else Path(self.program).name

    @property
    def title(self) -> str:
        """The name with the version."""
        return f"{self.name} {self.version}" if self.version else self.name


def identify(pid: int, root: Path) -> Running:
    """Return the DBMS of a server; nothing of its own is run as root, nor at all when it is not this machine's."""
    program = read_executable(pid) or read_name(pid)
    candidates = [(score, dbms) for dbms in _list_servers(root) if (score := _score(dbms, program, pid))]
    dbms = max(candidates, key=lambda candidate: candidate[0], default=(0, None))[1]
    return Running(program, dbms, _find_version(dbms, program, pid))


def is_server(pid: int) -> bool:
    """Whether a process runs the server of a DBMS that has a spec."""
    program = read_executable(pid) or read_name(pid)
    return any(_score(dbms, program, pid) for dbms in _list_servers(Path()))


def read_command(pid: int) -> list[str]:
    """Return the arguments with which a process was started, the program first. ProcessEndedError."""
    try:
        text = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError) as gone:
        raise ProcessEndedError(pid) from gone
    return text.rstrip("\0").split("\0")


def read_environment(pid: int) -> dict[str, str]:
    """Return the variables with which a process was started; none where they are another user's. ProcessEndedError."""
    try:
        text = (PROC / str(pid) / "environ").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError) as gone:
        raise ProcessEndedError(pid) from gone
    except PermissionError:
        return {}
    return {name: value for name, mark, value in (word.partition("=") for word in text.split("\0")) if mark}


@cache
def _list_servers(root: Path) -> list[Dbms]:
    # A server is diagnosed wherever the user is: attach needs no checkout.
    folder = next(place / "specs/dbms" for place in (root, SHIPPED) if (place / "specs").is_dir())
    specs = (read_spec(path, Dbms, None)[1] for path in sorted(folder.glob("*.yaml")))
    return [dbms for dbms in specs if dbms.lifecycle is not None]


def _score(dbms: Dbms, program: str, pid: int) -> int:
    """Return 0 where a program is not the server of a DBMS; else more, the more exactly the spec names it."""
    assert dbms.lifecycle is not None  # noqa: S101 - only these are listed
    first, *arguments = dbms.lifecycle.start
    places = dbms.programs[first].find
    paths = [place for place in places if "/" in place and fnmatchcase(program, f"*/{place.lstrip('/')}")]
    names = {Path(place).name for place in places}
    # A program may be a link to one that does several things; the process then has the name of the link.
    is_named = bool(paths) or Path(program).name in names or read_name(pid) in {name[:_MAX_NAME] for name in names}
    classes = [word for word in arguments if re.fullmatch(r"[a-z]\w*(\.\w+)+", word)]  # of what runs in a Java machine
    if not is_named or (first == "java" and not set(classes) & set(read_command(pid))):
        return 0
    return 1 + max((len(place.replace("*", "")) for place in paths), default=0)


def read_name(pid: int) -> str:
    """Return the name of a process; anybody may read it, unlike the path of its program. ProcessEndedError."""
    try:
        return (PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError) as gone:
        raise ProcessEndedError(pid) from gone


def _find_version(dbms: Dbms | None, program: str, pid: int) -> str | None:
    """Return what the program says, asked as somebody who is not root; of one that is not on this machine's disk what
    its path says.
    """
    if dbms is not None and dbms.version is not None:
        first, *arguments = dbms.version
        named = find_program(dbms.programs[first])
        for path in [str(named)] if named else [], [program]:
            with contextlib.suppress(OSError, UserError, IndexError):  # another user's, or it prints none
                if Path(path[0]).samefile(PROC / str(pid) / "exe"):
                    return ask_version([first, *arguments], {first: Program(find=path, package=dbms.name)}, dbms.paths)
    match = _VERSION.search(program)
    return match[1] if match else None
