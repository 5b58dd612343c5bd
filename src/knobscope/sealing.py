"""Seals of a study's outputs: what was written, so that the next call notices what is no longer so.

The seal of `report.html` is the hidden file `.report.html.seal` next to it: a sealed JSON object with the SHA-256 of
the file, or of each file of a directory. It lies outside the output, so that two outputs that were swapped do not fit
their seals. What has no seal (results of versions before 0.3) is not judged.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from knobscope.durable_files import DamagedFileError, read_sealed, remove, write_sealed

_SUFFIX = ".seal"


def seal(output: Path) -> None:
    """Write the seal of a file or directory that is complete."""
    write_sealed(_seal_of(output), {"files": _digests(output)})


def break_seal(output: Path) -> None:
    """Remove the seal of an output that is about to be made anew, or whatever has its name."""
    remove(_seal_of(output))


def sealed_output(path: Path) -> Path | None:
    """Return the output that a file is the seal of; None when it is no seal or there is no such output."""
    if not (path.name.startswith(".") and path.name.endswith(_SUFFIX)):
        return None
    output = path.with_name(path.name[1 : -len(_SUFFIX)])
    return output if os.path.lexists(output) else None


def check_seal(output: Path) -> None:
    """Raise DamagedFileError when an output, or its seal, is not what was written."""
    try:
        written = read_sealed(_seal_of(output)).get("files")
    except DamagedFileError as error:
        raise DamagedFileError(output, "its seal cannot be read") from error
    if not isinstance(written, dict):
        raise DamagedFileError(output, "its seal cannot be read")
    try:
        present = _digests(output)
    except OSError as error:
        raise DamagedFileError(output, f"it cannot be read ({error.strerror})") from error
    if changed := sorted(name for name, digest in written.items() if present.get(name) != digest):
        whole = changed == [""]
        names = "" if whole else f" of {', '.join(changed[:3])}{' ...' if len(changed) > 3 else ''}"
        raise DamagedFileError(output, f"the content{names} is not what was written")


def _seal_of(output: Path) -> Path:
    return output.with_name(f".{output.name}{_SUFFIX}")


def _digests(output: Path) -> dict[str, str]:
    """Return the SHA-256 of an output's files by their names in it; one that is the output itself has the name ''."""
    if not output.is_dir() or output.is_symlink():
        return {"": _digest(output)}
    return {str(path.relative_to(output)): _digest(path) for path in sorted(_files(output))}


def _files(directory: Path) -> Iterator[Path]:
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            yield from _files(entry)
        else:
            yield entry


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or what else it is; neither a link nor a pipe is opened."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "no file"
        return hashlib.file_digest(file, "sha256").hexdigest()
