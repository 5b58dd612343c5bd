"""Waits for what has to come: as long as a busy machine may need."""

import time
from collections.abc import Callable

#: What hangs is found out as well after two minutes as after ten seconds; a busy machine needs them.
PATIENCE_S = 120.0


def wait_until(holds: Callable[[], object]) -> bool:
    """Wait until something holds, and return whether it does in the end."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
