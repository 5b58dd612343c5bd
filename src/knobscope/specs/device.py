"""A storage device, or an emulated one."""

from typing import Literal

from pydantic import Field, model_validator

from knobscope.specs.base import Misfit, Name, SpecModel

__all__ = ["Device", "Emulation", "Tier"]

Tier = Literal["hdd", "sata_ssd", "nvme_ssd", "cloud", "memory"]


class Emulation(SpecModel):
    """A file system of its own in an image file behind a loop device; needs root or sudo."""

    image_directory: str = Field(
        min_length=1, description="Directory of the image file; its speed is the device's speed."
    )
    size_mib: int = Field(ge=64, description="Size of the image in MiB (it is sparse).")
    filesystem: Literal["ext4", "xfs"] = Field(
        default="ext4", description="File system in the image; xfs takes images from 300 MiB on."
    )

    @model_validator(mode="after")
    def _has_room(self) -> "Emulation":
        if self.filesystem == "xfs" and self.size_mib < 300:
            raise Misfit(("size_mib",), str(self.size_mib), "at least 300 for xfs")
        return self


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

    @model_validator(mode="after")
    def _is_one(self) -> "Device":
        if self.path is None and self.emulate is None:
            raise Misfit(("path",), "neither `path` nor `emulate`", "one of them")
        if self.path is not None and self.emulate is not None:
            raise Misfit(("emulate",), "both `path` and `emulate`", "one of them")
        return self

    @property
    def is_dedicated(self) -> bool:
        """Whether all I/O on the file system is the DBMS's doing; emulated devices always are."""
        return self.dedicated or self.emulate is not None
