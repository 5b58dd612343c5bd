"""The state of devices around runs: what is done to them before a block, and what they tell before and after a run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import cast

from knobscope.devices import OpenDevice, precondition, read_health
from knobscope.specs import Device
from knobscope.stages.measure.progress import BlockProgress
from knobscope.tables import DeviceHealthRow


@dataclass(frozen=True)
class DeviceCare:
    """The devices of a case with their specs, by name."""

    devices: Mapping[str, tuple[Device, OpenDevice]]

    def precondition(self, progress: BlockProgress) -> None:
        """Do what the specs want done before a block; it may take long, so it is said."""
        for name, (spec, opened) in self.devices.items():
            if spec.precondition is not None:
                progress.say(f"{progress.name}  device {name} is prepared (`precondition`)")
                precondition(spec.precondition, opened.directory)

    @contextmanager
    def reading_health(self) -> Iterator[list[DeviceHealthRow]]:
        """Yield rows of table `device_health`: those before a run, and at the end also those after it."""
        rows = self._read("before")
        yield rows
        rows += self._read("after")

    def _read(self, moment: str) -> list[DeviceHealthRow]:
        return [
            cast("DeviceHealthRow", {"device": name, "moment": moment, **asdict(health)})
            for name, (spec, opened) in self.devices.items()
            if spec.health
            for health in read_health(opened.block)
        ]
