"""Whom servers run as: never root."""

import os
import pwd

from knobscope.errors import UserError

__all__ = ["SERVICE_USER", "find_service_user"]

#: Made by `make setup` when it is called as root.
SERVICE_USER = "knobscope"


def find_service_user() -> str | None:
    """Return the unprivileged user for servers when we are root, None when we are somebody ordinary already."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(SERVICE_USER)
    except KeyError as error:
        raise UserError(
            f"knobscope was started as root, and there is no user {SERVICE_USER!r} to run servers as; "
            f"`make setup` makes one (useradd --system {SERVICE_USER}), or start knobscope as an ordinary user"
        ) from error
    return SERVICE_USER
