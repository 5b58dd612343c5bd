"""Where the time of a run goes outside warm-up and window: its fixed overhead, cut into phases."""

import time
from collections.abc import Mapping

#: In their order. `load` holds warm-up and window, and is overhead only as far as it is longer than these.
PHASES = {
    "restore": "copy of the snapshot on the device, private directories, ports",
    "start": "server started until it answers",
    "connect": "load client started until all its connections are there and asked for the values in force",
    "load": "warm-up and window, beyond their lengths",
    "collect": "figures of monitor and client taken over, checks of the data",
    "witness": "rows written until the server is killed, where the study measures recovery",
    "stop": "client and server ended",
    "recover": "killed server started again, until it answers and has told what it lost",
    "clean": "copy removed, trace written",
}


class PhaseClock:
    """Runs from its making; every `end` closes the phase since the one before."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._seconds: dict[str, float] = {}

    def end(self, phase: str) -> None:
        """Close a phase, one of PHASES."""
        now = time.monotonic()
        self._seconds[phase] = now - self._since
        self._since = now

    def overhead(self, load_s: float) -> Mapping[str, float]:
        """Return seconds by phase, of those that were reached; `load_s`: warm-up and window, which do not count."""
        excluded = {"load": load_s}
        return {phase: round(spent - excluded.get(phase, 0), 4) for phase, spent in self._seconds.items()}
