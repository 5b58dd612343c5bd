"""Programs and other files that specs name: where they are on this machine, and which version of a DBMS that is."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from glob import glob
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

from pydantic import Field

from knobscope.errors import UserError
from knobscope.processes import (
    OutputLimitError,
    capture,
    find_service_user,
    open_network,
    open_sandbox,
    supervise,
)
from knobscope.shipped import SHIPPED
from knobscope.specs.reading.base import Misfit, SpecModel, Value

PathName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]

#: An argument, or the value of one, that names a file itself; what the kernel shows is the same in every run.
_BARE_PATH = re.compile(r"(?:^|=)/(?!dev/|proc/|sys/)\w")
_DIGEST_LENGTH = 16
_VERSION_S = 30
_VERSION_BYTES = 1 << 20


class Program(SpecModel):
    """Where a program or file is looked for; the first that exists wins (newest version first for a pattern)."""

    find: list[str] = Field(
        min_length=1,
        description="Names on PATH, or paths, which may hold * as a pattern; a relative path begins in the directory "
        "of servers that no package installs (KNOBSCOPE_FLEET, or .fleet in the checkout), as sid/usr/sbin/x does, or "
        "else in the folder that holds `specs`, as specs/generators/x.py does.",
    )
    package: str | None = Field(
        default=None, description="The system package that installs it, for the message when it is missing."
    )
    install: str | None = Field(
        default=None,
        description="Instead of `package`: the command that gets it, e.g. setup/fleet.sh cassandra, or `see` and an "
        "address. A build of your own needs neither.",
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield that it says in two ways how people get it."""
        if self.package is not None and self.install is not None:
            yield Misfit(("install",), "both `package` and `install`", "one of them")

    @property
    def places(self) -> str:
        """What was looked for, and where relative paths begin."""
        relative = any("/" in name and not name.startswith("/") for name in self.find)
        return ", ".join(self.find) + (f" (in {' or '.join(map(str, _roots()))})" if relative else "")

    @property
    def remedy(self) -> str:
        """The command that installs it, or what else to do."""
        if self.package is None and self.install is None:
            return f"build it, or add where it is to `find`, which has {', '.join(self.find)}"
        return self.install or f"apt-get install {self.package}"


def find_bare_paths(location: tuple[Value, ...], command: Sequence[str]) -> Iterator[Misfit]:
    """Yield arguments of a command that name a file of this machine without a key that says so.

    A run might not see it (`/tmp` and closed directories are its own), and would not notice that it was changed.
    """
    for index, argument in enumerate(command):
        if _BARE_PATH.search(argument):
            expected = "a program under `programs`, or {path.NAME} with the file under `paths`: only those are in a run"
            yield Misfit((*location, index), repr(argument), expected)


def fleet_directory() -> Path:
    """Return where servers lie that no system package installs."""
    named = os.environ.get("KNOBSCOPE_FLEET")
    return Path(named).absolute() if named else SHIPPED / ".fleet"


def clients_directory() -> Path:
    """Return where the Java clients lie, built or not: KNOBSCOPE_CLIENTS, or clients/target in the checkout."""
    named = os.environ.get("KNOBSCOPE_CLIENTS")
    return Path(named).absolute() if named else SHIPPED / "clients" / "target"


def find_path(wanted: Program) -> Path | None:
    """Return the first regular file or directory that a spec names, the newest where a pattern matches several.

    A device or a pipe is none: it would be read to an end that may not come.
    """
    paths = (Path(path) for name in wanted.find for path in _candidates(name))
    return next((path for path in paths if path.is_file() or path.is_dir()), None)


def find_program(wanted: Program) -> Path | None:
    """Return the first executable that a spec names, the newest where a pattern matches several."""
    matches = (path for name in wanted.find for path in _candidates(name) if Path(path).is_file())
    return next((Path(path) for path in matches if os.access(path, os.X_OK)), None)


def installed_with(program: Path) -> list[Path]:
    """Return what a run of a program may need of where it is: its directory, and libraries and files next to `bin`."""
    neighbours = ("lib", "lib64", "libexec", "share") if program.parent.name in ("bin", "sbin") else ()
    directories = (program.parent.parent / name for name in neighbours)
    return [program.parent, *(directory for directory in directories if directory.is_dir())]


