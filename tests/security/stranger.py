"""Another user of the machine, who tries to get at a run: run as `runuser -u nobody -- python3 stranger.py`.

Reads lines of JSON: a list of paths, a list of Unix sockets and a list of ports. Writes what it could open, list or
connect to, as one list in JSON.
"""

import json
import os
import socket
import sys
from pathlib import Path


def opened(path: str) -> bool:
    try:
        if Path(path).is_dir():
            next(Path(path).iterdir(), None)
        else:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def connected(family: int, address: object) -> bool:
    with socket.socket(family) as probe:
        try:
            probe.connect(address)
        except OSError:
            return False
    return True


def main() -> None:
    asked = json.load(sys.stdin)
    found = [path for path in asked["paths"] if opened(path)]
    found += [path for path in asked["sockets"] if connected(socket.AF_UNIX, path)]
    found += [f"port {port}" for port in asked["ports"] if connected(socket.AF_INET, ("127.0.0.1", port))]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
