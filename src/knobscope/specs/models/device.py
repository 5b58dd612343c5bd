"""A storage device, an emulated one, or one that differs from another in some property."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from knobscope.specs.models.device_model import Delay, DeviceModel, DiskModel, FlashModel
from knobscope.specs.models.quantity import Size
from knobscope.specs.reading.base import Misfit, Name, SpecModel, Value

Filesystem = Literal["ext4", "xfs"]
Tier = Literal["hdd", "sata_ssd", "nvme_ssd", "cloud", "memory"]
_SMALLEST, _SMALLEST_XFS = 64 << 20, 300 << 20


def _check_image_size(size: Size) -> Size:
    if size.bytes < _SMALLEST or size.bytes % 4096:
        raise ValueError("at least 64MiB, and a multiple of 4KiB")
    return size


class Emulation(SpecModel):
    """A file system of its own in an image file behind a loop device; needs root or the device helper."""

    image_directory: str = Field(
        default="/dev/shm",  # noqa: S108 - main memory, where no other directory is named
        min_length=1,
        description="Directory of the image file. Without a `model`, or with a delay, its speed is the device's own; "
        "else it has to be faster than the modelled device, as main memory is.",
    )
    size: Annotated[Size, AfterValidator(_check_image_size)] = Field(
        description="Size of the image, e.g. 2GiB (it is sparse, but for one with a delay)."
    )
    filesystem: Filesystem = Field(
        default="ext4", description="File system in the image; xfs takes images from 300MiB on."
    )
    # Left out where they are usual, as devices of earlier versions were: what identifies their runs stays the same.
    block_bytes: Literal[1024, 2048, 4096] = Field(
        default=4096, exclude_if=lambda value: value == 4096, description="Block size of the file system."
    )
    journal: bool = Field(
        default=True,
        exclude_if=lambda value: value is True,
        description="Whether ext4 has a journal. Without one a power cut may damage the file system.",
    )
    model: Annotated[FlashModel | DiskModel | Delay, Field(discriminator="kind")] | None = Field(
        default=None,
        description="How long requests take: parameters, or the name of a device spec that has them; absent: as long "
        "as the image directory's own disk takes.",
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield an image that is too small for its file system, and one that would have to do without a journal."""
        if not self.journal and self.filesystem != "ext4":
            yield Misfit(("journal",), f"none, for {self.filesystem}", "true, or ext4")
        if self.filesystem == "xfs" and self.size.bytes < _SMALLEST_XFS:
            yield Misfit(("size",), str(self.size), "at least 300MiB for xfs")


class Precondition(SpecModel):
    """What is done to a device before each block of runs, in this order."""

    trim: bool = Field(
        default=False,
        description="Whether the free space of its file system is discarded (fstrim; needs root).",
    )
    fill: Size | None = Field(
        default=None,
        description="So many random bytes are written to a file, which is removed then: a flash drive comes to its "
        "steady state, and a part of its endurance is used up.",
    )
    rest_s: int = Field(default=0, ge=0, le=3600, description="Seconds of rest, in which it cools down.")

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield that nothing is done."""
        if not self.trim and self.fill is None and not self.rest_s:
            yield Misfit((), "none of `trim`, `fill`, `rest_s`", "one of them, or no `precondition`")


class Device(SpecModel):
    """Where data directories are put. The block device behind `path` is found by itself."""

    name: Name = Field(description="The file's name without .yaml.")
    description: str = Field(description="What it is, for the report.")
    tier: Literal[Tier, "auto"] = Field(
        description="Class of storage, slowest first, as rules compare it; `auto` asks the kernel."
    )
    path: str | None = Field(
        default=None,
        min_length=1,
        description="An existing directory on the device; a relative one starts at the checkout.",
    )
    emulate: Emulation | None = Field(
        default=None, description="Instead of `path`: a file system of its own, behind a loop device."
    )
    dedicated: bool = Field(
        default=False,
        description="True when nothing but the DBMS uses the file system: then all I/O on it is counted as its own.",
    )
    precondition: Precondition | None = Field(
        default=None, description="What is done to it before each block of runs; absent: nothing."
    )
    health: bool = Field(
        default=False,
        description="Whether temperature and wear are read before and after each run (table `device_health`): from "
        "sysfs, and as root from smartctl or nvme where they are installed.",
    )
    like: Name | None = Field(
        default=None,
        description="A what-if device: the modelled device from which this one takes all that it does not state.",
    )
    change: dict[str, Value] = Field(
        default_factory=dict,
        description="With `like`: parameters of the device model that differ, with their values, e.g. {flush: 0us}.",
    )
    renamed: Name | None = Field(
        default=None,
        description="The name that this device has now. A study that names the old one keeps its results, and a notice "
        "says what to write.",
    )
    source: list[str] = Field(
        default_factory=list, description="Where the figures of the device model were published: title or address."
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield that neither or both of `path` and `emulate` are given."""
        if self.path is None and self.emulate is None:
            yield Misfit(("path",), "neither `path` nor `emulate`", "one of them")
        if self.path is not None and self.emulate is not None:
            yield Misfit(("emulate",), "both `path` and `emulate`", "one of them")
        if self.change and self.like is None:
            yield Misfit(("change",), "this key without `like`", "both or neither")

    @property
    def model(self) -> DeviceModel | None:
        """What says how long requests take; None of real devices, and of those that are only delayed."""
        model = None if self.emulate is None else self.emulate.model
        return None if isinstance(model, Delay) else model

    @property
    def notice(self) -> str | None:
        """Say what to write instead of a name that was changed; None where it was not."""
        return f"device {self.name} is now called {self.renamed}: write {self.renamed}" if self.renamed else None

    @property
    def is_dedicated(self) -> bool:
        """Whether all I/O on the file system is the DBMS's doing; emulated devices always are."""
        return self.dedicated or self.emulate is not None
