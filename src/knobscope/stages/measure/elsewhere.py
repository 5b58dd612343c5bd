"""The machine that the load of a run comes from, when it is another one: its tunnel, its clock, and their record."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from knobscope.generators import telling_of_loss
from knobscope.remote import ClockOffset, RemoteMachine, open_machine
from knobscope.servers import Instance
from knobscope.specs import ClientHost
from knobscope.tables import RunRow


@dataclass(frozen=True)
class ClientMachine:
    """A machine from which the server of a run can be reached, at `port` of its 127.0.0.1."""

    machine: RemoteMachine
    port: int
    offset: ClockOffset  # before the run


@contextmanager
def reach_client_machine(host: ClientHost | None, instance: Instance, run: RunRow) -> Iterator[ClientMachine | None]:
    """Yield the machine that the load comes from, None for this one, and record what is known of it in `run`.

    Clocks are compared before and after, when nothing else is sent. UserError: there is no way in; GeneratorError: the
    machine was lost.
    """
    if host is None:
        yield None
        return
    with ExitStack() as stack:
        with telling_of_loss():
            machine = stack.enter_context(open_machine(host, instance.runtime / "ssh", instance.network))
            reached = ClientMachine(machine, machine.open_tunnel(instance.port), machine.compare_clocks())
            run |= {
                "client_host": host.host,
                "client_machine": machine.description,
                "client_round_trip_us": round(machine.time_round_trip(), 3),
                "client_clock_offset_us": _as_us(reached.offset.offset_ns),
                "client_clock_error_us": _as_us(reached.offset.error_ns),
            }
        yield reached
        with telling_of_loss():
            after = machine.compare_clocks()
        run["client_clock_change_us"] = _as_us(after.offset_ns - reached.offset.offset_ns)


def _as_us(nanoseconds: float) -> float:
    return round(nanoseconds / 1000, 3)
