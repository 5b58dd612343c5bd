"""Settings of the kernel below the DBMS as factors: a study may vary them in addition to the DBMS's knobs.

Which scheduler orders requests, how far the kernel reads ahead, which file system lies between, and whether it passes a
flush on is decided there, and was tuned for disks as knobs were. The first of the values is the default. Each becomes a
knob `queue.SETTING`, `mount.SETTING` or `filesystem.SETTING` of every DBMS of the study, so plans, rankings,
interactions and effects treat it as they treat knobs; rules find no mismatch in it.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, Literal

from pydantic import Field

from knobscope.specs.models.device import Device, Filesystem
from knobscope.specs.models.knob import Knob, find_repeated
from knobscope.specs.reading.base import Misfit, SpecModel, Value
from knobscope.specs.reading.source import Document, SpecProblem

_SOURCES = {
    "queue": "https://docs.kernel.org/block/queue-sysfs.html",
    "mount": "https://man7.org/linux/man-pages/man8/mount.8.html",
    "filesystem": "https://docs.kernel.org/filesystems/index.html",
}
_PLACES = {
    "queue": "device's queue in the kernel",
    "mount": "mounted file system",
    "filesystem": "file system when it is made",
}
_OF_EXT4 = {"mount": ("barrier", "commit_s", "data"), "filesystem": ("journal",)}
#: Values of these risk committed data, or the file system, in a power cut.
_RISKS: dict[str, list[Value]] = {"barrier": [False], "journal": [False]}


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
        "the journal itself, or neither: files may then end with old content after a crash. A run in which it differs "
        "unmounts the file system and mounts it again.",
    )
    atime: Annotated[list[Literal["relatime", "noatime", "strictatime"]], Field(min_length=2)] | None = Field(
        default=None, description="When reading a file writes the time of it: now and then, never, always."
    )


class FilesystemFactors(_Settings):
    """With what the file system of an emulated device is made, with the values, the default first."""

    type: Annotated[list[Filesystem], Field(min_length=2)] | None = Field(
        default=None, description="Which file system; xfs takes images from 300MiB on."
    )
    block_bytes: Annotated[list[Literal[1024, 2048, 4096]], Field(min_length=2)] | None = Field(
        default=None, description="Its block size."
    )
    journal: Annotated[list[bool], Field(min_length=2)] | None = Field(
        default=None, description="Whether ext4 has a journal. Without one a power cut may damage the file system."
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
    filesystem: FilesystemFactors = Field(
        default=FilesystemFactors(),
        description="With what the file system of an emulated device is made, with the values; the first is the "
        "default. Each is a knob named `filesystem.SETTING`, treated in the same way; each combination of values is a "
        "device of its own with the same model, on which data is loaded anew.",
    )

    @property
    def kernel_settings(self) -> dict[str, dict[str, list[Value]]]:
        """Return family (`queue`, `mount` or `filesystem`) -> settings that the study varies, with their values."""
        families: dict[str, _Settings] = {"queue": self.queue, "mount": self.mount, "filesystem": self.filesystem}
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
            return
        variants = [variant for device in devices.values() for variant in self._list_filesystems(device)]
        other = next(
            (variant for variant in variants if variant.emulate and variant.emulate.filesystem != "ext4"), None
        )
        for family, settings in _OF_EXT4.items():
            for setting in settings:
                if other is not None and setting in self.kernel_settings.get(family, {}):
                    found = f"{other.name}, whose file system has no such setting"
                    yield document.problem(("factors", family, setting), found, "devices with ext4")
        for variant in variants:
            if variant.emulate is not None and variant.emulate.journal:
                for misfit in variant.emulate.find_misfits():
                    found = f"{variant.name}: {misfit.found}"
                    yield document.problem(("factors", "filesystem"), found, misfit.expected)

    def _list_filesystems(self, device: Device) -> Iterator[Device]:
        """Yield a device with each file system that a study varies."""
        names, values = self.filesystem.settings.keys(), self.filesystem.settings.values()
        yield from (with_filesystem(device, dict(zip(names, each, strict=True))) for each in product(*values))


def with_filesystem(device: Device, settings: Mapping[str, Value]) -> Device:
    """Return an emulated device as another one whose file system is made with settings; itself where it is already."""
    if device.emulate is None or not settings:
        return device
    change = {"filesystem" if name == "type" else name: value for name, value in settings.items()}
    emulate = device.emulate.model_copy(update=change)
    if emulate == device.emulate:
        return device
    options = [emulate.filesystem, str(emulate.block_bytes), *([] if emulate.journal else ["no-journal"])]
    return device.model_copy(update={"name": f"{device.name}.{'-'.join(options)}", "emulate": emulate})


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
    is_boolean = all(isinstance(value, bool) for value in values)
    listed = values if any(isinstance(value, str) for value in values) else sorted(values)
    return Knob(
        type="boolean" if is_boolean else "enum",
        values=None if is_boolean else listed,
        default=values[0],
        apply="load" if family == "filesystem" else "restart",
        mechanism="kernel",
        durability=_RISKS.get(setting, False),
        description=f"`{setting}` of the {_PLACES[family]}.",
        source=_SOURCES[family],
    )
