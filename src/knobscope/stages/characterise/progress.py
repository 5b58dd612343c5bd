"""Tells a waiting person how far a measurement is."""

import sys
import time

_PAUSE_S = 2.0  # logs are read too: no line for every window


class Countdown:
    """Prints lines such as ``characterise here: 12/30 randwrite 16k, 14 s left`` on stderr, one every two seconds."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total, self._done = label, total, 0
        self._begin, self._last = time.monotonic(), 0.0

    def show(self, step: str) -> None:
        """Say that the next of the steps begins."""
        now = time.monotonic()
        if now - self._last >= _PAUSE_S:
            suffix = f", {self._left_s(now):.0f} s left" if self._done else ""
            print(f"{self._label}: {self._done + 1}/{self._total} {step}{suffix}", file=sys.stderr, flush=True)
            self._last = now
        self._done += 1

    def _left_s(self, now: float) -> float:
        return (now - self._begin) / self._done * (self._total - self._done)
