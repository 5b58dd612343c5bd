"""What a killed server lost, and how long it takes to come back: at the end of a run, on the data that it left."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from knobscope.generators import GeneratorError, Witness, has_own_tables
from knobscope.processes import find_complaint, find_sent_signal, read_tail
from knobscope.servers import Configuration, Instance, Server, ServerFailedError, limit_memory
from knobscope.specs import Lifecycle, Workload
from knobscope.stages.measure.disturbance import notice_disturbance, telling_of_limit
from knobscope.stages.measure.load import client_session
from knobscope.stages.measure.validity import RunFailedError
from knobscope.tables import RunRow

#: For how long rows are written before the server is killed: more than the second for which logs are kept back at most
#: where they are flushed once a second.
_WRITING_S = 1.5
#: Until a client is connected and has had its first row acknowledged, and until it has read all of them again.
_PATIENCE_S = 60
_READING_S = 300


@dataclass
class Crash:
    """The end of a run whose server is killed: `write` before, `recover` afterwards."""

    instance: Instance
    life: Lifecycle
    configuration: Configuration
    workload: Workload
    has_table: bool  # whether there is YCSB's table to write to, from this machine
    stack: ExitStack
    witness: Witness | None = field(default=None, init=False)
    killed_after: float = field(default=0.0, init=False)

    def write(self) -> None:
        """Have rows written and acknowledged, one after the other, until somebody ends the server.

        Raises GeneratorError when no row was.
        """
        if not self.has_table:
            return
        session = client_session(self.instance, self.workload, self.configuration)
        session = replace(session, threads=1, directory=self.instance.runtime / "witness")
        self.witness = self.stack.enter_context(Witness(session, self.instance.start))
        self.witness.wait_writing(_PATIENCE_S)
        time.sleep(_WRITING_S)
        self.killed_after = time.time()

    def recover(self) -> RunRow:
        """Start the server again; return columns of the run: the seconds until it answers, and what it lost.

        Only the server was killed: what it had written without a flush is in the page cache still. Raises
        RunFailedError when it does not come back, or cannot be asked for what was acknowledged.
        """
        log = self.instance.runtime / "recovery.log"
        with limit_memory(self.workload.memory_mib) as limit:
            began = time.monotonic()
            with (
                Server(self.instance, self.life, self.configuration, log) as server,
                notice_disturbance(self.instance, server, limit),
            ):
                limit.add(server.pid)
                try:
                    with telling_of_limit(limit):
                        server.wait_ready()
                        row: RunRow = {"recovery_s": time.monotonic() - began}
                        if self.witness is not None:
                            lost, seconds = self.witness.testify(self.killed_after, _READING_S)
                            row |= {"lost_writes": lost, "lost_s": seconds}
                except ServerFailedError as error:
                    complaint = find_complaint(read_tail(log))
                    message = f"{error}; {complaint}" if complaint else str(error)
                    reason = f"the server was killed after the window and did not come back: {message}"
                    raise RunFailedError("failed_run", reason, error.log_tail) from error
                except GeneratorError as error:
                    reason = f"what the server lost when it was killed is not known: {error}"
                    signal = find_sent_signal(error.exit_code)
                    sign = signal and f"the load client was ended by {signal}, which knobscope did not send"
                    raise RunFailedError("failed_run", reason, error.log_tail, disturbance=sign) from error
        return row


@contextmanager
def open_crash(
    instance: Instance, life: Lifecycle, configuration: Configuration, workload: Workload, *, is_ycsb_here: bool
) -> Iterator[Crash]:
    """Yield the end of a run whose server is to be killed; nothing of it is left afterwards."""
    with ExitStack() as stack:
        has_table = is_ycsb_here and not has_own_tables(workload)
        yield Crash(instance, life, configuration, workload, has_table, stack)
