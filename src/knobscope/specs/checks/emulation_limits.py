"""What of a modelled device this machine cannot emulate: the way to it has a latency and a ceiling of its own."""

from knobscope.specs.models.device import Device
from knobscope.specs.models.device_figures import latencies_alone, random_read_iops, random_write_iops
from knobscope.specs.models.device_model import DeviceModel
from knobscope.specs.models.transport import Transport, read_transport

#: As many requests as a loop device holds.
_DEPTH = 128
#: A device is met where a model that takes no time is this many times as fast: one that takes time leaves the way idle
#: now and then. Devices nearer to the highest rate were up to 30 % too slow (benchmarks/devices.py).
HEADROOM = 1.15
#: A device that is slower by this share than it should be is not noticed among the noise of runs.
_TOLERANCE = 1.05


def describe_limits(device: Device) -> list[str]:
    """Return, in sentences, what of a modelled device cannot be emulated here; nothing for other devices."""
    if device.model is None:
        return []
    transport = read_transport()
    if transport is None:
        return [
            f"{device.name}: what this machine can emulate was not measured yet; `knobscope devices calibrate` does, "
            "or the first study"
        ]
    return [
        f"{device.name}: {text}" for text in [*_rates(device.model, transport), *_latencies(device.model, transport)]
    ]


def _rates(model: DeviceModel, transport: Transport) -> list[str]:
    texts = []
    for kind, wanted, ceiling in (
        ("random reads", random_read_iops(model, _DEPTH), transport.read_iops / HEADROOM),
        ("random writes", random_write_iops(model, _DEPTH), transport.write_iops / HEADROOM),
    ):
        if wanted is not None and wanted > ceiling:
            texts.append(
                f"{kind} are not emulated reliably here above {_round(ceiling)} IOPS; the device has "
                f"{_round(wanted)} at depth"
            )
    return texts


def _latencies(model: DeviceModel, transport: Transport) -> list[str]:
    alone = latencies_alone(model)
    wanted = zip(("read", "write", "flush"), alone, transport.costs_us(alone), strict=True)
    return [
        f"a {kind} cannot be emulated here below {least:.0f} µs; the device takes {us:.0f} µs"
        for kind, us, least in wanted
        if least > us * _TOLERANCE
    ]


def _round(rate: float) -> str:
    return f"{float(f'{rate:.2g}'):,.0f}"
