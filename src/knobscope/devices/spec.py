"""Reads the spec of one device, named as a person names it."""

import sys
from pathlib import Path

from knobscope.specs.models.device import Device
from knobscope.specs.reading.arguments import find_spec
from knobscope.specs.shelf import read_spec


def load_device(name: str, root: Path) -> Device:
    """Return the device of a YAML file, or of ``specs/devices/<name>.yaml`` below `root`.

    Raises UserError when there is no such file, SpecErrors when it is wrong.
    """
    device = read_spec(find_spec("device", name, root / "specs/devices"), Device, None)[1]
    if device.notice:
        print(f"knobscope: {device.notice}", file=sys.stderr)
    return device
