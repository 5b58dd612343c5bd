"""Watches what a run does to a device: block by block with BPF, or in sums from procfs where BPF is not permitted."""

from knobscope.watch.interface import Profile, Watch, WatchFailedError
from knobscope.watch.opening import open_watch

__all__ = ["Profile", "Watch", "WatchFailedError", "open_watch"]
