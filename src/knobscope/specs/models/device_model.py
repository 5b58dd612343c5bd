"""Device models: what an emulated device does with a request, and how long it takes. Every parameter has a unit.

A delay is none: there the storage below the image takes as long as it takes, and requests are answered later.
"""

from typing import Literal

from pydantic import Field, model_validator

from knobscope.specs.models.quantity import Duration, Percentage, Rate, Size
from knobscope.specs.reading.base import Misfit, SpecModel

_NO_TIME = Duration("0us")


class _Common(SpecModel):
    """What flash and disks share."""

    read: Duration = Field(description="A read at depth one, until its bytes go over the bus.")
    write: Duration = Field(description="A write that the cache takes, until its bytes have come over the bus.")
    bus: Rate | None = Field(default=None, description="Bandwidth between host and device; absent: no limit.")
    cache: Size = Field(
        description="Written data that the device has answered and not yet stored; 0B: writes are stored at once."
    )
    flush: Duration = Field(
        description="What a flush takes beyond storing what is in the cache; with nothing new, it takes a write."
    )
    power_loss_protection: bool = Field(
        default=False, description="True when the cache survives a power cut: a flush then stores nothing."
    )
    jitter: Percentage = Field(
        default=Percentage("0%"),
        description="Spread of each latency: standard deviation of its logarithm; the mean stays.",
    )
    seed: int = Field(default=1, ge=0, le=2**32 - 1, description="Seed of the jitter.")


class FlashModel(_Common):
    """An SSD: channels, a bus, a cache that is stored in units, flushes."""

    kind: Literal["flash"] = Field(description="flash or disk.")
    channels: int = Field(ge=1, le=65536, description="Reads that are served at a time (without a cache, writes too).")
    write_bus: Rate | None = Field(
        default=None, description="Bandwidth to the device where that is a way of its own; absent: shared with reads."
    )
    sequential_read: Duration | None = Field(
        default=None, description="A read that begins where another one ended (read-ahead); absent: as `read`."
    )
    read_while_draining: Duration | None = Field(
        default=None, description="A read while the cache is being stored, when that is longer than `read`."
    )
    drain: Rate = Field(description="Rate at which the cache is stored: sequential writes of large size, sustained.")
    random_write: Duration = Field(
        default=_NO_TIME, description="By how much each random write delays the drain, beyond its bytes."
    )
    sequential_write: Duration = Field(default=_NO_TIME, description="The same for each sequential write.")
    unit: Size | None = Field(
        default=None, description="Write unit: one that is flushed before all of it was written has to be filled."
    )
    fill: Duration = Field(
        default=_NO_TIME,
        description="Filling one unit that was written in part; as many at a time as there are channels.",
    )
    # Left out where there is none, as in earlier versions: what identifies runs on a device stays the same.
    merge: Size | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="What a layer above the drive gathers of small flushed writes, for what-if devices: until so many "
        "bytes were written since the last flush that stored them, a flush takes a write; whole units are stored then.",
    )
    stall: Duration | None = Field(default=None, description="Garbage collection, in which nothing is answered.")
    stall_every: Size | None = Field(default=None, description="Data written between two stalls.")

    @model_validator(mode="after")
    def _fits(self) -> "FlashModel":
        if self.unit is not None and (self.unit.bytes < 512 or self.unit.bytes % 512):
            raise Misfit(("unit",), str(self.unit), "a multiple of 512B")
        if self.unit is None and self.fill > _NO_TIME:
            raise Misfit(("fill",), f"{self.fill} and no `unit`", "both or neither")
        if (self.stall is None) != (self.stall_every is None):
            raise Misfit(("stall",), "one of `stall` and `stall_every`", "both or neither")
        return self


class DiskModel(_Common):
    """A disk: one head above turning platters, which takes the nearest request of a queue."""

    kind: Literal["disk"] = Field(description="flash or disk.")
    seek: Duration = Field(description="Mean seek between two random positions; grows with the root of the distance.")
    track_seek: Duration = Field(description="Seek to a neighbouring track.")
    rotation: Duration = Field(description="One turn: 8.333ms at 7200 turns a minute.")
    media: Rate = Field(description="Rate to and from the platters.")
    # Left out where it follows from the others: what identifies runs on a device stays the same.
    track: Size | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Bytes of a track, which a disk reads ahead; absent: what passes under the head in one turn.",
    )
    queue: int = Field(default=32, ge=1, description="Requests among which the disk chooses the nearest.")

    @model_validator(mode="after")
    def _fits(self) -> "DiskModel":
        if self.track_seek > self.seek:
            raise Misfit(("track_seek",), f"{self.track_seek}, longer than `seek`", "at most `seek`")
        if self.rotation == _NO_TIME:
            raise Misfit(("rotation",), str(self.rotation), "a duration above 0")
        return self


class Delay(SpecModel):
    """Storage as it is, only later: requests take as long as on the image directory's own disk, and so much more."""

    kind: Literal["delay"] = Field(description="delay.")
    read: Duration = Field(default=_NO_TIME, description="By how much reads take longer.")
    write: Duration = Field(default=_NO_TIME, description="By how much writes take longer.")
    flush: Duration = Field(default=_NO_TIME, description="By how much flushes take longer.")


DeviceModel = FlashModel | DiskModel
