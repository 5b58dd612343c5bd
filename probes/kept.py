"""What takes long to make is kept: compiled programs, facts about the running kernel.

In a folder that root alone can enter, by a hash of all that it was made of, the code of the probes included. It is held
by a descriptor while it is used, so that nothing is looked up twice. What is damaged, or of another kernel or version,
is made anew; where the folder is not root's alone, nothing is read or written, and `list_refusals` says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = "/var/cache/knobscope"
_MOST = 64  # things that are kept; the one that was not used for longest goes
_CODE = Path(__file__).resolve().parent
_refusals: dict[str, None] = {}


class RefusedError(Exception):
    """The folder, or a file in it, is not root's alone; the message says what was found."""


def keep(kind: str, made_of: Sequence[str], make: Callable[[], Any], *, is_kept: bool = True) -> Any:
    """Return what `make` returns, plain data, or what it returned when it was made of the same."""
    if not is_kept:
        return make()
    key = _digest(kind, _digest_code(), *made_of)
    try:
        with _opened() as folder:
            value = _read(folder, key)
            if value is None:
                value = make()
                _write(folder, key, value)
            return value
    except RefusedError as refusal:
        _refusals[str(refusal)] = None
        return make()


def list_refusals() -> list[str]:
    """Return sentences on why nothing could be kept."""
    return [f"programs are compiled at every start: {refusal}" for refusal in _refusals]


@contextlib.contextmanager
def _opened() -> Iterator[int]:
    """Yield a descriptor of the folder, which is made if there is none; RefusedError where it is not root's alone."""
    try:
        with contextlib.suppress(FileExistsError):
            Path(FOLDER).mkdir(0o700)
        folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        raise RefusedError(f"{FOLDER}: found {problem.strerror}; expected a directory of root's") from problem
    try:
        _require_roots(os.fstat(folder), FOLDER, 0o700)
        yield folder
    finally:
        os.close(folder)


def _require_roots(found: os.stat_result, name: str, mode: int) -> None:
    if (found.st_uid, stat.S_IMODE(found.st_mode)) != (0, mode):
        raise RefusedError(
            f"{name}: found owner {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}; "
            f"expected owner 0, mode {mode:04o}"
        )


def _read(folder: int, key: str) -> Any:
    """Return what is kept by this key; None when nothing is, or it is damaged."""
    try:
        file = os.open(key, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise RefusedError(f"{FOLDER}/{key}: found {problem.strerror}; expected a file of root's") from problem
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        _require_roots(found, f"{FOLDER}/{key}", 0o600)
        if not stat.S_ISREG(found.st_mode):
            raise RefusedError(f"{FOLDER}/{key}: found no file; expected one")
        checksum, _, text = opened.read().partition(b"\n")
        if checksum.decode(errors="replace") != _digest(key, text.decode(errors="replace")):
            return None
        with contextlib.suppress(OSError):  # a file system that is read-only keeps all it has
            os.utime(file)
    return json.loads(text)


def _write(folder: int, key: str, value: Any) -> None:
    """Keep a value; where that is impossible, say so."""
    text, part = json.dumps(value), f"{secrets.token_hex(8)}.part"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(part, flags, 0o600, dir_fd=folder), "w") as file:
            file.write(f"{_digest(key, text)}\n{text}")
        os.rename(part, key, src_dir_fd=folder, dst_dir_fd=folder)
        _remove_oldest(folder)
    except OSError as problem:
        _refusals[f"{FOLDER}: {problem.strerror}"] = None
        with contextlib.suppress(OSError):  # a caller may limit the size of files, again and again
            os.unlink(part, dir_fd=folder)


def _remove_oldest(folder: int) -> None:
    ages = {}
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # another monitor was faster
            ages[name] = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime_ns
    for name in sorted(ages, key=lambda name: -ages[name])[_MOST:]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _digest_code() -> str:
    return _digest(*(path.read_text() for path in sorted(_CODE.glob("*.py"))))
