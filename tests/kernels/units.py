"""systemd in a guest, as first process of a namespace of its own, with one unit: Redis on a file system."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["SOCKET", "UNIT", "running_unit"]

UNIT, SOCKET = "knobscope-check.service", "/run/redis.sock"
_UNITS = Path("/run/systemd/system")
_START_S = 120
_SERVICE = """[Unit]
DefaultDependencies=no
[Service]
ExecStart=/usr/bin/redis-server --port 0 --unixsocket {socket} --dir {directory} --appendonly yes --appendfsync always
"""
_SYSTEMD = ["unshare", "--fork", "--pid", "--mount", "--mount-proc", "/lib/systemd/systemd", "--unit=check.target"]


@contextlib.contextmanager
def running_unit(directory: Path) -> Iterator[int]:
    """Start systemd and the unit; yield the number of its first process."""
    os.environ["SYSTEMD_IGNORE_CHROOT"] = "1"  # a guest's checks run in one
    subprocess.run(["mount", "-t", "tmpfs", "run", "/run"], check=True)
    _UNITS.mkdir(parents=True)
    (_UNITS / "check.target").write_text("[Unit]\nDefaultDependencies=no\n")
    (_UNITS / UNIT).write_text(_SERVICE.format(socket=SOCKET, directory=directory))
    with subprocess.Popen(_SYSTEMD, env={**os.environ, "container": "guest"}) as systemd:
        try:
            _wait("systemctl", "show", "--property=Version")
            _wait("systemctl", "start", UNIT)
            _wait("redis-cli", "-s", SOCKET, "ping")
            yield int((_find_group() / "cgroup.procs").read_text().split()[0])
        finally:
            subprocess.run(["systemctl", "stop", UNIT], check=False)
            systemd.kill()


def _find_group() -> Path:
    return next(Path("/sys/fs/cgroup").rglob(UNIT))


def _wait(*command: str) -> None:
    """Repeat a command until it succeeds."""
    deadline = time.monotonic() + _START_S
    while (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        time.sleep(0.5)
