"""Waits for a byte on a descriptor and then becomes a command: what it does is watched from its first request on.

Run as a program: gate.py DESCRIPTOR COMMAND [ARGUMENT...]. Standard library only, so that it starts at once.
"""

import os
import sys


def main() -> int:
    """Become the command, or return an exit code when that fails: 127 not found, 126 not executable, 1 gate closed."""
    gate, *command = sys.argv[1:]
    if not os.read(int(gate), 1):
        return 1  # who started us is gone
    os.close(int(gate))
    try:
        os.execvp(command[0], command)  # noqa: S606 - an argument list
    except OSError as error:
        print(f"cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main())
