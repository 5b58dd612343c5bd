"""Whether the devices of a study can be used here: an emulated one is brought up, as a run would do it."""

import os
from pathlib import Path

from knobscope.commands.doctor.checks import Finding, attempt
from knobscope.devices import bring_up, take_down
from knobscope.devices.emulation import exists
from knobscope.specs import Device, load_study


def examine_study(study: Path, root: Path) -> list[Finding]:
    """Return what came of each device of a study. SpecErrors: the study is wrong, or lacks something else."""
    devices = load_study(study, root).devices.values()
    results = [(device.name, *attempt(lambda device=device: _try(device, root))) for device in devices]  # type: ignore[misc]
    return [Finding("device", name, usable, True, text) for name, usable, text in results]


def _try(device: Device, root: Path) -> str:
    if device.emulate is None:
        return f"the directory {device.path}"
    was_there = exists(device, root)
    bring_up(device, root, os.getpid())  # a modelled one goes when this process ends, if nobody else uses it
    if device.model is None and not was_there:
        take_down(device, root)
    return "comes up"
