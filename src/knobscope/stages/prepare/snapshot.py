"""Loads data once per load-time setting and keeps the result, from which every run gets a copy."""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from knobscope.devices import require_free
from knobscope.durable_files import DamagedFileError, read_sealed, remove, synchronise_filesystem, write_sealed
from knobscope.errors import UserError
from knobscope.generators import (
    GeneratorCall,
    GeneratorError,
    Session,
    client_properties,
    finish_statements,
    has_own_tables,
    load_data,
    load_records,
    loading_threads,
    make_files,
    read_back,
)
from knobscope.identity import data_identity, hash_identity
from knobscope.processes import (
    find_complaint,
    find_full,
    find_sent_signal,
    find_service_user,
    find_system_error,
    make_shared_directory,
    share_files,
    write_shared,
)
from knobscope.servers import (
    Instance,
    Server,
    ServerFailedError,
    ask_instance,
    compare_effective,
    copy_data,
    initialise_data,
    make_data_directory,
    make_part_homes,
    open_instance,
    part_statements,
    read_version,
    readback_request,
)
from knobscope.specs import Dbms, Generator, Value, Workload, split_configuration, split_kernel
from knobscope.stages.prepare.room import DiskRoom, estimate_space
from knobscope.stages.prepare.tables import keep_tables, read_tables

