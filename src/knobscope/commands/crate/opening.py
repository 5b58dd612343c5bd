"""Opens a crate, which a stranger may have made: outside the folder that it is opened into it reaches nothing."""

import json
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from knobscope.commands.crate.contents import draw
from knobscope.commands.crate.layout import DATABASE, FIGURES, METADATA, REPORT, STUDIES
from knobscope.commands.crate.metadata import sha256_of
from knobscope.durable_files import remove, whole_directory
from knobscope.errors import UserError
from knobscope.shipped import SHIPPED
from knobscope.specs import load_study
from knobscope.specs.reading.source import observe_reading

#: More than that no crate holds: a full disk would hit everyone on the machine.
_MOST_BYTES, _MOST_FILES = 16 << 30, 100_000
_MOST_METADATA_BYTES = 64 << 20
_EXPECTED = "a crate that `knobscope crate` wrote: its folder, or a ZIP file of that"
#: What unpacking raises for a damaged archive.
_DAMAGED = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, zlib.error, lzma.LZMAError
)  # fmt: skip


def open_crate(crate: Path, out: Path) -> Path:
    """Copy a crate into a new folder; returns the study's file there. UserError: it is none, or was changed."""
    if not crate.exists():
        raise UserError(f"no {crate}; expected {_EXPECTED}")
    with whole_directory(out) as folder:
        _copy_files(crate, folder)
        _check_sums(crate, folder)
        studies = sorted((folder / STUDIES).glob("*.yaml"))
        if len(studies) != 1:
            raise UserError(f"{crate}: found {len(studies)} studies in {STUDIES}; expected one")
        if not (folder / DATABASE).is_file():
            raise UserError(f"{crate}: found no {DATABASE}; expected {_EXPECTED}")
    return out / STUDIES / studies[0].name


def redraw(folder: Path, study: Path) -> None:
    """Draw report and figures of an opened crate anew, next to those that came with it."""
    with observe_reading(lambda path: _refuse_outside(path, folder)):
        specs = load_study(study, folder, runnable=False)
        remove(folder / "redrawn")  # a crate that brings its own would be compared with itself
        draw(folder, specs, folder / _redrawn(REPORT), folder / _redrawn(FIGURES))


def differing_files(folder: Path) -> tuple[int, list[str]]:
    """Return how many files were drawn or came with the crate, and the names of those that differ, by byte."""
    pairs = {
        path.relative_to(folder / side).as_posix()
        for side in ("measured", "redrawn")
        for path in [folder / side / "report.html", *(folder / side / "figures").glob("*")]
    }
    return len(pairs), [
        name for name in sorted(pairs) if not _are_equal(folder / "measured" / name, folder / "redrawn" / name)
    ]


def _redrawn(name: str) -> str:
    return name.replace("measured/", "redrawn/", 1)


def _are_equal(a: Path, b: Path) -> bool:
    return a.is_file() and b.is_file() and a.read_bytes() == b.read_bytes()


def _refuse_outside(path: Path, folder: Path) -> None:
    """Raise UserError for a spec that names a file outside of its crate; rules come with knobscope."""
    real = path.resolve()
    if not (real.is_relative_to(folder.resolve()) or real.is_relative_to(SHIPPED / "rules")):
        raise UserError(f"{folder}: a spec names {path}, outside of the crate; nothing was read from there")


def _copy_files(crate: Path, folder: Path) -> None:
    total = 0
    with _entries(crate) as entries:
        for count, (name, source) in enumerate(entries):
            parts = PurePosixPath(name).parts
            is_inside = not name.startswith("/") and ".." not in parts and "\\" not in name and "\0" not in name
            if not is_inside or not parts or ":" in parts[0]:
                raise UserError(f"{crate}: found a file named {name!r}; expected names below the crate's folder")
            target = folder.joinpath(*parts)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                opened = target.open("xb")
            except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
                raise UserError(
                    f"{crate}: found {name!r} twice, as a file or a folder; expected each name once"
                ) from error
            with source, opened as file:
                while chunk := source.read(1 << 20):
                    total += len(chunk)
                    if total > _MOST_BYTES or count >= _MOST_FILES:
                        raise UserError(
                            f"{crate}: found more than {_MOST_BYTES >> 30} GiB or {_MOST_FILES:,} files; expected less"
                        )
                    file.write(chunk)


@contextmanager
def _entries(crate: Path) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """Yield names and contents of the files. UserError: one is a link, a device or a pipe, or it is no ZIP file."""
    if crate.is_dir():
        yield _entries_of_folder(crate)
        return
    try:
        with zipfile.ZipFile(crate) as archive:
            yield _entries_of_zip(crate, archive)
    except _DAMAGED as error:
        raise UserError(f"{crate}: {error}; expected {_EXPECTED}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise UserError(f"{crate}: {error}; expected {_EXPECTED}") from error  # of the bz2 module


def _entries_of_folder(crate: Path) -> Iterator[tuple[str, IO[bytes]]]:
    for path in sorted(crate.rglob("*")):
        name = path.relative_to(crate).as_posix()
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        if not stat.S_ISREG(mode):
            raise _no_file(crate, name)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        yield name, os.fdopen(descriptor, "rb")


def _entries_of_zip(crate: Path, archive: zipfile.ZipFile) -> Iterator[tuple[str, IO[bytes]]]:
    for entry in archive.infolist():
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _no_file(crate, entry.filename)
        if not entry.is_dir():
            yield entry.filename, archive.open(entry)


def _no_file(crate: Path, name: str) -> UserError:
    return UserError(f"{crate}: {name!r} is a link or another special file; expected regular files only")


def _check_sums(crate: Path, folder: Path) -> None:
    """Raise UserError where files are missing or differ from their checksums in the metadata."""
    sums = _read_sums(crate, folder / METADATA)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {METADATA}
    if unlisted := sorted(files - sums.keys()):
        raise UserError(f"{crate}: found {unlisted[0]!r}, which {METADATA} does not list; expected {_EXPECTED}")
    for name, checksum in sums.items():
        if name not in files or sha256_of(folder / name) != checksum:
            problem = "was changed after the crate was written" if name in files else "is missing"
            raise UserError(f"{crate}: {name} {problem}; expected the SHA-256 that {METADATA} has")


def _read_sums(crate: Path, metadata: Path) -> dict[str, Any]:
    """Return name -> SHA-256 of the files that the metadata lists."""
    if not metadata.is_file():
        raise UserError(f"{crate}: found no {METADATA}; expected {_EXPECTED}")
    if metadata.stat().st_size > _MOST_METADATA_BYTES:
        raise UserError(f"{crate}: {METADATA} has more than {_MOST_METADATA_BYTES >> 20} MiB; expected less")
    try:
        graph = json.loads(metadata.read_text(encoding="utf-8"))["@graph"]
        return {entity["@id"]: entity["sha256"] for entity in graph if "sha256" in entity}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{crate}: {METADATA} cannot be read ({error}); expected {_EXPECTED}") from error
