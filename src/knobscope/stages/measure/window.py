"""The measured window, where a run is watched for longer than it measures."""

import math

from knobscope.specs import Generator, Workload
from knobscope.watch import Profile


def requested_window(workload: Workload, generator: Generator | None) -> float | None:
    """Return the length of the window that was requested of the load, None where operations or requests end it."""
    if generator is None:
        return workload.measure_s if workload.measure_operations is None else None
    return None if generator.bound == "requests" else max(1, math.ceil(workload.measure_s))


def share_of_window(share: float | None, profile: Profile, window_s: float) -> float | None:
    """Return a share of the watched time as one of the measured window.

    A load generator that a spec describes is watched from its start to its end. What was done before and after the
    window counts as done in it, as in all rates.
    """
    return None if share is None else min(1.0, share * max(1.0, profile["duration_s"] / window_s))
