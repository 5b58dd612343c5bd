"""Temperature and wear of a disk, as the kernel, smartctl or nvme tell them: what may explain that it changed.

The kernel shows the temperature of NVMe drives in sysfs, that of SATA drives where the module drivetemp is loaded.
Wear needs root, and smartctl (smartmontools) or nvme (nvme-cli); what cannot be determined is None.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from knobscope.devices.block import BlockDevice
from knobscope.devices.disks import find_bottom_disks

_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_TIMEOUT_S = 30
#: NVMe counts thousands of 512 bytes (NVM Express Base Specification, SMART / Health Information Log Page).
_NVME_UNIT_BYTES = 512_000
_KELVIN = 273


@dataclass(frozen=True)
class Health:
    """What a disk tells of itself at one moment."""

    disk: str
    source: str = ""  # sysfs, smartctl, nvme, or several of them with blanks between
    temperature_c: float | None = None
    wear_share: float | None = None  # of the endurance that its maker promises; may exceed 1
    spare_share: float | None = None  # of its spare cells that are left
    written_bytes: int | None = None  # in its life
    critical_warning: int | None = None  # bits of NVMe's log page; 0 is none


def read_health(block: BlockDevice) -> list[Health]:
    """Return what each disk below a block device tells; one that tells nothing has no source."""
    return [_read_disk(disk) for disk in find_bottom_disks(block)]


def _read_disk(disk: BlockDevice) -> Health:
    health = Health(disk.name)
    if os.geteuid() == 0:
        node = f"/dev/{disk.name}"
        if (answer := _ask(["smartctl", "--json", "--attributes", node])) is not None:
            health = parse_smartctl(disk.name, answer)
        if not health.source and (answer := _ask(["nvme", "smart-log", "--output-format=json", node])) is not None:
            health = parse_nvme(disk.name, answer)
    if health.temperature_c is None and (temperature := _read_temperature(disk)) is not None:
        health = replace(health, temperature_c=temperature, source=f"{health.source} sysfs".strip())
    return health


def _ask(command: list[str]) -> Mapping[str, Any] | None:
    """Return what a program answers in JSON; None where it is missing, or says nothing that is JSON.

    The exit code of smartctl has bits about the drive's state and says nothing about the answer.
    """
    program = shutil.which(command[0], path=_SYSTEM_PATH)
    if program is None:
        return None
    try:
        result = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        answer = json.loads(result.stdout)
    except (ValueError, subprocess.TimeoutExpired):  # a drive that hangs or has spun down
        return None
    return answer if isinstance(answer, dict) else None


def parse_smartctl(disk: str, answer: Mapping[str, Any]) -> Health:
    """Return what `smartctl --json --attributes` said; without a source when it could not ask the drive."""
    log: Mapping[str, Any] = answer.get("nvme_smart_health_information_log", {})
    temperature = answer.get("temperature", {}).get("current")
    wear = answer.get("endurance_used", {}).get("current_percent", log.get("percentage_used"))
    if temperature is None and wear is None:
        return Health(disk)
    units = log.get("data_units_written")
    return Health(
        disk,
        "smartctl",
        temperature_c=temperature,
        wear_share=_share(wear),
        spare_share=_share(log.get("available_spare")),
        written_bytes=None if units is None else units * _NVME_UNIT_BYTES,
        critical_warning=log.get("critical_warning"),
    )


def parse_nvme(disk: str, answer: Mapping[str, Any]) -> Health:
    """Return what `nvme smart-log` said, which gives the temperature in kelvin."""
    kelvin, units = answer.get("temperature"), answer.get("data_units_written")
    if kelvin is None:
        return Health(disk)
    warning = answer.get("critical_warning")
    return Health(
        disk,
        "nvme",
        temperature_c=kelvin - _KELVIN,
        wear_share=_share(answer.get("percent_used")),
        spare_share=_share(answer.get("avail_spare")),
        written_bytes=None if units is None else int(units) * _NVME_UNIT_BYTES,
        critical_warning=warning if isinstance(warning, int) else None,
    )


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _read_temperature(disk: BlockDevice) -> float | None:
    """Return the temperature that the kernel shows for the drive or its controller."""
    device = Path("/sys/class/block", disk.name, "device")
    for pattern in ("hwmon*/temp1_input", "hwmon/hwmon*/temp1_input", "device/hwmon*/temp1_input"):
        for file in sorted(device.glob(pattern)):
            with suppress(OSError):  # a sensor that does not answer
                return int(file.read_text()) / 1000
    return None
