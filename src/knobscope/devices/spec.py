"""Reads the spec of one device, named as a person names it."""

import sys
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs.models.device import Device
from knobscope.specs.shelf import read_spec

__all__ = ["load_device"]


def load_device(name: str, root: Path) -> Device:
    """Return the device of a YAML file, or of ``specs/devices/<name>.yaml`` below `root`.

    Raises UserError when there is no such file, SpecErrors when it is wrong.
    """
    shelf = root / "specs" / "devices"
    file = Path(name) if name.endswith(".yaml") else shelf / f"{name}.yaml"
    if not file.is_file():
        known = ", ".join(sorted(other.stem for other in shelf.glob("*.yaml"))) or "none"
        raise UserError(f"no device spec {file}; expected a YAML file, or one of the names in {shelf}: {known}")
    device = read_spec(file, Device, None)[1]
    if device.notice:
        print(f"knobscope: {device.notice}", file=sys.stderr)
    return device
