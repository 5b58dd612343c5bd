"""What disks tell of themselves, as smartctl and nvme write it, and what is done to a device before a block."""

from pathlib import Path

import pytest

from knobscope.devices import find_block_device, open_device, precondition, read_health
from knobscope.devices.health import Health, parse_nvme, parse_smartctl
from knobscope.errors import UserError
from knobscope.specs import Device
from knobscope.specs.models.device import Precondition

#: What `smartctl --json --attributes` (7.3) writes of an NVMe drive, without what is not read.
SMARTCTL_NVME = {
    "smartctl": {"exit_status": 0},
    "nvme_smart_health_information_log": {
        "critical_warning": 4,
        "temperature": 35,
        "available_spare": 90,
        "percentage_used": 2,
        "data_units_written": 85848679,
    },
    "temperature": {"current": 35},
}
#: The same of a SATA drive, which says of its wear nothing that all makers agree on.
SMARTCTL_SATA = {"smartctl": {"exit_status": 0}, "temperature": {"current": 31}, "ata_smart_attributes": {"table": []}}
#: What it writes of a disk that it cannot ask, here a virtual one.
SMARTCTL_REFUSED = {
    "smartctl": {
        "messages": [{"string": "/dev/vda: Unable to detect device type", "severity": "error"}],
        "exit_status": 1,
    }
}
#: What `nvme smart-log --output-format=json` (2.3) writes.
NVME = {
    "critical_warning": 0,
    "temperature": 301,
    "avail_spare": 100,
    "percent_used": 15,
    "data_units_written": 1474968593,
}


def test_smartctl_tells_of_nvme_and_of_sata() -> None:
    assert parse_smartctl("nvme0n1", SMARTCTL_NVME) == Health(
        "nvme0n1", "smartctl", 35, 0.02, 0.9, 85848679 * 512_000, critical_warning=4
    )
    assert parse_smartctl("sda", SMARTCTL_SATA) == Health("sda", "smartctl", temperature_c=31)


def test_a_disk_that_cannot_be_asked_has_no_source() -> None:
    assert parse_smartctl("vda", SMARTCTL_REFUSED) == Health("vda")
    assert parse_nvme("nvme0n1", {"error": "x"}) == Health("nvme0n1")


def test_nvme_tells_kelvin() -> None:
    assert parse_nvme("nvme0n1", NVME) == Health(
        "nvme0n1", "nvme", 28, 0.15, 1.0, 1474968593 * 512_000, critical_warning=0
    )


@pytest.mark.real
def test_each_disk_below_a_device_is_asked() -> None:
    disks = read_health(find_block_device(Path(__file__)))
    assert disks
    for health in disks:
        assert health.disk
        assert bool(health.source) == (health.temperature_c is not None or health.wear_share is not None)


@pytest.mark.real
def test_fill_and_trim_leave_the_free_space_as_it_was(emulated: Device, tmp_path: Path) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        image = tmp_path / ".knobscope-devices" / "loop" / "disk.img"
        free, before = opened.free_bytes, image.stat().st_blocks * 512
        precondition(Precondition(fill="24MiB"), opened.directory)
        assert image.stat().st_blocks * 512 > before + (20 << 20)  # it was written, and is not there any more
        assert opened.free_bytes == free
        precondition(Precondition(trim=True), opened.directory)
        assert image.stat().st_blocks * 512 < before + (4 << 20)  # the discarded blocks are holes in the image
        with pytest.raises(UserError, match="`fill` needs 1"):
            precondition(Precondition(fill="1GiB"), opened.directory)
        assert [path.name for path in opened.directory.iterdir()] == []


def test_fill_of_an_ordinary_directory_needs_no_root(tmp_path: Path) -> None:
    precondition(Precondition(fill="1MiB"), tmp_path)
    assert list(tmp_path.iterdir()) == []
