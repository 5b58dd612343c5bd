"""Makes Snakemake measure again what failed: `snakemake --config retry_failed=true`."""

from pathlib import Path

from knobscope.durable_files import DamagedFileError
from knobscope.tables import RunRecord, read_document


def forget_failed_runs(results: Path) -> int:
    """Set aside the stored runs of a study that did not end well, and their blocks; return how many runs they were.

    A run keeps its file, under the suffix `.retried`. A block that misses a run is measured anew, which takes what is
    in the store from there; everything that depends on it follows.
    """
    failed = [path for path in sorted((results / "store").glob("*.json")) if _has_failed(path)]
    for path in failed:
        block = Path(read_document(path, RunRecord)["run"]["block_id"])
        phase = block.name.partition("-")[0]
        directory = results / block.parent / "runs" / ("tune" if phase == "tune" else block.name)
        # The run last: what was killed in between is found again.
        for outcome in [results / "study.duckdb"] if phase == "explain" else [directory]:
            if outcome.exists():
                outcome.rename(_free_name(outcome))
        path.rename(path.with_suffix(".json.retried"))
    return len(failed)


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
