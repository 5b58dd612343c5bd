"""The load of a run: YCSB's client, or the generator that the workload names, both in the same steps."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from knobscope.generators import CommandRun, GeneratorCall, RemoteYcsbRun, Session, YcsbRun, read_back
from knobscope.servers import Configuration, Instance, MemoryLimit
from knobscope.specs import Generator, Workload
from knobscope.stages.measure.elsewhere import ClientMachine
from knobscope.stages.prepare import load_session


def start_load(
    instance: Instance,
    workload: Workload,
    generator: Generator | None,
    configuration: Configuration,
    interval_ms: int,
    limit: MemoryLimit,
    elsewhere: ClientMachine | None = None,
    *,
    session_thread: str | None = None,
) -> YcsbRun | CommandRun:
    """Start the load on a server that answers; `generator` is None for YCSB. Ends when it is left as a context.

    A DBMS without a server lives in the load's process, which then has the memory limit. The load comes from this
    machine unless there is one `elsewhere`. `session_thread` as of YcsbRun, for a client on this machine.
    """
    window: dict[str, Any] = {
        "warmup_s": workload.warmup_s,
        "measure_s": workload.measure_s,
        "interval_ms": interval_ms,
    }
    if elsewhere is not None:
        # over there the server is at another port
        remote_instance = replace(instance, ports=(elsewhere.port, *instance.ports[1:]))
        return RemoteYcsbRun(
            client_session(remote_instance, workload, configuration),
            elsewhere.machine,
            elsewhere.offset,
            measure_operations=workload.measure_operations,
            **window,
        )

    def start(command: list[str], /, **options: Any) -> "subprocess.Popen[bytes]":
        process = instance.start(command, **options)
        if instance.dbms.lifecycle is None:
            limit.add(process.pid)
        return process

    if generator is None:
        return YcsbRun(
            client_session(instance, workload, configuration),
            measure_operations=workload.measure_operations,
            **window,
            session_thread=session_thread,
            supervise=start,
        )
    return CommandRun(
        GeneratorCall(generator, instance, workload, configuration),
        **window,
        ask=_question(instance, workload, configuration),
        supervise=start,
    )


def client_session(instance: Instance, workload: Workload, configuration: Configuration) -> Session:
    """Return a call of the load client on a running server, with the knobs of the configuration that clients set."""
    statements = instance.session_statements(configuration, "start")
    session = load_session(instance, workload, statements, list(configuration), workload.threads)
    return session.with_connection(instance.knob_properties(configuration, "start"))


def _question(instance: Instance, workload: Workload, configuration: Configuration) -> Callable[[], Mapping[str, str]]:
    """Return how to ask for the values in force while a generator runs: through a connection of the load client."""

    def ask() -> Mapping[str, str]:
        if not instance.dbms.readback.by_client:
            return {}
        session = load_session(instance, workload, [], list(configuration), threads=1)
        return read_back(session, instance.start).effective

    return ask
