"""Answers every byte with itself, for as long as a tunnel is timed."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def echo_at(path: Path) -> Iterator[None]:
    """Listen on a new socket for one connection and echo it; nobody listens any more afterwards."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        thread = threading.Thread(target=_echo_one, args=(listener,), name="echo", daemon=True)
        thread.start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes a thread that nobody has connected to
            thread.join()
            path.unlink()


def _echo_one(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection, _ = listener.accept()
        with connection:
            while data := connection.recv(1):
                connection.sendall(data)
