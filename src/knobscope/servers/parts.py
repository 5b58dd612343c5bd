"""Parts of the data that lie elsewhere: prepared as data is loaded, moved before a run, looked for while it runs.

What is moved and linked is moved and linked by its owner, the user that servers run as: root follows no link of it.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from knobscope.errors import UserError
from knobscope.processes import UnsafeFileError, find_service_user, make_shared_directory, read_foreign
from knobscope.servers.data import copy_data, make_data_directory, run_as_owner
from knobscope.specs import Dbms, Part, matches_pattern, part_knob

#: Directory next to loaded data with a directory for each part that statements put there, and that of their aliases.
PARTS = "parts"


@dataclass(frozen=True)
class PartHome:
    """Where a part lies that does not lie in the data directory itself."""

    directory: Path
    prefix: str = ""  # path of the link in the data directory that leads there; "" when an option of the server does
    alias: Path | None = None  # a link to the directory, whose own path not every DBMS would understand

    @property
    def path(self) -> Path:
        """The directory as the DBMS is told it."""
        return self.alias or self.directory


def make_part_homes(dbms: Dbms, snapshot: Path) -> dict[str, PartHome]:
    """Make directories for parts next to the data that is to be loaded; returns knob -> home, mostly nothing."""
    names = [name for name, part in dbms.layout_parts.items() if part.load is not None]
    if names:
        make_shared_directory(snapshot / PARTS, find_service_user())
    for name in names:
        make_data_directory(snapshot / PARTS / name)
    return {part_knob(name): PartHome(snapshot / PARTS / name) for name in names}


def part_statements(dbms: Dbms, homes: Mapping[str, PartHome]) -> list[str]:
    """Return the statements that put parts into their directories once the data is loaded."""
    return [
        text.replace("{directory}", str(homes[part_knob(name)].path))
        for name, part in dbms.layout_parts.items()
        for text in part.load or []
    ]


def attach_statements(dbms: Dbms, homes: Mapping[str, PartHome]) -> list[str]:
    """Return the statements that open parts on a connection where nothing in the data directory leads to them."""
    return [
        text.replace("{directory}", str(homes[part_knob(name)].path))
        for name, part in dbms.layout_parts.items()
        for text in part.session or []
    ]


def move_part(name: str, part: Part, data: Path, directory: Path, snapshot: Path) -> PartHome:
    """Move a part out of a copied data directory into a new directory; of one with statements copy what was loaded.

    UserError: it cannot be moved, or the statements made no link.
    """
    if part.load is not None:
        copy_data(snapshot / PARTS / name, directory)
        if part.pointer is not None:
            _change_pointers(data, part.pointer, f"/{PARTS}/{name}/", directory)
        if part.pointer is not None or part.session is not None:
            return PartHome(directory)
        link = _find_link(data, name)
        run_as_owner(["/bin/ln", "-sfnT", str(directory), str(data / link)], [data])
        return PartHome(directory, link)
    make_data_directory(directory)
    if part.link is None:
        if files := _list_files(part, data):
            run_as_owner(["/bin/mv", "-t", str(directory), "--", *map(str, files)], [data, directory])
        return PartHome(directory)
    source = data / part.link
    if source.is_dir():
        run_as_owner(["/bin/cp", "-a", f"{source}/.", str(directory)], [data, directory])
        run_as_owner(["/bin/rm", "-r", str(source)], [data])
    run_as_owner(["/bin/mkdir", "-p", str(source.parent)], [data])
    run_as_owner(["/bin/ln", "-sT", str(directory), str(source)], [data])
    return PartHome(directory, part.link)


def devices_of_part(part: Part, data: Path, home: PartHome | None, answer: str | None) -> set[int]:
    """Return the numbers of the file systems that a part really lies on; `answer`: the directory that the server names.

    A part that has no files yet lies where its directory lies.
    """
    paths = [Path(answer)] if answer is not None else []
    if part.writing is not None:
        paths += [*_list_files(part, data), *(_list_files(part, home.directory) if home else [])]
    elif part.pointer is not None:
        paths += _read_pointers(data, part.pointer)
    elif home is not None and not home.prefix:
        paths.append(home.directory)
    else:
        paths.append(data / (home.prefix if home else part.link or ""))
    return {path.stat().st_dev for path in paths if path.exists()}


def _list_files(part: Part, directory: Path) -> list[Path]:
    """Return the files of a part below a directory."""
    return [
        path
        for path in _walk(directory)
        if any(matches_pattern(pattern, str(path.relative_to(directory))) for pattern in part.files)
    ]


def _read_pointers(data: Path, pattern: str) -> Iterator[Path]:
    """Yield the paths in files of a directory that a running server owns; one that it has just replaced is none."""
    for pointer in _find_files(data, pattern):
        with contextlib.suppress(FileNotFoundError, UnsafeFileError):
            yield Path(read_foreign(pointer))


def _change_pointers(data: Path, pattern: str, before: str, directory: Path) -> None:
    """Give the paths in files of a directory another start, up to and with `before`. UserError: no such file."""
    pointers = _find_files(data, pattern)
    if not pointers:
        raise UserError(f"no file {pattern} in {data}: `load` of the part has made none; expected a path in it")
    start = re.sub(r"([\\&|])", r"\\\1", f"{directory}/")
    for pointer in pointers:
        run_as_owner(["/bin/sed", "-i", f"s|^.*{before}|{start}|", str(pointer)], [data])


def _find_files(data: Path, pattern: str) -> list[Path]:
    """Return the files whose path below the data directory matches; no symbolic links, which lead elsewhere."""
    return [
        path for path in _walk(data) if matches_pattern(pattern, str(path.relative_to(data))) and not path.is_symlink()
    ]


def _walk(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):
        yield from (Path(folder, name) for name in names)


def _find_link(data: Path, name: str) -> str:
    """Return the path, below the data directory, of the link that leads to the directory of a part."""
    for folder, folders, files in os.walk(data):
        for entry in (Path(folder, entry_name) for entry_name in [*folders, *files]):
            if entry.is_symlink() and entry.readlink().name == name:
                return str(entry.relative_to(data))
    raise UserError(f"no symbolic link in {data} leads to the directory of part {name}: its `load` has made none")
