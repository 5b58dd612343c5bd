"""A unit of systemd in a guest where that is the first process: Redis on a file system."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

UNIT, SOCKET = "knobscope-check.service", "/run/redis.sock"  # guests have no network
_START_S = 60
_SERVICE = """[Unit]
DefaultDependencies=no
[Service]
ExecStart=/usr/bin/redis-server --port 0 --unixsocket {socket} --dir {directory} --appendonly yes --appendfsync always
"""


@contextlib.contextmanager
def running_unit(directory: Path) -> Iterator[int]:
    """Start the unit; yield the number of its first process."""
    Path("/run/systemd/system", UNIT).write_text(_SERVICE.format(socket=SOCKET, directory=directory))
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    subprocess.run(["systemctl", "start", UNIT], check=True)
    try:
        deadline = time.monotonic() + _START_S
        while subprocess.run(["redis-cli", "-s", SOCKET, "ping"], capture_output=True, check=False).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{UNIT} does not answer")
            time.sleep(0.5)
        shown = subprocess.check_output(["systemctl", "show", "--property=MainPID", "--value", UNIT], text=True)
        yield int(shown)
    finally:
        subprocess.run(["systemctl", "stop", UNIT], check=True)
