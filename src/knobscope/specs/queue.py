"""Settings of a block device's queue in the kernel as factors: a study may vary them beside the DBMS's knobs.

Which scheduler orders requests, and how far the kernel reads ahead, is decided below the DBMS, and was tuned for disks
as its knobs were. The first of the values is the default. Each becomes a knob `queue.SETTING` of every DBMS of the
study, so plans, rankings, interactions and effects treat it as they treat knobs; rules find no mismatch in it.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from knobscope.specs.base import Misfit, SpecModel, Value
from knobscope.specs.device import Device
from knobscope.specs.knob import Knob, find_repeated
from knobscope.specs.source import Document, SpecProblem

__all__ = ["QueueFactors", "check_queue", "is_queue_knob", "queue_knob", "queue_knobs", "split_queue"]

_PREFIX = "queue."
_SOURCE = "https://docs.kernel.org/block/queue-sysfs.html"


class QueueFactors(SpecModel):
    """Settings of the queue with their values, the default first."""

    scheduler: Annotated[list[Literal["none", "mq-deadline", "kyber", "bfq"]], Field(min_length=2)] | None = Field(
        default=None, description="What orders the requests to the device; none leaves them as they come."
    )
    read_ahead_kb: Annotated[list[Annotated[int, Field(ge=0, le=2**20)]], Field(min_length=2)] | None = Field(
        default=None, description="KiB that the kernel reads ahead of a sequential reader of the page cache at most."
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield values that are listed twice."""
        for setting, values in self.settings.items():
            yield from find_repeated((setting,), values)

    @property
    def settings(self) -> dict[str, list[Value]]:
        """Settings that the study varies, with their values."""
        listed = {"scheduler": self.scheduler, "read_ahead_kb": self.read_ahead_kb}
        return {name: list(values) for name, values in listed.items() if values is not None}


def queue_knob(setting: str) -> str:
    """Return the name of the knob that stands for a setting of the device's queue."""
    return f"{_PREFIX}{setting}"


def is_queue_knob(knob: str) -> bool:
    """Whether a knob stands for a setting of the device's queue."""
    return knob.startswith(_PREFIX)


def split_queue(configuration: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return what a configuration says of the device's queue, by setting, and all that it says else."""
    queue = {name.removeprefix(_PREFIX): value for name, value in configuration.items() if is_queue_knob(name)}
    return queue, {name: value for name, value in configuration.items() if not is_queue_knob(name)}


def queue_knobs(factors: QueueFactors) -> dict[str, Knob]:
    """Return the settings of a study as knobs."""
    return {queue_knob(setting): _make_knob(setting, values) for setting, values in factors.settings.items()}


def _make_knob(setting: str, values: list[Value]) -> Knob:
    return Knob(
        type="enum",
        values=values if any(isinstance(value, str) for value in values) else sorted(values),
        default=values[0],
        apply="restart",
        mechanism="queue",
        description=f"`{setting}` of the device's queue in the kernel.",
        source=_SOURCE,
    )


def check_queue(document: Document, factors: QueueFactors, devices: Mapping[str, Device]) -> Iterator[SpecProblem]:
    """Yield devices of the study that others use too: their settings are not ours to change."""
    shared = next((name for name, device in devices.items() if device.emulate is None), None)
    if factors.settings and shared is not None:
        yield document.problem(("factors", "queue"), f"{shared}, which others use too", "emulated devices only")
