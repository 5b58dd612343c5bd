"""Makes Snakemake measure again what failed: `snakemake --config retry_failed=true`."""

from pathlib import Path

from knobscope.durable_files import DamagedFileError
from knobscope.tables import RunRecord, read_document
from knobscope.text.formats import loosen_units, plural


def retry_failed_runs(results: Path, *, runs: bool) -> str:
    """Set aside the stored runs of a study that did not end well, and their blocks; return a sentence on how many.

    A dry run (`runs` is false) leaves all where it is, so that its list of jobs has none of them. A run keeps its file,
    under the suffix `.retried`. A block that misses a run is measured anew, which takes what is in the store from
    there; everything that depends on it follows.
    """
    failed = [path for path in sorted((results / "store").glob("*.json")) if _has_failed(path)]
    if not runs:
        words = loosen_units(plural(len(failed), "run that failed", "runs that failed"))
        return f"{words} would be measured again, with all that follows from it; -n does not list these jobs"
    for path in failed:
        block = Path(read_document(path, RunRecord)["run"]["block_id"])
        phase = block.name.partition("-")[0]
        directory = results / block.parent / "runs" / ("tune" if phase == "tune" else block.name)
        # Snakemake makes a missing block anew only for something that is missing, too. The run last: what was killed in
        # between is found again.
        for outcome in (results / "study.duckdb", directory):
            if outcome.exists():
                outcome.rename(_free_name(outcome))
        path.rename(path.with_suffix(".json.retried"))
    words = loosen_units(plural(len(failed), "run that failed is", "runs that failed are"))
    return f"{words} measured again"


def _has_failed(path: Path) -> bool:
    try:
        return bool(read_document(path, RunRecord)["run"]["status"] != "ok")
    except DamagedFileError:
        return False  # set aside by those who read it


def _free_name(directory: Path) -> Path:
    number = 0
    while (name := directory.with_name(f".{directory.name}.retried-{number}")).exists():
        number += 1
    return name
