"""What the way to a modelled device costs on this machine: loop device, FUSE, two changes of process.

The model answers earlier by this much, so that a device of 60 us answers in 60 us. What is faster than the way itself
cannot be emulated here, and is said so.
"""

import os
import platform
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

from knobscope.durable_files import DamagedFileError, read_sealed, write_sealed

#: How long a device takes for which all processors have gone to sleep, and have to wake for the answer.
WAIT_US = 150.0


@dataclass(frozen=True)
class Transport:
    """What a model comes to that takes no time, through a file system.

    Latencies at depth one and the highest rates, of requests of 4 KiB; bytes per second of 128 KiB at depth four.
    `wake_us` is how much later than requested a sleeping program goes on: the last part of a wait it must not sleep.
    `slept_us` is what else comes on top of a latency after a wait of WAIT_US and more.
    `read_page_us` and `write_page_us` come on top for each 4 KiB more of a larger request.
    `queue` says what comes on top with others under way: with how many, and for the work of how many a request waits;
    `page_queue` the same for the work that their further pages are.
    `outside` is the share of the latencies of a read, a write and a flush that a program pays before and after the
    block layer, which the kernel's counts of the device do not hold.
    """

    read_us: float
    write_us: float
    flush_us: float
    wake_us: float
    slept_us: float
    read_iops: float
    write_iops: float
    read_rate: float
    write_rate: float
    read_page_us: float = 0.0
    write_page_us: float = 0.0
    queue: tuple[tuple[float, float], ...] = ()
    page_queue: tuple[tuple[float, float], ...] = ()
    outside: tuple[float, ...] = (0.0, 0.0, 0.0)

    def costs_us(self, alone: "Latencies") -> "Latencies":
        """Return what the way adds to the latencies of a device, which answers early by as much.

        What comes on top of a wait grows from the wait on in which the program sleeps at all.
        """
        at_once = Latencies(self.read_us, self.write_us, self.flush_us)
        return Latencies(*(us + self._slept_us(us, wait) for us, wait in zip(at_once, alone, strict=True)))

    def _slept_us(self, at_once_us: float, wait_us: float) -> float:
        awake_us = at_once_us + self.wake_us
        share = (wait_us - awake_us) / (WAIT_US - awake_us) if awake_us < WAIT_US else 0.0
        return self.slept_us * min(1.0, max(0.0, share))


class Latencies(NamedTuple):
    """Microseconds of a read and a write of 4 KiB and of a flush, each alone."""

    read_us: float
    write_us: float
    flush_us: float


def transport_file() -> Path:
    """Return where the figures of this user on this machine are kept; nodes of a cluster may share the folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "knobscope" / f"transport-{platform.node()}.json"


def _machine() -> dict[str, object]:
    """Return what the figures hold for: another kernel or processor has others, and so have processors that sleep."""
    awake = os.access("/dev/cpu_dma_latency", os.W_OK)  # devmodel then keeps them so
    return {"kernel": platform.release(), "machine": platform.node(), "cores": os.cpu_count(), "awake": awake}


def read_transport(*, measuring: bool = False) -> Transport | None:
    """Return the figures that were measured on this machine; None when there are none for it as it is now.

    `measuring`: also those of a calibration that has not ended, which hold for its own devices alone.
    """
    try:
        content = read_sealed(transport_file())
    except (FileNotFoundError, DamagedFileError):
        return None  # measured anew
    figures = content["transport"]
    holds = content["machine"] == _machine() and set(figures) == {field.name for field in fields(Transport)}
    if not holds or (content.get("is_measuring") and not measuring):
        return None
    loads = {name: tuple(map(tuple, figures[name])) for name in ("queue", "page_queue")}
    return Transport(**figures | loads | {"outside": tuple(figures["outside"])})


def write_transport(transport: Transport, *, measuring: bool = False) -> None:
    """Keep the figures; `measuring`: until the calibration ends, which may be killed before."""
    content = {"machine": _machine(), "transport": asdict(transport)}
    write_sealed(transport_file(), content | ({"is_measuring": True} if measuring else {}))


def forget_transport() -> None:
    """Remove the figures, before new ones are measured."""
    transport_file().unlink(missing_ok=True)
