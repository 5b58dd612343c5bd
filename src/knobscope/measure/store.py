"""The run store: every finished run at once under the hash of everything that defines it."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from knobscope.specs import Case, StudySpecs, Value
from knobscope.tables import write_json

__all__ = ["MEASURE_VERSION", "RunStore", "run_id_of"]

#: Raised whenever a change of this stage makes earlier runs incomparable.
MEASURE_VERSION = 1

#: What of a DBMS spec decides how a run goes.
_RUN_KEYS = {
    "name",
    "environment",
    "lifecycle",
    "config_files",
    "writing",
    "booleans",
    "readback",
    "connection",
    "loading",
    "generators",
}


def run_id_of(
    specs: StudySpecs,
    case: Case,
    configuration: Mapping[str, Value],
    version: str,
    block_id: str,
    sentinel: int | None,
    repeat: int,
) -> str:
    """Return the hash of everything that defines a run.

    The block is part of it (a run is only comparable within its block); a sentinel also has its number in the block,
    so that the second and third are measured too.
    """
    dbms = specs.dbms[case.dbms]
    generator = specs.generators.get(specs.workloads[case.workload].generator)
    what = {
        "measure": MEASURE_VERSION,
        "dbms": dbms.model_dump(
            mode="json",
            include=_RUN_KEYS,
        ),
        "generator": generator.model_dump(mode="json", exclude={"description"}) if generator else None,
        "version": version,
        "device": specs.devices[case.device].model_dump(mode="json", include={"name", "path", "emulate", "dedicated"}),
        "workload": specs.workloads[case.workload].model_dump(mode="json", exclude={"description", "source"}),
        "configuration": dict(configuration),
        "block": block_id,
        "sentinel": sentinel,
        "repeat": repeat,
        "seed": specs.study.seed,
        **({"watch": sorted(specs.study.watch)} if specs.study.watch else {}),
        **({"trace": True} if specs.study.trace and "/sweep-" in block_id else {}),
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


class RunStore:
    """A directory with one JSON file per finished run. It is no output of a rule: nothing but a person removes it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def load(self, run_id: str) -> dict[str, Any] | None:
        """Return a finished run, None when it is still to be measured."""
        path = self.directory / f"{run_id}.json"
        if not path.exists():
            return None
        record: dict[str, Any] = json.loads(path.read_text())
        return record

    def knows(self, column: str, value: str) -> bool:
        """Whether any finished run has this value in a column of table `runs`."""
        records = (json.loads(path.read_text()) for path in self.directory.glob("*.json"))
        return any(record["run"].get(column) == value for record in records)

    def save(self, run_id: str, record: Mapping[str, Any]) -> None:
        """Store a finished run, whole or not at all."""
        write_json(self.directory / f"{run_id}.json", record)