#: File of the superuser's password next to the data: nobody but us reads it.
_PASSWORD = "password"  # noqa: S105 - the name of a file


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
    Settings of the workload among them shape the data, too; those of the file system say only where it lies. It appears
    whole or not at all. Raises SnapshotFailedError when the DBMS refuses, UserError when the disk is full.
    """
    workload, load_values, _ = split_configuration(workload, split_kernel(load_values)[1])
    target = scratch / "snapshots" / _snapshot_key(dbms, workload, load_values, generator)
    if not _is_whole(target):
        part = target.with_name(target.name + ".part")
        for leftover in (part, target):  # before the room is counted
            remove(leftover)
        estimate = estimate_space(workload, generator)
        kind = hash_identity(data_identity(dbms, workload, generator, ()), 12)
        purpose = f"loading {workload.size} of {workload.name} into {dbms.name}"
        if room is not None:
            room.require(room.space_for(kind, estimate), purpose)
        else:
            require_free(scratch, estimate, purpose)
        part.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        make_shared_directory(part, find_service_user())
        try:
            version = _make(dbms, workload, load_values, part, generator)
        except SnapshotFailedError:
            remove(part)  # else it would count as data of the study
            raise
        synchronise_filesystem(part)
        write_sealed(part / "snapshot.json", {"version": version, "kind": kind, "files": _list_files(part)})
        part.rename(target)
    if room is not None:
        room.keep(target)
    content = read_sealed(target / "snapshot.json")
    return Snapshot(target, content["version"], (target / _PASSWORD).read_text(encoding="utf-8"))


def remove_leftovers(scratch: Path) -> None:
    """Remove what a killed call was measuring or loading, before room is counted; the device must be locked."""
    for leftover in (scratch / "runs", *scratch.glob("snapshots/*.part")):
        shutil.rmtree(leftover, ignore_errors=True)  # its server may still be ending
    (scratch / "fill").unlink(missing_ok=True)  # of a precondition


def _is_whole(target: Path) -> bool:
    """Whether there is a snapshot whose files are still those that were written; says so when they are not."""
    if not all((target / name).exists() for name in ("snapshot.json", _PASSWORD)):
        return False
    try:
        files = read_sealed(target / "snapshot.json")["files"]
        if files != _list_files(target):
            raise DamagedFileError(target, "its files are no longer those that were written")
    except DamagedFileError as error:
        print(f"knobscope: {error}; the data is loaded anew", file=sys.stderr)
        return False
    return True


def _list_files(snapshot: Path) -> dict[str, list[int]]:
    """Return size in bytes and time of the last change in ns of all files of the data, by path.

    Paths start in the data directory; those of parts that lie next to it are `../parts/...`. Raises UserError when some
    of it cannot be read, which is no damage.
    """

    def refuse(error: OSError) -> None:
        if isinstance(error, PermissionError):  # no directory, or a file in its place, is found by what it lacks
            raise UserError(f"{error.filename} cannot be read ({error.strerror}); call as the user who loaded the data")

    files = {}
    for folder, _, names in (entry for top in ("data", "parts") for entry in os.walk(snapshot / top, onerror=refuse)):
        for name in names:
            path = Path(folder, name)
            state = path.lstat()
            if stat.S_ISREG(state.st_mode):
                files[os.path.relpath(path, snapshot / "data")] = [state.st_size, state.st_mtime_ns]
    return files


def _snapshot_key(dbms: Dbms, workload: Workload, load_values: Mapping[str, Value], generator: Generator | None) -> str:
    identity = {**data_identity(dbms, workload, generator, load_values), "load": dict(load_values)}
    return f"{dbms.name}-{hash_identity(identity, 12)}"


def _make(
    dbms: Dbms, workload: Workload, load_values: Mapping[str, Value], part: Path, generator: Generator | None
) -> str:
    """Load the data and keep the password that it goes with; return the version of the DBMS."""
    data, log = part / "data", part / "load.log"
    make_data_directory(data)
    homes = make_part_homes(dbms, part)
    try:
        with open_instance(dbms, data, homes=homes) as instance:
            write_shared(part / _PASSWORD, instance.password, None, durable=True)
            initialise_data(instance, load_values, log)
            version = read_version(instance)
            call = GeneratorCall(generator, instance, workload, load_values) if generator else None
            answered = _load(instance, workload, load_values, log, call)
            return version or answered
    except (ServerFailedError, GeneratorError) as error:
        sign = find_sent_signal(error.exit_code) or find_system_error(f"{error}\n{error.log_tail}")
        temporary = Path(tempfile.gettempdir())
        sign = sign or find_full({"the data": [part], "temporary files (TMPDIR)": [temporary]})
        if sign is not None:
            raise UserError(
                f"loading data into {dbms.name} was disturbed from outside ({sign}): {error}. Correct that and call "
                f"again.\n{error.log_tail}"
            ) from error
        complaint = find_complaint(error.log_tail)
        words = "" if complaint is None or complaint in str(error) else f"; first complaint of its log: {complaint}"
        raise SnapshotFailedError(f"while data was loaded: {error}{words}", error.log_tail) from error


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
        try:
            version = _fill_and_verify(instance, workload, load_values, call)
        except (ServerFailedError, GeneratorError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = server.process.wait(0.5)  # its clients notice first
                message = f"the server ended with exit code {code}: {error}"
                raise ServerFailedError(message, server.quote(), code) from error
            raise
        server.stop()
    return version


def _fill_and_verify(
    instance: Instance, workload: Workload, load_values: Mapping[str, Value], call: GeneratorCall | None
) -> str:
    dbms = instance.dbms
    if call is not None:
        load_data(call)
    else:
        settings = instance.session_statements(load_values, "init")
        session = load_session(instance, workload, [*settings, *dbms.loading.sql], [], loading_threads(workload))
        handed_over = instance.knob_properties(load_values, "init")
        _load_client(session.with_connection(handed_over), workload, instance)
    effective = ask_instance(instance) if load_values else {}  # a server may report only what it was told
    moving = part_statements(dbms, instance.homes)
    if dbms.connection is not None and (call is None or dbms.readback.by_client or moving):
        rewrite = dbms.rewrite if workload.parameters.get("rewrite") else []
        finish = [] if call is not None else finish_statements(workload, [*rewrite, *dbms.loading.finish])
        check = load_session(instance, workload, [*moving, *finish], list(load_values), threads=1)
        check = check.with_connection(instance.knob_properties(load_values, "start"))
        effective |= read_back(check, instance.start, timeout=3600).effective  # moves and rewrites take their time
        keep_tables(instance, check, instance.data.parent)
    _, differing = compare_effective(dbms, load_values, effective)
    if differing:
        raise SnapshotFailedError(f"not in force after loading: {', '.join(differing.values())}", json.dumps(effective))
    return effective.get("version", "")


def _load_client(session: Session, workload: Workload, instance: Instance) -> None:
    """Let the load client make the tables, YCSB's by the statements of the spec, and store all rows.

    Rows that come from files lie next to the data meanwhile.
    """
    tables = instance.dbms.loading.tables
    with tempfile.TemporaryDirectory(prefix="rows", dir=instance.data.parent) as rows:
        made = make_files(workload, Path(rows))
        share_files(Path(rows), instance.user)
        start = partial(instance.start, reach=[Path(rows)])
        load_records(session.with_connection(made), () if has_own_tables(workload) else tables, start)


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
        jvm=connection.jvm,
        library=connection.library,
        driver=connection.driver,
        environment=instance.environment,
        user=instance.user,
        threads=threads,
    )


def copy_snapshot(snapshot: Snapshot, target: Path, *, cold: bool = False) -> None:
    """Copy the data for one run and wait until it is on the device; with `cold` it is not in the page cache."""
    copy_data(snapshot.data, target, cold=cold)
