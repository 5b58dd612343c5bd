"""What works for knobscope on another machine: keeps files, tells the time, and clears up when nobody listens any more.

It is sent over ssh and asked by lines of JSON on its standard input, each answered by one line; standard library only.
At the end of its input, which also comes when the other end was killed, it waits until no process of its private
directory is left, ends those that stay, and removes the directory.
"""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

#: After the end of the input, until processes of the private directory are killed.
_PATIENCE_S = 5.0
_PREFIX = "run-"


def main() -> None:
    """Make a private directory below that of the first argument, and answer until the input ends."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    base = Path.home() / sys.argv[1]
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_own(base)
        private = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        (private / "out").mkdir(mode=0o700)
    except OSError as error:
        _answer({"error": str(error)})
        return
    try:
        _answer({"ok": {"base": str(base), "private": str(private), "machine": _describe(), "java": _find_java()}})
        for line in iter(sys.stdin.buffer.readline, b""):
            _answer(_reply(json.loads(line), base))
    finally:
        _end_processes(private)
        shutil.rmtree(private, ignore_errors=True)


def _answer(answer: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _require_own(base: Path) -> None:
    status = base.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise OSError(f"{base} is no directory that only user {os.geteuid()} writes to")


def _describe() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = f"{os.cpu_count()} cores of {platform.machine()}"
    return f"{platform.system()} {platform.release()}, {cores}, {round(memory / 1024**3)} GiB of memory"


def _find_java() -> str | None:
    return shutil.which("java")


def _reply(request: dict[str, Any], base: Path) -> dict[str, object]:
    try:
        return {"ok": _ACTIONS[request["do"]](request, base)}
    except OSError as error:
        return {"error": str(error)}


def _tell_time(_: dict[str, Any], __: Path) -> int:
    return time.time_ns()


def _list_lacking(request: dict[str, Any], base: Path) -> list[str]:
    """Return which of some files are not there, or not as their checksums say."""
    return [name for name, digest in request["files"].items() if _digest(base / name) != digest]


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _write(request: dict[str, Any], base: Path) -> None:
    """Write a file, whole or not at all, whose content follows the request."""
    content = sys.stdin.buffer.read(request["size"])
    path = base / request["name"]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(part).replace(path)


def _read(request: dict[str, Any], base: Path) -> str:
    path: Path = base / request["name"]
    return path.read_text()


def _time_echoes(request: dict[str, Any], _base: Path) -> list[int]:
    """Return the nanoseconds that single bytes take to a port of ours and back."""
    durations_ns = []
    with socket.create_connection(("127.0.0.1", request["port"]), 10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(request["times"]):
            begin = time.perf_counter_ns()
            connection.sendall(b"x")
            if connection.recv(1) != b"x":
                raise OSError("the tunnel was closed")
            durations_ns.append(time.perf_counter_ns() - begin)
    return durations_ns


_ACTIONS = {
    "time": _tell_time,
    "lacking": _list_lacking,
    "write": _write,
    "read": _read,
    "echoes": _time_echoes,
}


def _end_processes(private: Path) -> None:
    """Wait until the processes of a directory are gone; those that stay are killed."""
    begin = time.monotonic()
    while (pids := _processes_of(private)) and (waited := time.monotonic() - begin) < 2 * _PATIENCE_S:
        for pid in pids if waited > _PATIENCE_S else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _processes_of(private: Path) -> list[int]:
    """Return the processes of ours whose command lines name a directory."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                is_ours = entry.stat().st_uid == os.geteuid()
                if is_ours and os.fsencode(private) in (entry / "cmdline").read_bytes():
                    pids.append(int(entry.name))
    return pids


if __name__ == "__main__":
    main()
