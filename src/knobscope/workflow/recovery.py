"""Sets aside what a power cut, a failing disk or a killed pipeline left behind, so that it is made anew.

Snakemake takes every file that exists for a good one. The Snakefile calls this before it looks for files, and asks
whether there is anywhere to write to: Snakemake itself would answer with a traceback.

Only what knobscope itself wrote down is a reason to call an output damaged: its seal (`knobscope.sealing`), or the
checksum inside a JSON result.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from knobscope.durable_files import DamagedFileError, read_sealed, set_aside
from knobscope.errors import UserError, show_controls
from knobscope.sealing import break_seal, check_seal, sealed_output

#: Options with which Snakemake reads the Snakefile and runs no job; then nothing is changed here, either.
LOOKS = frozenset(
    {
        *("--lint", "--list-rules", "--list", "-l", "--list-target-rules", "--lt", "--print-compilation"),
        *("--dag", "--rulegraph", "--filegraph", "--d3dag", "--summary", "-S", "--detailed-summary", "-D"),
        *("--list-changes", "--lc", "--list-input-changes", "--li", "--list-params-changes", "--lp"),
        *("--list-untracked", "--lu", "--report", "--containerize", "--generate-unit-tests", "--archive", "--unlock"),
        *("--cleanup-metadata", "--cm", "--cleanup-shadow", "--delete-all-output", "--delete-temp-output"),
    }
)
_SNAKEMAKE = Path(".snakemake")
#: File in a temporary folder of Snakemake's: which working directory the pipeline is of.
_MARK = "knobscope.pipeline"
#: Less than this a file system that is as good as full may still take.
_PROBE_BYTES = 1 << 16
#: JSON results, which have a checksum inside, below a study's folder.
_JSON_RESULTS = ("devices/*.json", *(f"*/*/*/{stage}/*.json" for stage in ("fit", "repeat", "prepared")))


def require_writable(results: Path) -> None:
    """Raise UserError when nothing can be written below a study's folder, which is made."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=results) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
    except OSError as error:
        raise UserError(f"cannot write to {results} ({error.strerror}); correct that and call again") from error


def require_own_files(results: Path) -> None:
    """Raise UserError when a study's folder leads out of itself: files are written, and old ones removed, below it.

    The folder itself may be a link that its user made. In `.snakemake`, too, files are written and locks removed.
    """
    for entry in (_SNAKEMAKE, *_SNAKEMAKE.glob("*")):
        if entry.is_symlink():
            raise UserError(f"{entry}: found a symbolic link; expected a directory of Snakemake's own: remove the link")
    if strange := [entry for entry in _walk(results) if _find_kind(entry)]:
        names = ", ".join(os.path.relpath(entry, results) for entry in sorted(strange)[:3])
        more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
        raise UserError(
            f"{results}: {names}{more}: {_find_kind(min(strange))}; the folder of a study holds files and directories "
            "only, so remove it, or replace it by what it points to"
        )


def _find_kind(path: Path) -> str:
    """Return what a path is if it is neither a regular file nor a directory, else nothing."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # a pipeline that runs has finished with it
        return ""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return ""
    return "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, socket or device"


def find_damaged(results: Path) -> list[DamagedFileError]:
    """Return what is wrong with each damaged output below a study's folder."""
    sealed = [output for path in _walk(results) if (output := sealed_output(path)) is not None]
    checks: dict[Path, Callable[[Path], object]] = dict.fromkeys(sealed, check_seal)
    for path in (path for pattern in _JSON_RESULTS for path in results.glob(pattern)):
        checks.setdefault(path, read_sealed)
    return [error for output, check in sorted(checks.items()) if (error := _find_damage(output, check)) is not None]


def set_aside_damaged(results: Path) -> list[str]:
    """Rename every damaged output below a study's folder, a block as a whole; return one sentence for each."""
    return [_set_aside(error) for error in find_damaged(results)]


def tell_damaged(results: Path, *, sets_aside: bool) -> list[str]:
    """Return a sentence for each damaged output, which is set aside or left for a run to make anew."""
    sentences = (
        set_aside_damaged(results) if sets_aside else [f"{e}; a run makes it anew" for e in find_damaged(results)]
    )
    return list(map(show_controls, sentences))


def _set_aside(error: DamagedFileError) -> str:
    break_seal(error.path)
    return f"{error}; it is now {set_aside(error.path).name}, and is made anew where it is needed"


def claim_directory(temporary: Path) -> None:
    """Take over from pipelines that were killed: remove Snakemake's locks and temporary folders when none runs here.

    Each pipeline holds our lock, shared, until it ends, whatever study it is of: who gets it alone is the only one.
    `temporary` is the folder of this pipeline, which the next one removes if this one cannot. It is marked there, and
    not noted in the working directory, which may come from somebody else: nothing in that names what is deleted.
    """
    directory = _SNAKEMAKE
    directory.mkdir(exist_ok=True)
    claim = os.open(directory / "knobscope.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.fchmod(claim, 0o600)  # who can open it can hold it, and make us wait
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for lock in (directory / "locks").glob("*.lock"):
            lock.unlink()
        for mark in temporary.parent.glob(f"snakemake*/{_MARK}"):
            if mark.parent != temporary and _is_of(mark, directory):
                shutil.rmtree(mark.parent)
    except BlockingIOError:
        pass  # another pipeline is at work here, on another study
    fcntl.flock(claim, fcntl.LOCK_SH)
    (temporary / _MARK).write_text(str(directory.resolve()), encoding="utf-8")


def claim_study(study: str, temporary: Path) -> None:
    """Hold a study until this process ends. Raises UserError where another pipeline works on it.

    Snakemake's own locks come later, and one pipeline removes those of all others in the folder when it ends.
    `temporary` is Snakemake's folder of this pipeline.
    """
    claim_directory(temporary)
    claim = os.open(
        _SNAKEMAKE / f"knobscope-{study}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    os.fchmod(claim, 0o600)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(
            f"study {study}: another call works on it in this folder; wait for it, or work in another folder"
        ) from error


def _is_of(mark: Path, directory: Path) -> bool:
    """Whether a mark is our own, of a pipeline of this working directory."""
    status = mark.parent.lstat()
    return (
        status.st_uid == os.geteuid()
        and not status.st_mode & 0o022
        and mark.read_text(encoding="utf-8") == str(directory.resolve())
    )


def _walk(results: Path) -> Iterator[Path]:
    """Yield what lies below a study's folder; of the run store the folder only, whose files are checked when read."""
    for parent, directories, files in os.walk(results, onerror=_refuse):
        yield from (Path(parent, name) for name in (*directories, *files))
        if Path(parent) == results and "store" in directories:
            directories.remove("store")


def _refuse(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):  # a study that never ran, or what another job has just finished with
        return
    raise UserError(f"cannot read {error.filename} ({error.strerror}); correct that and call again") from error


def _find_damage(output: Path, check: Callable[[Path], object]) -> DamagedFileError | None:
    try:
        check(output)
    except FileNotFoundError:  # a pipeline that runs has finished with it
        return None
    except DamagedFileError as error:
        return error if os.path.lexists(output) else None
    return None
