"""Data that is loaded already: asked through the load client, and copied for tests that change it."""

import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from knobscope.generators import read_back
from knobscope.servers import Server, open_instance
from knobscope.specs import Dbms, Workload
from knobscope.stages.measure.run import copied_data
from knobscope.stages.prepare import Snapshot, load_session


def ask(dbms: Dbms, workload: Workload, snapshot: Snapshot, scratch: Path, question: str) -> dict[str, str]:
    """Return the names and values that a query answers."""
    with ExitStack() as stack:
        data = stack.enter_context(copied_data(snapshot, scratch / "asked", cold=False))
        instance = stack.enter_context(open_instance(dbms, data, snapshot.password))
        if dbms.lifecycle is not None:
            log = instance.runtime / "server.log"
            stack.enter_context(Server(instance, dbms.lifecycle, {}, log)).wait_ready()
        session = load_session(instance, workload, [], [], threads=1)
        return read_back(replace(session, readback={"query": question}), instance.start).effective


def copy_loaded(snapshot: Snapshot, folder: Path) -> Snapshot:
    """Return a snapshot of the test's own."""
    subprocess.run(["cp", "-a", snapshot.directory, folder / "snapshot"], check=True)  # owners too
    return replace(snapshot, directory=folder / "snapshot")