def find_paths(paths: dict[str, Program]) -> SimpleNamespace:
    """Return what the placeholders {path.NAME} stand for; raises UserError for what is not there."""
    locations = {}
    for name, wanted in paths.items():
        path = find_path(wanted)
        if path is None:
            raise UserError(f"nothing at {wanted.places}; get it: {wanted.remedy}")
        locations[name] = str(path)
    return SimpleNamespace(**locations)


def digest_of(path: Path) -> str:
    """Return a hash of a file's content or, for a directory, of the names and contents of the files directly in it."""
    if not path.is_dir():
        return _digest_file(path)
    files = sorted(file for file in path.iterdir() if file.is_file())
    return _shorten("".join(f"{file.name} {_digest_file(file)}\n" for file in files).encode())


def _digest_file(path: Path) -> str:
    about = path.stat()
    return _digest_content(path.resolve(), about.st_ino, about.st_size, about.st_mtime_ns)


@cache
def _digest_content(path: Path, *about: int) -> str:
    """Return a hash of the content; who may run a program and not read it knows it by inode, size and time only."""
    if not os.access(path, os.R_OK):
        return _shorten(repr(about).encode())
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGEST_LENGTH]


def _shorten(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:_DIGEST_LENGTH]


def _candidates(name: str) -> list[str]:
    if "/" not in name:
        return [match] if (match := shutil.which(name)) else []
    for root in _roots():
        if matches := glob(str(root / name)):  # noqa: PTH207 - the pattern may be absolute
            return sorted(matches, key=_version_order, reverse=True)
    return []


def _roots() -> list[Path]:
    """Return where relative paths of specs begin: servers, the folder with the specs in use, those that are shipped."""
    return [*dict.fromkeys((fleet_directory(), Path.cwd(), SHIPPED))]


def _version_order(path: str) -> list[tuple[float, str]]:
    """Sort /usr/lib/x/9.6 before /usr/lib/x/18."""
    parts = Path(path).parts
    return [(float(part) if part.replace(".", "", 1).isdecimal() else -1, part) for part in parts]


def ask_version(command: list[str], programs: dict[str, Program], paths: dict[str, Program]) -> str:
    """Return the version as the DBMS's own program prints it; raises UserError when there is none to be seen."""
    program = find_program(programs[command[0]])
    if program is None:
        wanted = programs[command[0]]
        raise UserError(f"no program at {wanted.places}; install it: {wanted.remedy}")
    locations = find_paths(paths)
    arguments = [part.format(path=locations) for part in command[1:]]
    return _run_version((str(program), *arguments), tuple(map(Path, vars(locations).values())))


@cache
def _run_version(command: tuple[str, ...], paths: tuple[Path, ...]) -> str:
    """Run the program as somebody who is not root, in namespaces of its own: what it is, a spec says."""
    reach = [fleet_directory(), Path(command[0]), *installed_with(Path(command[0])), *paths]
    with open_network() as network, open_sandbox(reach) as sandbox:
        process = supervise(
            list(command),
            user=find_service_user(),
            network=network,
            sandbox=sandbox,
            reach=reach,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
        )
        try:
            _, text, _ = capture(process, _VERSION_S, _VERSION_BYTES)
        except subprocess.TimeoutExpired as error:
            raise UserError(f"{' '.join(command)} did not end within {_VERSION_S} s") from error
        except OutputLimitError as error:
            raise UserError(f"{' '.join(command)} {error}") from error
    for word in text.replace("(", " ").replace("=", " ").split():
        bare = word.removeprefix(f"{Path(command[0]).name}-").removeprefix("v")
        if bare[:1].isdigit() and "." in bare:
            return bare.strip("),;:")
    raise UserError(f"{' '.join(command)} printed no version: {text.strip()!r}")


def is_between(version: str, since: str | None, until: str | None) -> bool:
    """Whether a version is one of those from `since` to `until`, both included: 17.5 belongs to 17."""
    have = _numbers(version)
    late_enough = since is None or have >= _numbers(since)
    last = _numbers(until) if until is not None else ()
    return late_enough and have[: len(last)] <= last if until is not None else late_enough


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers: 10.11.19-MariaDB is (10, 11, 19), 18beta1 is (18,)."""
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)
