"""Settings of the kernel below the DBMS as factors: a study may vary them in addition to the DBMS's knobs.

Which scheduler orders requests, how far the kernel reads ahead, and whether the file system passes a flush on is
decided there, and was tuned for disks as knobs were. The first of the values is the default. Each becomes a knob
`queue.SETTING` or `mount.SETTING` of every DBMS of the study, so plans, rankings, interactions and effects treat it as
they treat knobs; rules find no mismatch in it.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from knobscope.specs.models.device import Device
from knobscope.specs.models.knob import Knob, find_repeated
from knobscope.specs.reading.base import Misfit, SpecModel, Value
from knobscope.specs.reading.source import Document, SpecProblem

__all__ = ["KernelFactors", "MountFactors", "QueueFactors", "is_kernel_knob", "kernel_knob", "split_kernel"]

_SOURCES = {
    "queue": "https://docs.kernel.org/block/queue-sysfs.html",
    "mount": "https://man7.org/linux/man-pages/man8/mount.8.html",
}
_OF_EXT4 = ("barrier", "commit_s", "data")


class _Settings(SpecModel):
    """Settings with their values, the default first."""

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield values that are listed twice."""
        for setting, values in self.settings.items():
            yield from find_repeated((setting,), values)

    @property
    def settings(self) -> dict[str, list[Value]]:
        """Settings that the study varies, with their values."""
        return {name: list(values) for name in type(self).model_fields if (values := getattr(self, name)) is not None}


class QueueFactors(_Settings):
    """Settings of the device's queue with their values, the default first."""

    scheduler: Annotated[list[Literal["none", "mq-deadline", "kyber", "bfq"]], Field(min_length=2)] | None = Field(
        default=None, description="What orders the requests to the device; none leaves them as they come."
    )
    read_ahead_kb: Annotated[list[Annotated[int, Field(ge=0, le=2**20)]], Field(min_length=2)] | None = Field(
        default=None, description="KiB that the kernel reads ahead of a sequential reader of the page cache at most."
    )


class MountFactors(_Settings):
    """Settings with which the file system is mounted, with their values, the default first."""

    barrier: Annotated[list[bool], Field(min_length=2)] | None = Field(
        default=None,
        description="Whether ext4 passes flushes on to the device. Without, committed data lies in the device's cache: "
        "safe with power-loss protection only.",
    )
    commit_s: Annotated[list[Annotated[int, Field(ge=1, le=300)]], Field(min_length=2)] | None = Field(
        default=None, description="Seconds after which ext4 commits its journal at the latest."
    )
    data: Annotated[list[Literal["ordered", "journal", "writeback"]], Field(min_length=2)] | None = Field(
        default=None,
        description="What ext4's journal does with data: it is written before its metadata is committed, goes through "
        "the journal itself, or neither: files may then end with old content after a crash. The file system is mounted "
        "anew for each run.",
    )
    atime: Annotated[list[Literal["relatime", "noatime", "strictatime"]], Field(min_length=2)] | None = Field(
        default=None, description="When reading a file writes the time of it: now and then, never, always."
    )


class KernelFactors(SpecModel):
    """What of the kernel a study varies."""

    queue: QueueFactors = Field(
        default=QueueFactors(),
        description="Settings of the queue of the block device in the kernel, on emulated devices, with their values; "
        "the first is the default. Each is a knob named `queue.SETTING`; rules find no mismatch in it, and it is not "
        "tuned.",
    )
    mount: MountFactors = Field(
        default=MountFactors(),
        description="Settings with which the file system of an emulated device is mounted, with their values; the "
        "first is the default. Each is a knob named `mount.SETTING`, treated in the same way.",
    )

    @property
    def kernel_settings(self) -> dict[str, dict[str, list[Value]]]:
        """Return family (`queue` or `mount`) -> settings that the study varies, with their values."""
        families: dict[str, _Settings] = {"queue": self.queue, "mount": self.mount}
        return {family: settings for family, factors in families.items() if (settings := factors.settings)}

    def kernel_knobs(self) -> dict[str, Knob]:
        """Return settings of the kernel as knobs."""
        return {
            kernel_knob(family, setting): _make_knob(family, setting, values)
            for family, settings in self.kernel_settings.items()
            for setting, values in settings.items()
        }

    def check_kernel(self, document: Document, devices: Mapping[str, Device]) -> Iterator[SpecProblem]:
        """Yield devices of the study whose settings are not ours to change, and settings that they do not have."""
        shared = next((name for name, device in devices.items() if device.emulate is None), None)
        if shared is not None:
            for family in self.kernel_settings:
                yield document.problem(("factors", family), f"{shared}, which others use too", "emulated devices only")
        device_name = next(
            (name for name, device in devices.items() if device.emulate and device.emulate.filesystem != "ext4"), None
        )
        for setting in _OF_EXT4 if device_name is not None else ():
            if setting in self.mount.settings:
                found = f"{device_name}, whose file system has no such setting"
                yield document.problem(("factors", "mount", setting), found, "devices with ext4")


def kernel_knob(family: str, setting: str) -> str:
    """Return the name of the knob that stands for a setting of the kernel."""
    return f"{family}.{setting}"


def is_kernel_knob(knob: str) -> bool:
    """Whether a knob stands for a setting of the kernel."""
    return knob.partition(".")[0] in _SOURCES and "." in knob


def split_kernel(configuration: Mapping[str, Value]) -> tuple[dict[str, dict[str, Value]], dict[str, Value]]:
    """Return what a configuration says of the kernel, by family and setting, and all that it says else."""
    kernel: dict[str, dict[str, Value]] = {}
    for name, value in configuration.items():
        if is_kernel_knob(name):
            family, _, setting = name.partition(".")
            kernel.setdefault(family, {})[setting] = value
    return kernel, {name: value for name, value in configuration.items() if not is_kernel_knob(name)}


def _make_knob(family: str, setting: str, values: list[Value]) -> Knob:
    where = "device's queue in the kernel" if family == "queue" else "mounted file system"
    is_boolean = all(isinstance(value, bool) for value in values)
    listed = values if any(isinstance(value, str) for value in values) else sorted(values)
    return Knob(
        type="boolean" if is_boolean else "enum",
        values=None if is_boolean else listed,
        default=values[0],
        apply="restart",
        mechanism="kernel",
        durability=[False] if setting == "barrier" else False,
        description=f"`{setting}` of the {where}.",
        source=_SOURCES[family],
    )
