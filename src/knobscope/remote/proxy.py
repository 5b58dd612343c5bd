"""Connects to an ssh server and hands the connection to ssh (its ProxyCommand, with ProxyUseFdpass).

ssh itself runs in the network of a run, which has nothing but a loopback device, because the tunnel ends there, at the
DBMS's port. A socket belongs to the network in which it was made, so that one made outside carries the tunnel, and no
program stands between. Standard library only, so that it starts in some milliseconds.
"""

import ctypes
import os
import socket
import sys

_CLONE_NEWNET = 0x40000000
_LIMIT_S = 10


def main() -> int:
    """Connect to KNOBSCOPE_SSH_HOST and KNOBSCOPE_SSH_PORT, in the network KNOBSCOPE_SSH_NETWORK if there is one."""
    host, port = os.environ["KNOBSCOPE_SSH_HOST"], int(os.environ["KNOBSCOPE_SSH_PORT"])
    outside = os.environ.get("KNOBSCOPE_SSH_NETWORK")
    try:
        if outside is not None:
            _enter(outside)
        connection = socket.create_connection((host, port), _LIMIT_S)
    except OSError as error:
        print(f"cannot connect to {host}, port {port}: {error}", file=sys.stderr)
        return 1
    connection.setblocking(True)
    # Requests of a DBMS are small, and every one waits for its answer.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with socket.socket(fileno=1) as ssh:
        socket.send_fds(ssh, [b"\0"], [connection.fileno()])
    return 0


def _enter(network: str) -> None:
    descriptor = os.open(network, os.O_RDONLY | os.O_CLOEXEC)
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot enter the network outside")


if __name__ == "__main__":
    sys.exit(main())
