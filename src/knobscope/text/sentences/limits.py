"""Limits of what a template may use up, since a rule may come from somebody else: time, memory, length.

Jinja's sandbox keeps a template from files and from Python's own objects, not from an endless loop or a text of
gigabytes.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from knobscope.processes.own_memory import limit_memory

#: Processor time of all sentences of a rule: 24,360 sentences of a study of 66,540 runs took less than 4 s.
SECONDS = 60.0
#: Memory that a sentence may take beyond what the process has.
BYTES = 1 << 28
#: Length of a sentence.
CHARACTERS = 20_000


class TooExpensiveError(Exception):
    """A template took more than a limit, which the text names."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Bound processor time and memory of what is done inside. TooExpensiveError: a limit was reached.

    Processor time, not time: other programs of a busy machine make no sentence too long. Only the main thread can be
    interrupted; all commands work in it.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooExpensiveError(f"more than {SECONDS:g} s of processor time for the sentences of this rule")

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGPROF, stop) if is_main else None
    try:
        with limit_memory(BYTES):
            if is_main:
                signal.setitimer(signal.ITIMER_PROF, max(seconds, 0.001))
            yield
    except MemoryError as error:
        raise TooExpensiveError(f"more than {BYTES >> 20} MiB of memory for one sentence") from error
    finally:
        if is_main:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
