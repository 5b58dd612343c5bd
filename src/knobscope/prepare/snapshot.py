"""Loads data once per load-time setting and keeps the result, from which every run gets a copy."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from knobscope.errors import UserError
from knobscope.generators import GeneratorError, Session, load_records, read_back
from knobscope.processes import supervise
from knobscope.servers import (
    Instance,
    Server,
    ServerFailedError,
    compare_effective,
    initialise_data,
    open_instance,
    read_version,
    readback_request,
)
from knobscope.specs import Dbms, Value, Workload
from knobscope.tables import write_json

__all__ = ["Snapshot", "SnapshotFailedError", "copy_snapshot", "load_session", "prepare_snapshot"]

#: Data, indexes, logs and a copy for the run in hand, per byte of records.
_SPACE_FACTOR = 8
_RECORD_BYTES = 1024
#: Generator parameters that shape the data; the others only shape what is done with it.
_DATA_PARAMETERS = ("field", "insert", "zeropadding", "table")


class SnapshotFailedError(Exception):
    """The DBMS would not make or load a data directory with these load-time knobs; `log_tail` has its words."""

    def __init__(self, message: str, log_tail: str) -> None:
        super().__init__(message)
        self.log_tail = log_tail


@dataclass(frozen=True)
class Snapshot:
    """A loaded data directory at rest."""

    directory: Path
    version: str  # of the DBMS that made it
    password: str

    @property
    def data(self) -> Path:
        """The data directory itself."""
        return self.directory / "data"


def prepare_snapshot(dbms: Dbms, workload: Workload, load_values: Mapping[str, Value], scratch: Path) -> Snapshot:
    """Return the snapshot for these load-time knobs, made now unless it is there already.

    It appears whole or not at all. Raises SnapshotFailedError when the DBMS refuses, UserError when the disk is full.
    """
    target = scratch / "snapshots" / _snapshot_key(dbms, workload, load_values)
    if not (target / "snapshot.json").exists():
        _check_space(scratch, workload)
        part = target.with_name(target.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
        part.mkdir(parents=True, mode=0o711)
        made = _make(dbms, workload, load_values, part)
        write_json(part / "snapshot.json", {**asdict(made), "directory": str(target)})
        part.rename(target)
    content = json.loads((target / "snapshot.json").read_text())
    return Snapshot(target, content["version"], content["password"])


def _snapshot_key(dbms: Dbms, workload: Workload, load_values: Mapping[str, Value]) -> str:
    what = {
        "dbms": dbms.model_dump(mode="json", include={"name", "programs", "lifecycle", "connection", "loading"}),
        "records": workload.records,
        "parameters": {name: value for name, value in workload.parameters.items() if name.startswith(_DATA_PARAMETERS)},
        "load": dict(load_values),
    }
    return f"{dbms.name}-{hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]}"


def _check_space(scratch: Path, workload: Workload) -> None:
    need = workload.records * _RECORD_BYTES * _SPACE_FACTOR
    free = shutil.disk_usage(scratch).free
    if free < need:
        raise UserError(f"{scratch} has {free >> 20} MiB free; {workload.records} records need about {need >> 20} MiB")


def _make(dbms: Dbms, workload: Workload, load_values: Mapping[str, Value], part: Path) -> Snapshot:
    data, log = part / "data", part / "load.log"
    data.mkdir(mode=0o700)
    try:
        with open_instance(dbms, data) as instance:
            if instance.user is not None:
                shutil.chown(data, instance.user, instance.user)
            initialise_data(instance, load_values, log)
            version = read_version(instance)
            answered = _load(instance, workload, load_values, log)
            return Snapshot(part, version or answered, instance.password)
    except (ServerFailedError, GeneratorError) as error:
        raise SnapshotFailedError(str(error), error.log_tail) from error


def _load(instance: Instance, workload: Workload, load_values: Mapping[str, Value], log: Path) -> str:
    """Load all records and verify them through a fresh connection; returns the version the DBMS answers, if asked."""
    dbms = instance.dbms
    if dbms.lifecycle is None:
        return _fill_and_verify(instance, workload, load_values)
    with Server(instance, dbms.lifecycle, {}, log) as server:
        server.wait_ready()
        version = _fill_and_verify(instance, workload, load_values)
        server.stop()
    return version


def _fill_and_verify(instance: Instance, workload: Workload, load_values: Mapping[str, Value]) -> str:
    dbms = instance.dbms
    settings = instance.session_statements(load_values, load=True)
    load_records(
        load_session(instance, workload, [*settings, *dbms.loading.sql], [], threads=1),
        dbms.loading.tables,
        supervise,
    )
    check = load_session(instance, workload, dbms.loading.finish, list(load_values), threads=1)
    effective = read_back(check, supervise).effective
    _, differing = compare_effective(dbms, load_values, effective)
    if differing:
        raise SnapshotFailedError(f"not in force after loading: {', '.join(differing)}", json.dumps(effective))
    return effective.get("version", "")


def load_session(
    instance: Instance, workload: Workload, statements: list[str], knobs: list[str], threads: int
) -> Session:
    """Return a session of the load client on an instance: fixed statements of the spec, then the given ones."""
    dbms = instance.dbms
    request = readback_request(dbms, knobs)
    if dbms.version_sql is not None and "each" in request:
        request["each"]["version"] = dbms.version_sql
    return Session(
        properties={
            "recordcount": str(workload.records),
            **{name: str(value) for name, value in workload.parameters.items()},
        },
        binding=dbms.connection.binding,
        connection=instance.connection_properties(),
        init=[*dbms.connection.session, *statements],
        readback=request,
        directory=instance.runtime / "client",
        threads=threads,
    )


def copy_snapshot(snapshot: Snapshot, target: Path) -> None:
    """Copy the data for one run, as a reflink where the file system can, and wait until it is on the device."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(snapshot.data), str(target)], check=True)
    subprocess.run(["sync", "-f", str(target)], check=True)
