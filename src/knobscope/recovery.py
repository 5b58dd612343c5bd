"""Sets aside what a power cut, a full disk or a killed pipeline left behind, so that it is made anew.

Snakemake takes every file that exists for a good one. The Snakefile calls this before it looks for files, and asks
whether there is anywhere to write to: Snakemake itself would answer with a traceback.
"""

import fcntl
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from knobscope.errors import UserError
from knobscope.storage import DamagedFileError, read_sealed, set_aside, write_text

__all__ = ["claim_directory", "require_writable", "set_aside_damaged"]

#: Folder of notes below .snakemake: where pipelines keep Snakemake's temporary files.
_TEMPORARY = "knobscope-temporary"

#: Less than this a file system that is as good as full may still take.
_PROBE_BYTES = 1 << 16
#: DuckDB's sign; where its two headers are, of which the newer counts; where its blocks begin.
_DUCKDB_MAGIC, _DUCKDB_HEADERS, _DUCKDB_BYTES = b"DUCK", (4096, 8192), 12288
_MAGIC = b"PAR1"
#: Magic at both ends, and the length of the footer before the last one.
_LEAST_PARQUET_BYTES = 12


def require_writable(results: Path) -> None:
    """Raise UserError when nothing can be written below a study's folder, which is made."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=results) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
    except OSError as error:
        raise UserError(f"cannot write to {results} ({error.strerror}); put that right and call again") from error


def set_aside_damaged(results: Path) -> list[str]:
    """Rename every damaged output below a study's folder, a block as a whole; return one sentence for each.

    JSON files are checked by their seal. Of parquet files, databases and pages only the ends are looked at, which finds
    what was cut off, emptied or overwritten without reading all of a large study; a stage that cannot read the rest
    says so itself.
    """
    return [
        f"{error}; it is now {set_aside(output).name}, and is made anew"
        for output, check in _list_outputs(results)
        if (error := _find_damage(output, check)) is not None
    ]


def claim_directory(temporary: Path) -> None:
    """Take over from pipelines that were killed: remove Snakemake's locks and temporary folders when none runs here.

    Each pipeline holds our lock, shared, until it ends, whatever study it is of: who gets it alone is the only one.
    `temporary` is the folder of this pipeline, which the next one removes if this one cannot.
    """
    directory = Path(".snakemake")
    directory.mkdir(exist_ok=True)
    claim = os.open(directory / "knobscope.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for lock in (directory / "locks").glob("*.lock"):
            lock.unlink()
        for note in (directory / _TEMPORARY).glob("*"):
            _remove_temporary(Path(note.read_text(encoding="utf-8")))
            note.unlink()
    except BlockingIOError:
        pass  # another pipeline is at work here; Snakemake's own locks decide
    fcntl.flock(claim, fcntl.LOCK_SH)
    write_text(directory / _TEMPORARY / temporary.name, str(temporary))  # known after a power cut, too


def _remove_temporary(folder: Path) -> None:
    if folder.name.startswith("snakemake") and folder.is_dir() and folder.lstat().st_uid == os.geteuid():
        shutil.rmtree(folder)


def _list_outputs(results: Path) -> Iterator[tuple[Path, Callable[[Path], None]]]:
    case = "*/*/*"
    for pattern in ("devices/*.json", f"{case}/fit/*.json", f"{case}/repeat/*.json", f"{case}/prepared/*.json"):
        yield from ((path, _check_json) for path in results.glob(pattern))
    for pattern in ("*.parquet", f"{case}/plan/*.parquet"):
        yield from ((path, _check_parquet) for path in results.glob(pattern))
    yield from ((path, _check_database) for path in results.glob("*.duckdb"))
    yield from ((path, _check_page) for path in results.glob("*.html"))
    for path in results.glob(f"{case}/runs/*"):
        if path.is_dir() and path.suffix not in (".part", ".damaged"):
            yield path, _check_block


def _find_damage(output: Path, check: Callable[[Path], None]) -> DamagedFileError | None:
    try:
        check(output)
    except DamagedFileError as error:
        return error
    return None


def _check_json(path: Path) -> None:
    read_sealed(path)


def _check_block(directory: Path) -> None:
    if not (directory / "runs.parquet").is_file():
        raise DamagedFileError(directory, "it has no runs.parquet")
    for path in directory.glob("*.parquet"):
        _check_parquet(path)


def _check_database(path: Path) -> None:
    """Compare a DuckDB file's length with what its headers say; it may be open elsewhere, so nobody connects to it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_DUCKDB_BYTES)
    if len(head) < _DUCKDB_BYTES or head[8:12] != _DUCKDB_MAGIC:
        raise DamagedFileError(path, f"its {size} bytes are no DuckDB file")
    headers = [struct.unpack_from("<6Q", head, position) for position in _DUCKDB_HEADERS]
    _, _, _, _, blocks, block_bytes = max(headers, key=lambda header: header[1])
    if size < _DUCKDB_BYTES + blocks * block_bytes:
        raise DamagedFileError(path, f"its {size} bytes are no whole DuckDB file")


def _check_page(path: Path) -> None:
    with path.open("rb") as file:
        file.seek(-min(64, path.stat().st_size), os.SEEK_END)
        if b"</html>" not in file.read():
            raise DamagedFileError(path, f"its {path.stat().st_size} bytes are no whole page")


def _check_parquet(path: Path) -> None:
    size = path.stat().st_size
    if size < _LEAST_PARQUET_BYTES:
        raise DamagedFileError(path, f"its {size} bytes are no parquet file")
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
        file.seek(-len(_MAGIC) * 2, 2)
        footer, tail = int.from_bytes(file.read(4), "little"), file.read(4)
    if head != _MAGIC or tail != _MAGIC or footer > size - _LEAST_PARQUET_BYTES:
        raise DamagedFileError(path, f"its {size} bytes are no whole parquet file")
