"""What-if devices differ in one property, and only in properties that the device has."""

from pathlib import Path

import pytest

from knobscope.specs import Device, read_spec
from knobscope.specs.models.device_figures import random_read_iops
from knobscope.stages.remeasure.properties import EVERYTHING, PROPERTY_WORDS, layered_devices, what_if_devices

SPECS = Path(__file__).parents[3] / "specs/devices"


def shipped(name: str) -> Device:
    return read_spec(SPECS / f"{name}.yaml", Device, None)[1]


def model_of(device: Device) -> dict[str, object]:
    assert device.emulate is not None
    assert device.emulate.model is not None
    return device.emulate.model.model_dump()


@pytest.mark.parametrize("name", ["nvme-consumer", "sata-ssd-plp", "hdd-7200"])
def test_a_what_if_device_differs_in_its_change_alone(name: str) -> None:
    original = shipped(name)
    for property_name, device in {**what_if_devices(original), **layered_devices(original)}.items():
        before, after = model_of(original), model_of(device)
        assert {key: after[key] for key in after if before.get(key) != after[key]} == device.change, property_name
        assert device.like == name
        assert device.name != name
        assert property_name in PROPERTY_WORDS


def test_all_costs_at_once_are_those_of_every_property_but_the_parallelism_that_is_taken_away() -> None:
    devices = what_if_devices(shipped("nvme-consumer"))
    changes = {name: device.change for name, device in devices.items()}
    everything = changes.pop(EVERYTHING)
    one_channel = changes.pop("one_channel")
    assert everything == {key: value for change in changes.values() for key, value in change.items()}
    assert everything["channels"] != one_channel["channels"]


def test_properties_that_a_device_does_not_have_are_left_out() -> None:
    assert {"flush", "write_unit", "order"} <= set(what_if_devices(shipped("nvme-consumer")))
    free = shipped("nvme-consumer").model_dump(mode="json")
    free["emulate"]["model"] |= {"flush": "0us", "unit": None, "fill": "0us", "random_write": "0us", "channels": 1}
    found = set(what_if_devices(Device.model_validate(free)))
    assert found == {"bandwidth", "latency", "channels", EVERYTHING}
    disk = what_if_devices(shipped("hdd-7200"))
    assert "rotation" in disk
    assert disk["flush"].change == {"power_loss_protection": True}
    protected = shipped("hdd-7200").model_dump(mode="json")
    protected["emulate"]["model"] |= {"power_loss_protection": True}
    assert "flush" not in what_if_devices(Device.model_validate(protected))


def test_a_layer_merges_flushed_writes_and_spreads_requests_over_queues() -> None:
    layered = layered_devices(shipped("nvme-consumer"))
    assert layered["merged"].change == {"merge": "32KiB"}
    assert layered["spread"].change == {"read": "7625ns", "write": "1500ns", "channels": 6}
    plain, spread = (device.model for device in (shipped("nvme-consumer"), layered["spread"]))
    assert plain is not None and spread is not None
    assert random_read_iops(spread, 1024) == random_read_iops(plain, 1024)  # the drive itself does no more
    assert (random_read_iops(spread, 6) or 0) > 7 * (random_read_iops(plain, 6) or 0)
    assert layered_devices(shipped("hdd-7200")) == layered_devices(shipped("local-disk")) == {}


def test_queues_whose_number_does_not_divide_that_of_channels_leave_the_drive_as_able() -> None:
    plain = shipped("sata-ssd").model
    spread = layered_devices(shipped("sata-ssd"))["spread"].model
    assert plain is not None and spread is not None and plain.channels % 8
    assert random_read_iops(spread, 1024) == pytest.approx(random_read_iops(plain, 1024), rel=0.01)


def test_a_device_without_a_model_has_none() -> None:
    with pytest.raises(ValueError, match="local-disk is not modelled"):
        what_if_devices(shipped("local-disk"))
