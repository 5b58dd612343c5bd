"""The programs that answer as a modelled or delayed device would (devmodel/), and a device model in their words."""

import math
import os
from pathlib import Path

from knobscope.errors import UserError
from knobscope.shipped import SHIPPED
from knobscope.specs.models.device_figures import PAGE, SEQUENTIAL, latencies_alone
from knobscope.specs.models.device_model import Delay, DeviceModel
from knobscope.specs.models.quantity import Quantity
from knobscope.specs.models.transport import Transport, read_transport


def find_program(name: str = "devmodel") -> Path:
    """Return a program of devmodel/: from the folder KNOBSCOPE_DEVMODEL, or built next to the checkout.

    Raises UserError when it is not built.
    """
    named = os.environ.get("KNOBSCOPE_DEVMODEL")
    program = (Path(named).absolute() if named else SHIPPED / "devmodel" / "build") / name
    if not program.is_file():
        origin = " (from KNOBSCOPE_DEVMODEL)" if named else ""
        raise UserError(f"the program for modelled devices is not built: no {program}{origin}; run `make setup`")
    return program


def answering_command(model: DeviceModel | Delay, file: Path, image: Path) -> list[str]:
    """Return the command that answers on `file` with the bytes of an image; raises UserError when it is not built."""
    if isinstance(model, Delay):
        return [str(find_program("delayed")), str(file), str(image), *_delay_arguments(model)]
    return [str(find_program()), str(file), str(image), *early_arguments(model), *model_arguments(model)]


def _delay_arguments(delay: Delay) -> list[str]:
    return [f"{name}={round(getattr(delay, name).ns)}" for name in ("read", "write", "flush")]


def model_arguments(model: DeviceModel) -> list[str]:
    """Return a device model as KEY=VALUE arguments of the program; what is absent is left out.

    The program takes nanoseconds, bytes and bytes per second.
    """
    arguments = []
    for key, value in model:
        if key == "power_loss_protection":
            arguments.append(f"protected={int(value)}")
        elif isinstance(value, Quantity):
            arguments.append(f"{key}={value.amount:.6f}")
        elif value is not None:
            arguments.append(f"{key}={value}")
    return arguments


def early_arguments(model: DeviceModel) -> list[str]:
    """Return by how much requests are answered early, how that is corrected, and when not to sleep, as arguments."""
    transport = read_transport(measuring=True)
    if transport is None:
        return []
    options = {
        "--early": transport.costs_us(latencies_alone(model)),
        "--page": (transport.read_page_us, transport.write_page_us, 0.0),
        "--work": _work_us(transport),
        "--page-work": _page_work_us(transport),
        "--spin": (transport.wake_us,),
    }
    arguments = [f"{name}={','.join(str(round(1000 * us)) for us in times)}" for name, times in options.items()]
    arguments.append(f"--outside={','.join(f'{share:.4f}' for share in transport.outside)}")
    waits = {"--queue": transport.queue, "--page-queue": transport.page_queue}
    return arguments + [
        f"{name}={','.join(f'{load:g}={waited:.4f}' for load, waited in loads)}" for name, loads in waits.items()
    ]


def _work_us(transport: Transport) -> tuple[float, float, float]:
    """Return for how long a read, a write and a flush keep the way busy; a flush is taken for a write without bytes."""
    write = 1e6 / transport.write_iops
    return 1e6 / transport.read_iops, write, write


def _page_work_us(transport: Transport) -> tuple[float, float, float]:
    """Return for how much longer each further page of a read, a write and a flush does."""
    rates = transport.read_rate, transport.write_rate, math.inf
    pages = SEQUENTIAL // PAGE - 1
    busy = zip(rates, _work_us(transport), strict=True)
    read, write, _ = (max(0.0, (1e6 * SEQUENTIAL / rate - first) / pages) for rate, first in busy)
    return read, write, 0.0
