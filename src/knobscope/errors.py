"""The one error class that a person is meant to read, and how what strangers wrote is shown."""

#: Control characters, and those that turn the direction of text: names of files, specs, databases and traces of others
#: may hold them, and a terminal would obey them.
_UNPRINTABLE = [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
#: Halves of characters, as names of files that are no UTF-8 are read: no stream of UTF-8 takes them.
_UNPRINTABLE += range(0xD800, 0xE000)
_SHOWN = {code: repr(chr(code))[1:-1] for code in _UNPRINTABLE if chr(code) not in "\n\t"}
_SHOWN[0xA0] = " "  # no-break spaces are for pages: who searches or splits an output types plain ones


def show_controls(text: str) -> str:
    """Return a text that shows control characters instead of holding them."""
    return text.translate(_SHOWN)


class UserError(Exception):
    """Something a person can fix: says what was found, what was expected and what to do.

    The command line prints it without a traceback and ends with exit code 2.
    """

    def __str__(self) -> str:
        """Return what it says; a terminal obeys nothing in it, whoever prints it."""
        return show_controls(super().__str__())
