"""A command of a spec that tries to leave its run: writes who runs it and what it could do, as JSON.

`prober.py OUT PORT PID NAME`: the port on which somebody of the machine listens, a process of the same user, and the
name of what is left behind.
"""

import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000
IPC_CREAT = 0o1000


def connects(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def signals(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGTERM)
    except OSError:
        return False
    return True


def makes_user_namespace() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(ctypes.CDLL(None).unshare(CLONE_NEWUSER) != 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def leaves(name: str) -> None:
    """Leave a file in every directory of everybody, and a segment of shared memory."""
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        Path(folder, name).write_text("left")
    if ctypes.CDLL(None).shmget(0x6B6E6F62, 4096, IPC_CREAT | 0o600) < 0:
        raise SystemExit("no segment")


def main() -> None:
    out, port, pid, name = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    found = {
        "user": os.getuid(),
        "connects": connects(port),
        "signals": signals(pid),
        "processes": [path.read_text().replace("\0", " ") for path in Path("/proc").glob("[0-9]*/cmdline")],
        "seen": sorted(str(path) for folder in ("/tmp", "/var/tmp", "/dev/shm") for path in Path(folder).iterdir()),
        "user namespace": makes_user_namespace(),
        "namespaces": {
            kind: str(Path("/proc/self/ns", kind).readlink()) for kind in ("net", "pid", "ipc", "mnt", "user")
        },
    }
    leaves(name)
    out.with_suffix(".part").write_text(json.dumps(found))
    out.with_suffix(".part").rename(out)


if __name__ == "__main__":
    main()
