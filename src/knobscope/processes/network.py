"""A network of a run's own: its servers' ports cannot be reached by anybody else on the machine."""

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_libc = ctypes.CDLL(None, use_errno=True)

Result = TypeVar("Result")


@contextmanager
def open_network() -> Iterator[int | None]:
    """Yield a descriptor of a new network namespace with nothing but a loopback device, None where none can be made.

    It takes root and the right to make one (CAP_SYS_ADMIN); the namespace is gone when nobody holds it any more.
    """
    network = _in_thread(_make_namespace) if os.geteuid() == 0 else None
    try:
        yield network
    finally:
        if network is not None:
            os.close(network)


def connects(port: int, network: int | None) -> bool:
    """Whether somebody listens on a port of 127.0.0.1, in a network namespace or, without one, in ours."""

    def attempt() -> bool:
        if network is not None and _libc.setns(network, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "cannot enter the network namespace")
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    return _in_thread(attempt)


def _make_namespace() -> int | None:
    if _libc.unshare(_CLONE_NEWNET) != 0:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _in_thread(work: Callable[[], Result]) -> Result:
    """Do something in a thread of its own, which alone changes its namespace, and return the result."""
    results: list[Result] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="network")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
