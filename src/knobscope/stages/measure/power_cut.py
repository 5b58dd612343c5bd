"""What a configuration loses in a power cut: rows that it had acknowledged, on a drive with a volatile cache."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir

from knobscope.devices import PoweredDisk, open_powered_disk
from knobscope.durable_files import synchronise_filesystem
from knobscope.errors import UserError
from knobscope.generators import GeneratorError, RowWriter, Session, count_lost
from knobscope.processes import find_complaint, find_full, find_sent_signal, find_service_user, make_shared_directory
from knobscope.servers import Instance, Server, ServerFailedError, open_instance
from knobscope.specs import Dbms, Value, Workload
from knobscope.stages.measure.load import client_session
from knobscope.stages.measure.validity import RunFailedError
from knobscope.stages.prepare import Snapshot, copy_snapshot

#: A sparse image: what a DBMS allocates beforehand fits, too.
_IMAGE_BYTES = 2 << 30
#: Until a client is connected and has had its first row acknowledged.
_PATIENCE_S = 60


@dataclass(frozen=True)
class PowerCut:
    """One cut. `lost` of the rows `acknowledged` are gone; None: the DBMS did not come back, and `reason` says why."""

    acknowledged: int
    lost: int | None
    reason: str = ""


def cut_power(
    dbms: Dbms,
    workload: Workload,
    configuration: Mapping[str, Value],
    snapshot: Snapshot,
    parent: Path,
    writing_s: float,
) -> PowerCut:
    """Write rows for some seconds, cut the power of their drive, start the DBMS on what is left, and count lost rows.

    The rows are written one after the other over one connection. `parent`: a directory of the caller's alone, in a
    process whose mounts are private. Raises RunFailedError when the DBMS does not run before the cut.
    """
    with open_powered_disk(parent, _IMAGE_BYTES) as disk:
        home = disk.directory / "run"
        make_shared_directory(home, find_service_user())
        copy_snapshot(snapshot, home / "data", cold=False)
        synchronise_filesystem(home)
        try:
            with _running(dbms, workload, configuration, snapshot, home) as (session, instance):
                acknowledged = _write_until_cut(session, instance, disk, writing_s)
        except (ServerFailedError, GeneratorError) as error:
            _require_space(parent, error)
            raise RunFailedError("failed_run", str(error), error.log_tail) from error
        disk.restart()
        try:
            with _running(dbms, workload, configuration, snapshot, home) as (session, instance):
                return PowerCut(acknowledged, count_lost(session, acknowledged, instance.start))
        except (ServerFailedError, GeneratorError) as error:
            if (sent := find_sent_signal(error.exit_code)) is not None:
                raise UserError(f"the start after a power cut was disturbed from outside ({sent}): {error}") from error
            _require_space(parent, error)
            complaint = find_complaint(error.log_tail)
            return PowerCut(acknowledged, None, f"{error}; {complaint}" if complaint else str(error))


def _require_space(parent: Path, error: Exception) -> None:
    """Raise UserError where a directory is full that the cut needs: what failed then says nothing of the setting."""
    if full := find_full({"the image of the drive": [parent], "temporary files (TMPDIR)": [Path(gettempdir())]}):
        raise UserError(f"a power cut was disturbed from outside ({full}): {error}") from error


@contextmanager
def _running(
    dbms: Dbms, workload: Workload, configuration: Mapping[str, Value], snapshot: Snapshot, home: Path
) -> Iterator[tuple[Session, Instance]]:
    """Yield how to call the load client on the DBMS, which runs; its server, if it has one, is killed at the end."""
    with ExitStack() as stack:
        instance = stack.enter_context(open_instance(dbms, home / "data", snapshot.password))
        if dbms.lifecycle is not None:
            log = instance.runtime / "server.log"
            stack.enter_context(Server(instance, dbms.lifecycle, configuration, log)).wait_ready()
        session = client_session(instance, workload, configuration)
        yield replace(session, threads=1, directory=instance.runtime / "witness"), instance


def _write_until_cut(session: Session, instance: Instance, disk: PoweredDisk, writing_s: float) -> int:
    """Return how many rows were acknowledged before the cut."""
    with RowWriter(session, instance.start) as writer:
        writer.wait_writing(_PATIENCE_S)
        time.sleep(writing_s)
        cut_ns = time.time_ns()
        disk.cut()
        return writer.stop(cut_ns)
