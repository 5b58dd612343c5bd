"""What a device model comes to: the figures by which devices are compared, in closed form.

Requests of 4 KiB at random offsets; sequential ones of 128 KiB, four at a time; the sustained state for writes. A disk
that sorts its queue has no closed form beyond depth one.
"""

import math

from knobscope.specs.models.device_model import DeviceModel, DiskModel, FlashModel
from knobscope.specs.models.quantity import Duration
from knobscope.specs.models.transport import Latencies

PAGE = 4096
SEQUENTIAL = 128 << 10
SEQUENTIAL_DEPTH = 4


def _transfer_s(model: DeviceModel, length: int) -> float:
    return length / model.bus.bytes if model.bus else 0.0


def _transfer_to_s(model: FlashModel, length: int) -> float:
    return length / model.write_bus.bytes if model.write_bus else _transfer_s(model, length)


def _closed(depth: int, alone_s: float, each_s: float, bus_s: float) -> float:
    """Return requests per second of a closed loop: one alone takes `alone_s`, many follow each other in the others."""
    rates = [amount / seconds for amount, seconds in ((depth, alone_s), (1, max(each_s, bus_s))) if seconds > 0]
    return min(rates, default=math.inf)


def _disk_read_s(model: DiskModel) -> float:
    """Return how long a read of 4 KiB takes anywhere on a disk."""
    head = model.seek.s + model.rotation.s / 2 + PAGE / model.media.bytes
    return head + model.read.s


def random_read_iops(model: DeviceModel, depth: int) -> float | None:
    """Return random reads of 4 KiB a second at a depth; None where that has no closed form."""
    bus = _transfer_s(model, PAGE)
    if isinstance(model, DiskModel):
        return 1 / _disk_read_s(model) if depth == 1 else None
    return _closed(depth, model.read.s + bus, model.read.s / model.channels, bus)


def random_write_iops(model: DeviceModel, depth: int) -> float | None:
    """Return sustained random writes of 4 KiB a second at a depth; None where that has no closed form."""
    if isinstance(model, DiskModel):
        return None
    bus = _transfer_to_s(model, PAGE)
    return _closed(depth, _write_s(model, PAGE) + bus, _each_write_s(model, PAGE, model.random_write), bus)


def _each_write_s(model: FlashModel, length: int, overhead: Duration) -> float:
    """Return how far apart writes end at best; without a cache each keeps one of the channels busy."""
    written = _write_s(model, length) / model.channels if model.cache.bytes == 0 else 0.0
    return max(_store_s(model, length, overhead), written)


def _write_s(model: FlashModel, length: int) -> float:
    """Return how long one write takes on the device: without a cache its units are filled at once."""
    partly = model.unit is not None and length % model.unit.bytes > 0
    fill = model.fill.s if partly and model.cache.bytes == 0 else 0.0
    return model.write.s + fill


def _store_s(model: FlashModel, length: int, overhead: Duration) -> float:
    return length / model.drain.bytes + overhead.s


def sequential_read_rate(model: DeviceModel, length: int = SEQUENTIAL, depth: int = SEQUENTIAL_DEPTH) -> float:
    """Return bytes per second of sequential reads."""
    bus = _transfer_s(model, length)
    if isinstance(model, DiskModel):
        media = length / model.media.bytes
        return length * _closed(depth, media + model.read.s, media, bus)
    latency = (model.sequential_read or model.read).s
    return length * _closed(depth, latency + bus, latency / model.channels, bus)


def sequential_write_rate(model: DeviceModel, length: int = SEQUENTIAL, depth: int = SEQUENTIAL_DEPTH) -> float:
    """Return bytes per second of sequential writes, sustained."""
    if isinstance(model, DiskModel):
        bus = _transfer_s(model, length)
        return length * _closed(depth, model.write.s + bus, length / model.media.bytes, bus)
    bus = _transfer_to_s(model, length)
    return length * _closed(
        depth, _write_s(model, length) + bus, _each_write_s(model, length, model.sequential_write), bus
    )


def latencies_alone(model: DeviceModel) -> Latencies:
    """Return how long requests of 4 KiB take that find the device idle; of a disk a flush takes as long as a read."""
    bus_s = _transfer_s(model, PAGE)
    if isinstance(model, DiskModel):
        read_s, write_s = _disk_read_s(model), model.write.s + bus_s
    else:
        read_s, write_s = model.read.s + bus_s, _write_s(model, PAGE) + _transfer_to_s(model, PAGE)
    flush_us = flush_latency_us(model)
    return Latencies(1e6 * read_s, 1e6 * write_s, 1e6 * read_s if flush_us is None else flush_us)


def flush_latency_us(model: DeviceModel) -> float | None:
    """Return the latency of a flush after one write of 4 KiB; None for a disk that has to turn for it."""
    flush = model.flush.s * 1e6
    if model.power_loss_protection:
        return flush
    if isinstance(model, DiskModel):
        return None
    partly = model.unit is not None and model.unit.bytes > PAGE and model.cache.bytes > 0
    return flush + (model.fill.s * 1e6 if partly else 0.0)
