"""The one error class that a person is meant to read."""


class UserError(Exception):
    """Something a person can fix: says what was found, what was expected and what to do.

    The command line prints it without a traceback and ends with exit code 2.
    """
