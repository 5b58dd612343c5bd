"""What a load generator reports when it cannot do its work."""

from typing import Literal

FailureKind = Literal["timeout", "died", "refused", "failed", "lost", "unreadable"]


class GeneratorError(Exception):
    """The load client failed. This is a result of the run, not a mistake of the user.

    `kind` is "refused" when the DBMS did not accept an init statement (a knob's value), "failed" when the client
    itself says why it ended, "died" when it ended without a word, "timeout" when it did not come that far in time,
    "lost" when the machine that it ran on cannot be reached any more, "unreadable" when it ended well and its output is
    cut or contradicts itself.
    `log_tail` holds its last lines on standard error; `exit_code` is that of its process, where it has ended.
    """

    def __init__(self, kind: FailureKind, message: str, log_tail: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.log_tail = log_tail
        self.exit_code = exit_code
