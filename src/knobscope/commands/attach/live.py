"""The screen of `knobscope attach` until Ctrl-C: one window after another, each over the one before."""

import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from knobscope.commands.attach.diagnosis import Diagnosis
from knobscope.commands.attach.text import format_live

#: Length of a window.
REFRESH_S = 2.0
_CLEAR = "\x1b[H\x1b[2J"


def show_live(watch_window: Callable[[], Diagnosis], is_over: Callable[[], bool]) -> Diagnosis:
    """Show windows until it is over; return the last one."""
    while True:
        diagnosis = watch_window()
        columns, lines = shutil.get_terminal_size()
        screen = _fit(format_live(diagnosis), columns, lines - 1)
        if sys.__stdout__ is not None:
            sys.__stdout__.write(_CLEAR)  # past the filter that shows control characters instead of sending them
        print(screen, flush=True)
        if is_over():
            return diagnosis


def _fit(text: str, columns: int, lines: int) -> str:
    """Return what a terminal has room for: longer lines go on below, since half of a number is another number."""
    fitting = textwrap.TextWrapper(columns, break_long_words=False, break_on_hyphens=False)
    rows = [part for row in text.splitlines() for part in fitting.wrap(row) or [""]]
    return "\n".join(rows[:lines])


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield whether somebody asked to end, with Ctrl-C or a signal: a window then ends early, and is judged."""
    signals: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda received, _: signals.append(received)) for number in numbers}
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
