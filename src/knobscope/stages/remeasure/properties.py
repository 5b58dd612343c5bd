"""What-if devices: a modelled device with one property changed, so that a difference between the two is due to it.

Every change takes a cost away, but for `one_channel`, which takes an ability away: an effect that the device's
parallelism brings about is gone without it. `everything` takes all costs away at once: what remains of an effect there
is none of the device's doing.

A layer between DBMS and drive could write in other sizes, or to other queues, than the DBMS does (PVLDB 16, 2023,
section 5). What that would gain, drives with such a layer show.

Of a real device nothing can be taken away. There a file on it stands behind a program that delays one kind of request.
"""

from collections.abc import Iterator, Mapping

from knobscope.specs import Device, DiskModel, FlashModel, RuleCause
from knobscope.specs.models.quantity import Duration, Quantity, Rate, Size
from knobscope.specs.models.rule import Factor

EVERYTHING = "everything"
#: Property -> the changed device in words.
PROPERTY_WORDS = {
    "flush": "a flush that takes no time",
    "write_unit": "a write unit of 4 KiB",
    "order": "random access as fast as sequential",
    "rotation": "no rotational delay",
    "bandwidth": "unlimited bandwidth",
    "latency": "reads and writes that take no time of their own",
    "stall": "no pauses to collect garbage",
    "channels": "many more requests served at a time",
    "one_channel": "one request served at a time",
    EVERYTHING: "no costs at all",
    "merged": "a layer that merges small flushed writes",
    "spread": "a layer that spreads requests over queues",
}
#: What a layer between DBMS and drive could do.
LAYERS = MERGED, SPREAD = "merged", "spread"
#: What a rule may blame (`cause: {factor: ...}` in `rule.yaml`), and the properties that show it.
FACTOR_PROPERTIES = {
    "write_size": ("write_unit",),
    "flush": ("flush", "flush_delay"),
    "reads": ("latency", "bandwidth", "order", "rotation", "read_delay"),
    "parallelism": ("channels", "one_channel"),
    "sequentiality": (),
}
_NO_TIME = Duration("0us")
_NO_LIMIT = Rate("1000GB/s")
_SMALLEST_UNIT = Size("4KiB")
_MANY = 4096
#: What small flushed writes are merged to where a drive has no larger unit; over how many queues requests are spread.
_MERGED_SIZE, _QUEUES = Size("32KiB"), 8
_FILESYSTEMS = ("ext4", "xfs")
_MEBIBYTE = 1 << 20
Change = dict[str, Quantity | int]


def what_if_devices(device: Device) -> dict[str, Device]:
    """Return property -> the device with that property changed; those that the device does not have are left out.

    Raises ValueError for a device without a model.
    """
    model = device.model
    if model is None:
        raise ValueError(f"device {device.name} is not modelled")
    changes = dict(_flash_changes(model) if isinstance(model, FlashModel) else _disk_changes(model))
    together = {
        key: value for name, change in changes.items() if name != "one_channel" for key, value in change.items()
    }
    return {name: _change(device, name, change) for name, change in {**changes, EVERYTHING: together}.items()}


def layered_devices(device: Device) -> dict[str, Device]:
    """Return what a layer does -> the device with such a layer above it; none for a disk, which is not modelled so.

    Requests that are spread over queues take a part of their time each, and as many fewer are served at a time: the
    most that the drive can do stays the same, and is reached with fewer requests in flight.
    """
    model = device.model
    if not isinstance(model, FlashModel):
        return {}
    changes: dict[str, Change] = {}
    unit = model.unit if model.unit is not None and model.unit > _SMALLEST_UNIT else _MERGED_SIZE
    if model.flush > _NO_TIME or model.fill > _NO_TIME:
        changes[MERGED] = {"merge": unit}
    queues = min(_QUEUES, model.channels)
    if queues > 1:
        times = {name: getattr(model, name) for name in ("read", "write", "sequential_read", "read_while_draining")}
        left = model.channels // queues
        share = left / model.channels
        parts = {name: Duration(f"{time.ns * share:.0f}ns") for name, time in times.items() if time is not None}
        changes[SPREAD] = {**parts, "channels": left}
    return {name: _change(device, name, change) for name, change in changes.items()}


