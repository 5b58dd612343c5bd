"""How busy all processors of this machine are over a time, whoever keeps them busy."""

from pathlib import Path

_STAT = Path("/proc/stat")
#: Fields of the line `cpu` (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal; guests count as user.
_COUNTED, _IDLE, _IOWAIT = 8, 3, 4


class ProcessorMeter:
    """Measures from its making on."""

    def __init__(self) -> None:
        self._before = read_ticks()

    def busy_share(self) -> float | None:
        """Return the share of all processors' time in which something ran; None where no tick has gone by.

        Time that the host of a virtual machine took away (steal) counts as busy: it was not available.
        """
        spent = [now - before for now, before in zip(read_ticks(), self._before, strict=True)]
        total = sum(spent)
        return 1 - (spent[_IDLE] + spent[_IOWAIT]) / total if total else None


def read_ticks() -> list[int]:
    """Return the ticks of all processors since boot, by what they did."""
    return [int(field) for field in _STAT.read_text().split("\n", 1)[0].split()[1 : _COUNTED + 1]]
