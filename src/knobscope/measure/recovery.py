"""How long a server takes to come back: killed at the end of its run, and started again on what it left."""

import time

from knobscope.measure.complaints import find_complaint
from knobscope.measure.validity import RunFailedError
from knobscope.servers import Configuration, Instance, Server, ServerFailedError, limit_memory, read_tail
from knobscope.specs import Lifecycle

__all__ = ["measure_recovery"]


def measure_recovery(
    instance: Instance, life: Lifecycle, configuration: Configuration, memory_mib: int | None
) -> float:
    """Start a server on the data of one that was killed; return the seconds until it answers. It is killed again.

    Only the server was killed: what it had written without a flush is in the page cache still. Raises RunFailedError
    when it does not come back.
    """
    log = instance.runtime / "recovery.log"
    with limit_memory(memory_mib) as limit:
        began = time.monotonic()
        with Server(instance, life, configuration, log) as server:
            limit.add(server.pid)
            try:
                server.wait_ready()
            except ServerFailedError as error:
                complaint = find_complaint(read_tail(log))
                words = f"{error}; {complaint}" if complaint else str(error)
                reason = f"the server was killed after the window and did not come back: {words}"
                raise RunFailedError("failed_run", reason, error.log_tail) from error
            return time.monotonic() - began