def blamed_properties(cause: RuleCause | None, device: Device | None) -> frozenset[str]:
    """Return the properties of a modelled device that can confirm or refute a cause; none of another device.

    A device without any costs shows that CPU time is spent for nothing.
    """
    if cause is None or device is None or device.model is None:
        return frozenset()
    return frozenset((EVERYTHING,)) if cause.expected == "no_loss" else factor_properties(cause.factor, device)


def factor_properties(factor: Factor, device: Device | None) -> frozenset[str]:
    """Return the properties of a modelled device that are what a factor costs; none of another device.

    How much a device can do at a time costs nothing: that is left to fio.
    """
    if factor == "parallelism" or device is None or device.model is None:
        return frozenset()
    return frozenset(FACTOR_PROPERTIES[factor]) & what_if_devices(device).keys()


def delayed_device(device: Device, name: str, change: Mapping[str, Duration], filesystem: str, size: int) -> Device:
    """Return a device in a file of some bytes on another one, on which requests are delayed as `change` says.

    It has the file system of the other one where that is one of those that an emulated device may have.
    """
    emulation = {
        "image_directory": device.path if device.emulate is None else device.emulate.image_directory,
        "size": f"{-(-size // _MEBIBYTE)}MiB",
        "filesystem": filesystem if filesystem in _FILESYSTEMS else "ext4",
        "model": {"kind": "delay", **change},
    }
    content = {"description": f"a file on {device.name}, behind a program that delays requests", "tier": device.tier}
    named = {"name": f"{device.name}-if-{name.replace('_', '-')}", "emulate": emulation}
    return Device.model_validate({**content, **named})


def _change(device: Device, name: str, change: Change) -> Device:
    """Return the what-if device, as its spec with `like` and `change` would read."""
    content = device.model_dump(mode="json")
    written = {key: str(value) if isinstance(value, Quantity) else value for key, value in change.items()}
    content["emulate"]["model"] |= written
    about = {"description": f"{device.name} with {PROPERTY_WORDS[name]}", "like": device.name, "change": written}
    return Device.model_validate({**content, **about, "name": f"{device.name}-if-{name.replace('_', '-')}"})


def _flash_changes(model: FlashModel) -> Iterator[tuple[str, Change]]:
    if model.flush > _NO_TIME:
        yield "flush", {"flush": _NO_TIME}
    if model.unit is not None and model.unit > _SMALLEST_UNIT and model.fill > _NO_TIME:
        yield "write_unit", {"unit": _SMALLEST_UNIT, "fill": _NO_TIME}
    order: Change = {"random_write": model.sequential_write} if model.random_write != model.sequential_write else {}
    if model.sequential_read is not None and model.sequential_read != model.read:
        order["read"] = model.sequential_read
    if order:
        yield "order", order
    limits = {"bus": model.bus, "write_bus": model.write_bus, "drain": model.drain}
    yield "bandwidth", {name: _NO_LIMIT for name, limit in limits.items() if limit is not None}
    yield from _latency(model, "sequential_read", "read_while_draining")
    if model.stall is not None:
        yield "stall", {"stall": _NO_TIME}
    yield from _parallelism("channels", model.channels)


def _disk_changes(model: DiskModel) -> Iterator[tuple[str, Change]]:
    flush: Change = {} if model.power_loss_protection else {"power_loss_protection": True}
    if model.flush > _NO_TIME:
        flush["flush"] = _NO_TIME
    if flush:  # most of it is to write out the cache; on flash that is `bandwidth` and, apart from it, `write_unit`
        yield "flush", flush
    yield "order", {"seek": _NO_TIME, "track_seek": _NO_TIME}
    track = model.track or Size(f"{model.media.bytes * model.rotation.s:.0f}B")  # what is read ahead stays the same
    yield "rotation", {"rotation": Duration("1us"), "track": track}
    yield "bandwidth", {**({"bus": _NO_LIMIT} if model.bus else {}), "media": _NO_LIMIT, "track": track}
    yield from _latency(model)
    yield from _parallelism("queue", model.queue)


def _latency(model: FlashModel | DiskModel, *more: str) -> Iterator[tuple[str, Change]]:
    times = {name: getattr(model, name) for name in ("read", "write", *more)}
    slow = [name for name, time in times.items() if time is not None and time > _NO_TIME]
    if slow:
        yield "latency", dict.fromkeys(slow, _NO_TIME)


def _parallelism(parameter: str, now: int) -> Iterator[tuple[str, Change]]:
    if now < _MANY:
        yield "channels", {parameter: _MANY}
    if now > 1:
        yield "one_channel", {parameter: 1}
