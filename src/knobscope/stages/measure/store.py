"""The run store: every finished run at once under the hash of everything that defines it."""

import sys
from collections.abc import Mapping
from pathlib import Path

from knobscope.durable_files import DamagedFileError, set_aside, write_sealed
from knobscope.identity import hash_identity, run_identity
from knobscope.specs import Case, StudySpecs, Value
from knobscope.tables import PlanRow, RunRecord, read_document


def run_id_of(
    specs: StudySpecs,
    case: Case,
    configuration: Mapping[str, Value],
    version: str,
    row: PlanRow,
    sentinel: int | None,
) -> str:
    """Return the hash of everything that defines a planned run; `version` is what the DBMS told of itself.

    The block is part of it (a run is only comparable within its block); a sentinel also has its number in the block,
    so that the second and third are measured too.
    """
    identity = run_identity(specs, case, row["phase"], configuration)
    if "devices" in identity:  # of a layout: those that this configuration names
        used = {name: device for name, device in identity["devices"].items() if name in configuration.values()}
        identity = {**identity, "devices": used}
    definition = {
        **identity,
        "version": version,
        "configuration": dict(configuration),
        "block": row["block_id"],
        "sentinel": sentinel,
        "repeat": row["repeat"],
    }
    return hash_identity(definition, 16)


class RunStore:
    """A directory with one JSON file per finished run. It is no output of a rule: nothing but a person removes it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def load(self, run_id: str) -> RunRecord | None:
        """Return a finished run, None when it is still to be measured."""
        path = self.directory / f"{run_id}.json"
        if not path.exists():
            return None
        try:
            record = read_document(path, RunRecord)
            if record["run"]["run_id"] != run_id:
                raise DamagedFileError(path, f"it holds run {record['run']['run_id']}")
            return record
        except DamagedFileError as error:
            print(f"knobscope: {error}; kept as {set_aside(path).name}, measured again", file=sys.stderr)
            return None

    @property
    def is_empty(self) -> bool:
        """Whether no run has been stored yet."""
        return next(self.directory.glob("*.json"), None) is None

    @property
    def was_watched_by_bpf(self) -> bool:
        """Whether the requests of a stored run were counted in the kernel; one that did not start was not watched."""
        records = (self.load(path.stem) for path in self.directory.glob("*.json"))
        return any(record is not None and record["run"].get("monitor") == "bpf" for record in records)

    def save(self, run_id: str, record: RunRecord) -> None:
        """Store a finished run, whole or not at all."""
        write_sealed(self.directory / f"{run_id}.json", record)
