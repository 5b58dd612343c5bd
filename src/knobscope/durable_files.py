"""Files that survive a power cut: they appear whole, reach the device before their name does, are checked when read.

A rename alone is atomic for other processes only. After a power cut the new name may point to a file without content,
because file systems write names and contents at different times. So a file is written next to its target, synchronised,
renamed, and then its directory is synchronised too (see Pillai et al., "All File Systems Are Not Created Equal", OSDI
2014, for how often programs leave one of these steps out).
"""

import contextlib
import hashlib
import itertools
import json
import math
import os
import shutil
import subprocess
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from knobscope.errors import UserError

#: Key of a sealed JSON file that holds the checksum of all other keys.
_SEAL = "sha256"
#: The largest JSON file of the campaign in docs/evidence/large-studies.md has less than a hundredth of that.
_LARGEST_BYTES = 1 << 28


class DamagedFileError(UserError):
    """A file of ours that holds something other than what was written; `path` names it."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path} is damaged: {problem}")
        self.path = path


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; at the end the file has its name and is on the device; errors leave nothing behind.

    UserError: the path is that of a directory.
    """
    if path.is_dir():
        raise UserError(f"{path} is a directory; expected the name of a file to write")
    with _private_directory(path) as private:
        part = private / path.name
        yield part
        _synchronise(part)
        part.replace(path)
        _synchronise(path.parent)


@contextlib.contextmanager
def whole_directory(path: Path) -> Iterator[Path]:
    """Yield an empty directory to fill; at the end it takes over the name, as `whole_file` does for a file."""
    with _private_directory(path) as private:
        part = private / path.name
        part.mkdir()
        yield part
        for entry in sorted(part.rglob("*")):
            if not entry.is_symlink():
                _synchronise(entry)
        _synchronise(part)
        remove(path)
        part.rename(path)
        _synchronise(path.parent)


@contextlib.contextmanager
def _private_directory(path: Path) -> Iterator[Path]:
    """Make a directory next to a path for what is about to replace it.

    It is new and nobody else may enter it, so nothing that lies in a folder of a stranger (a link instead of the file
    that is about to be written) can direct what is written elsewhere.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    private = path.with_name(f".{path.name}.part")
    remove(private)  # left behind by a killed process
    private.mkdir(mode=0o700)
    try:
        yield private
    finally:
        shutil.rmtree(private, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file, a link or a directory, if there is one; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def create_file(path: Path) -> int:
    """Return the descriptor of a new, empty file, which replaces what has its name; a link there is not followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def write_text(path: Path, text: str) -> None:
    """Write text whole or not at all."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people and other programs, whole or not at all."""
    write_text(path, json.dumps(content, indent=1, default=str) + "\n")


def finite(value: Any) -> Any:
    """Replace numbers that JSON cannot hold (infinite, not a number) by None, at any depth."""
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object with a checksum of itself, which `read_sealed` looks at."""
    plain = json.loads(json.dumps(content, default=str))
    write_json(path, {**plain, _SEAL: _checksum(plain)})


def read_sealed(path: Path) -> dict[str, Any]:
    """Return what `write_sealed` wrote.

    Raises DamagedFileError when the file is anything else, FileNotFoundError when there is none.
    """
    try:
        content = json.loads(_read(path))
    except (IsADirectoryError, PermissionError) as error:
        raise DamagedFileError(path, f"it cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        size = path.stat().st_size
        raise DamagedFileError(path, "it is empty" if size == 0 else f"its {size} bytes are no JSON") from error
    if not isinstance(content, dict):
        raise DamagedFileError(path, "it holds no JSON object")
    if content.pop(_SEAL, None) != _checksum(content):
        raise DamagedFileError(path, f"its content does not fit its checksum (key {_SEAL})")
    return content


def _read(path: Path) -> bytes:
    """Return what a file holds; a pipe instead of it, which nobody writes to, is empty."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        raise DamagedFileError(path, f"it holds more than {_LARGEST_BYTES >> 20} MiB")
    return content


@contextlib.contextmanager
def blame_content(*paths: Path, expected: str = "a DuckDB file that `knobscope detect` wrote") -> Iterator[None]:
    """Say in a sentence that code stumbled over a value that knobscope never writes: a NULL, a text that is no JSON.

    The sentence names the line of code: on files of ours that is a bug, which should be reported.
    """
    try:
        yield
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        if type(error).__module__ == "_duckdb":  # has a sentence of its own (`describe_refusal`)
            raise
        frames = traceback.extract_tb(error.__traceback__)
        last = next((frame for frame in reversed(frames) if "knobscope" in Path(frame.filename).parts), frames[-1])
        names = " or ".join(map(str, paths))
        raise UserError(
            f"{names}: found a value that cannot be used ({type(error).__name__} at {Path(last.filename).name}:"
            f"{last.lineno}: {str(error)[:200]!r}); expected {expected}; if it did write this one, report this as a bug"
        ) from error


def set_aside(path: Path) -> Path:
    """Rename a damaged file or directory, so that it is made anew and can still be looked at; returns the new name."""
    names = (path.with_name(f"{path.name}.damaged{suffix}") for suffix in itertools.chain([""], itertools.count(2)))
    aside = next(name for name in names if not os.path.lexists(name))
    path.rename(aside)
    return aside


def synchronise_filesystem(directory: Path) -> None:
    """Wait until all that was written to the file system of a directory is on its device; UserError: it cannot be."""
    result = subprocess.run(["sync", "-f", str(directory)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise UserError(f"not all that was written reached the device of {directory}: {result.stderr.strip()}")


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _synchronise(path: Path) -> None:
    """Wait until a file's content, or a directory's entries, are on the device."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
