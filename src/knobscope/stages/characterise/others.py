"""What others do with the machine and the device while it is measured.

It is looked at in short pauses between the windows, in which fio does nothing: then all that happens is others' doing.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from knobscope.devices import BlockDevice
from knobscope.text.formats import format_share, join_words
from knobscope.watch.processors import ProcessorMeter

_PAUSE_S = 0.05
_PRESSURE = Path("/proc/pressure/cpu")
#: Column of a device's `stat`: ms in which it had requests (https://docs.kernel.org/block/stat.html).
_BUSY_MS = 9


@dataclass(frozen=True)
class Others:
    """Shares of the time: processors busy, some task waiting for a processor (None: not known), device busy."""

    processors: float
    waiting: float | None
    device: float

    @property
    def share(self) -> float:
        """The largest share: by that, measurements may be off."""
        return max(self.processors, self.waiting or 0.0, self.device)

    def describe(self) -> str:
        """Return a clause that says what others used."""
        waited = (
            [] if self.waiting is None else [f"tasks waited for a processor {format_share(self.waiting)} of the time"]
        )
        busy = [f"processors were {format_share(self.processors)} busy", f"the device {format_share(self.device)}"]
        return f"in the pauses between measurements, {join_words([*busy, *waited])}"


def watch_pause(block: BlockDevice) -> Others:
    """Do nothing for a moment, and return what happened meanwhile."""
    begin, busy_ms, waited_us, meter = time.monotonic(), _read_busy_ms(block), _read_waited_us(), ProcessorMeter()
    time.sleep(_PAUSE_S)
    seconds = time.monotonic() - begin
    waited = None if waited_us is None else ((_read_waited_us() or waited_us) - waited_us) / 1e6 / seconds
    device = (_read_busy_ms(block) - busy_ms) / 1e3 / seconds
    return Others(meter.busy_share() or 0.0, waited if waited is None else min(waited, 1.0), min(device, 1.0))


def mean_of(pauses: Sequence[Others]) -> Others:
    """Return the mean of one pause or more."""
    waiting = [pause.waiting for pause in pauses if pause.waiting is not None]
    return Others(
        fmean(pause.processors for pause in pauses),
        fmean(waiting) if waiting else None,
        fmean(pause.device for pause in pauses),
    )


def _read_busy_ms(block: BlockDevice) -> int:
    return int(Path(f"/sys/dev/block/{block.major}:{block.minor}/stat").read_text().split()[_BUSY_MS])


def _read_waited_us() -> int | None:
    """Return the sum of `some` in microseconds; kernels without pressure information, or that hide it, have none."""
    try:
        return int(_PRESSURE.read_text().splitlines()[0].rsplit("total=", 1)[1])
    except OSError:
        return None
