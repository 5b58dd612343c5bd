"""Loads data once per load-time setting and keeps the result, from which every run gets a copy."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from knobscope.devices import require_free
from knobscope.generators import (
    GeneratorCall,
    GeneratorError,
    Session,
    client_properties,
    finish_statements,
    has_own_tables,
    load_data,
    load_records,
    make_files,
    read_back,
    record_bytes,
)
from knobscope.prepare.room import DiskRoom
from knobscope.prepare.tables import keep_tables, read_tables, table_question
from knobscope.processes import supervise
from knobscope.servers import (
    Instance,
    Server,
    ServerFailedError,
    ask_instance,
    compare_effective,
    initialise_data,
    open_instance,
    read_version,
    readback_request,
)
from knobscope.specs import Dbms, Generator, Value, Workload
from knobscope.tables import write_json

__all__ = ["Snapshot", "SnapshotFailedError", "copy_snapshot", "load_session", "prepare_snapshot"]

#: Data, indexes, logs and a copy for the run in hand, per byte of records.
_SPACE_FACTOR = 8
#: Generator parameters that shape the data; the others only shape what is done with it.
_DATA_PARAMETERS = ("field", "insert", "zeropadding", "table", "scale")


#: What of a DBMS spec decides how a data directory is made.
_DATA_KEYS = {
    "name",
    "programs",
    "paths",
    "environment",
    "lifecycle",
    "config_files",
    "connection",
    "loading",
    "generators",
}


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

    @property
    def tables(self) -> Mapping[str, str]:
        """File below the data directory -> table in it, as the DBMS answered after loading."""
        return read_tables(self.directory)


def prepare_snapshot(
    dbms: Dbms,
    workload: Workload,
    load_values: Mapping[str, Value],
    scratch: Path,
    generator: Generator | None = None,
    room: DiskRoom | None = None,
) -> Snapshot:
    """Return the snapshot for these load-time knobs, made now unless it is there already.

    `generator` is the workload's, unless that is YCSB; with `room` it keeps to the budget of a study.
    It appears whole or not at all. Raises SnapshotFailedError when the DBMS refuses, UserError when the disk is full.
    """
    target = scratch / "snapshots" / _snapshot_key(dbms, workload, load_values, generator)
    if not (target / "snapshot.json").exists():
        needed = _space_for(workload, generator)
        purpose = f"loading {workload.records} records of {workload.name} into {dbms.name}"
        if room is not None:
            room.require(needed, purpose)
        else:
            require_free(scratch, needed, purpose)
        part = target.with_name(target.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
        part.mkdir(parents=True, mode=0o711)
        made = _make(dbms, workload, load_values, part, generator)
        write_json(part / "snapshot.json", {**asdict(made), "directory": str(target)})
        part.rename(target)
    if room is not None:
        room.keep(target)
    content = json.loads((target / "snapshot.json").read_text())
    return Snapshot(target, content["version"], content["password"])


def _snapshot_key(dbms: Dbms, workload: Workload, load_values: Mapping[str, Value], generator: Generator | None) -> str:
    shaping = _DATA_PARAMETERS if generator is None else ("",)
    what = {
        "dbms": dbms.model_dump(mode="json", include=_DATA_KEYS),
        "records": workload.records,
        "parameters": {name: value for name, value in workload.parameters.items() if name.startswith(shaping)},
        **({"generator": generator.model_dump(mode="json", exclude={"description", "run"})} if generator else {}),
        **({"generator": workload.generator} if has_own_tables(workload) else {}),
        "load": dict(load_values),
        **({"tables": question} if (question := table_question(dbms)) else {}),
    }
    return f"{dbms.name}-{hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]}"


def _space_for(workload: Workload, generator: Generator | None) -> int:
    size = generator.record_bytes if generator else record_bytes(workload)
    return workload.records * size * _SPACE_FACTOR


def _make(
    dbms: Dbms, workload: Workload, load_values: Mapping[str, Value], part: Path, generator: Generator | None
) -> Snapshot:
    data, log = part / "data", part / "load.log"
    data.mkdir(mode=0o700)
    try:
        with open_instance(dbms, data) as instance:
            if instance.user is not None:
                shutil.chown(data, instance.user, instance.user)
            initialise_data(instance, load_values, log)
            version = read_version(instance)
            call = GeneratorCall(generator, instance, workload, load_values) if generator else None
            answered = _load(instance, workload, load_values, log, call)
            return Snapshot(part, version or answered, instance.password)
    except (ServerFailedError, GeneratorError) as error:
        raise SnapshotFailedError(str(error), error.log_tail) from error


def _load(
    instance: Instance, workload: Workload, load_values: Mapping[str, Value], log: Path, call: GeneratorCall | None
) -> str:
    """Load all records and verify them through a fresh connection; returns the version the DBMS answers, if asked."""
    dbms = instance.dbms
    if dbms.lifecycle is None:
        return _fill_and_verify(instance, workload, load_values, call)
    with Server(instance, dbms.lifecycle, load_values, log) as server:
        server.wait_ready()
        server.set_up()
        version = _fill_and_verify(instance, workload, load_values, call)
        server.stop()
    return version


def _fill_and_verify(
    instance: Instance, workload: Workload, load_values: Mapping[str, Value], call: GeneratorCall | None
) -> str:
    dbms = instance.dbms
    if call is not None:
        load_data(call, supervise)
    else:
        settings = instance.session_statements(load_values, "init")
        session = load_session(instance, workload, [*settings, *dbms.loading.sql], [], threads=1)
        handed_over = instance.knob_properties(load_values, "init")
        _load_client(session.with_connection(handed_over), workload, dbms.loading.tables, instance.data.parent)
    effective = ask_instance(instance)
    if dbms.connection is not None and (call is None or dbms.readback.by_client):
        finish = [] if call is not None else finish_statements(workload, dbms.loading.finish)
        check = load_session(instance, workload, finish, list(load_values), threads=1)
        check = check.with_connection(instance.knob_properties(load_values, "start"))
        effective |= read_back(check, supervise).effective
        keep_tables(dbms, check, instance.data.parent)
    _, differing = compare_effective(dbms, load_values, effective)
    if differing:
        raise SnapshotFailedError(f"not in force after loading: {', '.join(differing)}", json.dumps(effective))
    return effective.get("version", "")


def _load_client(session: Session, workload: Workload, tables: Sequence[str], directory: Path) -> None:
    """Let the load client make the tables, YCSB's by the statements of the spec, and store all rows.

    Rows that come from files lie in `directory` meanwhile.
    """
    with tempfile.TemporaryDirectory(prefix="rows", dir=directory) as rows:
        made = make_files(workload, Path(rows))
        load_records(session.with_connection(made), () if has_own_tables(workload) else tables, supervise)


def load_session(
    instance: Instance, workload: Workload, statements: list[str], knobs: list[str], threads: int
) -> Session:
    """Return a session of the load client on an instance: fixed statements of the spec, then the given ones."""
    dbms = instance.dbms
    connection = dbms.connection
    assert connection is not None, dbms.name  # noqa: S101 - the checks of the study saw to it
    request = readback_request(dbms, knobs)
    if dbms.version_sql is not None:
        request.setdefault("each", {})["version"] = dbms.version_sql
    return Session(
        properties=client_properties(workload),
        binding=connection.binding,
        connection=instance.connection_properties(),
        init=[*connection.session, *statements],
        readback=request,
        directory=instance.runtime / "client",
        library=connection.library,
        environment=instance.environment,
        threads=threads,
    )


def copy_snapshot(snapshot: Snapshot, target: Path, *, cold: bool = False) -> None:
    """Copy the data for one run, as a reflink where the file system can, and wait until it is on the device.

    With `cold` the page cache forgets it, file by file: the rest of the machine keeps its pages, nobody needs root.
    """
    subprocess.run(["cp", "-a", "--reflink=auto", str(snapshot.data), str(target)], check=True)
    subprocess.run(["sync", "-f", str(target)], check=True)
    if cold:
        for path in target.rglob("*"):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
